// SPDX-License-Identifier: LGPL-2.1-or-later
// The drive behind nvmepolicy-device in tests: everything but device/drive.cpp is what is installed. It lives in the directory
// that the program has as descriptor 3:
//     log             what was asked of it, a line each; a Flush with the last line of that leaf's write_cache
//     flush-answer    what a Flush answers, if that is not `ok 0 0`
//     hang            while this exists, a Flush does not come back
// Every node is /dev/null, so a `dev` that is right reads 1:3. Namespace N is nvme0nN or nvme0c0nN.
#include "drive.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace nvmepolicy {

using namespace device_protocol;

namespace {

void log(const std::string& line)
{
    const int fd = ::openat(directory_fd, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const std::string text = line + "\n";
    if (::write(fd, text.data(), text.size()) < 0)
        std::abort();
    ::close(fd);
}

std::string read_file(const std::string& path)
{
    const int fd = ::openat(directory_fd, path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char text[4096];
    struct stat status {};
    const bool regular = fd >= 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode); // Not what a test reads itself.
    const ssize_t got = regular ? ::read(fd, text, sizeof text) : -1;
    if (fd >= 0)
        ::close(fd);
    return got < 0 ? std::string() : std::string(text, static_cast<std::size_t>(got));
}

std::string last_line(std::string text)
{
    if (!text.empty())
        text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

AnswerLine asked(const std::string& what, std::uint32_t length)
{
    log(what);
    return {AnswerKind::ok, 0, length};
}

} // namespace

AnswerLine identify(std::uint8_t cns, std::uint32_t nsid, std::uint8_t*)
{
    return asked("identify " + std::to_string(cns) + " " + std::to_string(nsid), largest_buffer);
}

AnswerLine get_log(std::uint8_t page_id, std::uint32_t length, std::uint8_t*)
{
    return asked("get-log " + std::to_string(page_id) + " " + std::to_string(length), length);
}

AnswerLine get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length, std::uint8_t*)
{
    return asked("get-feature " + std::to_string(feature) + " " + std::to_string(select), length);
}

AnswerLine set_write_cache(bool enabled, bool save)
{
    return asked("set-write-cache " + std::to_string(enabled) + " " + std::to_string(save), 0);
}

int open_node(const char* name)
{
    log(std::string("open ") + name);
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

AnswerLine flush(int node, std::uint32_t nsid)
{
    const std::string n = std::to_string(nsid);
    std::string mode = read_file("nvme0n" + n + "/queue/write_cache");
    if (mode.empty())
        mode = read_file("nvme0c0n" + n + "/queue/write_cache");
    log("flush " + n + ": " + last_line(mode) + (::fcntl(node, F_GETFD) < 0 ? ", no node" : ""));
    while (::faccessat(directory_fd, "hang", F_OK, 0) == 0)
        ::usleep(5'000);
    AnswerLine answer{AnswerKind::ok, 0, 0};
    std::string given = read_file("flush-answer");
    if (!given.empty()) {
        given.resize(given.find('\n'));
        if (!parse(given, answer))
            std::abort();
    }
    return answer;
}

AnswerLine error_answer()
{
    return error_answer(errno);
}

} // namespace nvmepolicy
