// SPDX-License-Identifier: LGPL-2.1-or-later
// nvmepolicy-device: makes the calls that may hang with a sick drive, one controller a process, so that whoever started it
// can give up waiting and end. It knows two descriptors and decides nothing. See src/host/device_protocol.h.
//
// A thread inside such a call cannot be killed, and a process with such a thread cannot end; that is why this is a
// process of its own, and it keeps libnvme and what that brings out of the daemon's memory.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <libnvme.h>
#include <unistd.h>

#include "device_protocol.h"

namespace {

using namespace nvmepolicy::device_protocol;

constexpr const char* tolerance_file = "power/pm_qos_latency_tolerance_us";
constexpr std::size_t longest_request = 80;

std::array<std::uint8_t, largest_buffer> buffer;

/// One request a line; false at the end of input.
bool read_request(char* line)
{
    std::size_t used = 0;
    for (;;) {
        char c = 0;
        const ssize_t got = ::read(STDIN_FILENO, &c, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || used + 1 >= longest_request)
            return false;
        if (c == '\n')
            break;
        line[used++] = c;
    }
    line[used] = '\0';
    return true;
}

bool write_all(const void* data, std::size_t length)
{
    const auto* at = static_cast<const std::uint8_t*>(data);
    while (length > 0) {
        const ssize_t put = ::write(STDOUT_FILENO, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        length -= static_cast<std::size_t>(put);
    }
    return true;
}

bool answer(const AnswerLine& line)
{
    const std::string text = format(line);
    return write_all(text.data(), text.size()) && write_all(buffer.data(), line.length);
}

AnswerLine error_answer()
{
    return {AnswerKind::error_number, static_cast<std::uint32_t>(errno), 0};
}

/// libnvme returns 0, a positive NVMe status, or -1 with errno.
AnswerLine command_answer(int returned, std::uint32_t result, std::uint32_t length)
{
    if (returned < 0)
        return error_answer();
    if (returned > 0)
        return {AnswerKind::status, static_cast<std::uint32_t>(returned), 0};
    return {AnswerKind::ok, result, length};
}

// The helpers nvme_get_features_auto_pst() and friends send the wrong feature in libnvme 1.3; only the args form is used.
// Timeout 0 is the kernel's own: a shorter one would reset a PCIe controller.

AnswerLine identify()
{
    std::uint32_t result = 0;
    nvme_identify_args args{};
    args.result = &result;
    args.data = buffer.data();
    args.args_size = sizeof args;
    args.fd = node_fd;
    args.cns = NVME_IDENTIFY_CNS_CTRL;
    args.csi = NVME_CSI_NVM;
    args.cns_specific_id = NVME_CNSSPECID_NONE;
    args.uuidx = NVME_UUID_NONE;
    const int returned = nvme_identify(&args); // before result is looked at
    return command_answer(returned, result, NVME_IDENTIFY_DATA_SIZE);
}

AnswerLine get_feature(unsigned feature, unsigned select, unsigned length)
{
    std::uint32_t result = 0;
    nvme_get_features_args args{};
    args.result = &result;
    args.data = length ? buffer.data() : nullptr;
    args.args_size = sizeof args;
    args.fd = node_fd;
    args.sel = static_cast<nvme_get_features_sel>(select);
    args.data_len = length;
    args.fid = static_cast<std::uint8_t>(feature);
    args.uuidx = NVME_UUID_NONE;
    const int returned = nvme_get_features(&args); // before result is looked at
    return command_answer(returned, result, length);
}

AnswerLine read_attribute(const char* path)
{
    const int fd = ::openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_answer();
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    const AnswerLine line = got < 0 ? error_answer() : AnswerLine{AnswerKind::ok, 0, static_cast<std::uint32_t>(got)};
    ::close(fd);
    return line;
}

AnswerLine write_tolerance(const char* text)
{
    const int fd = ::openat(directory_fd, tolerance_file, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return error_answer();
    const ssize_t put = ::write(fd, text, std::strlen(text));
    const AnswerLine line = put < 0 ? error_answer() : AnswerLine{AnswerKind::ok, 0, 0};
    ::close(fd);
    return line;
}

AnswerLine serve(const char* request)
{
    // A command that moves less than it promises must not hand out what an earlier one left here.
    buffer.fill(0);
    unsigned feature = 0, select = 0, length = 0;
    int end = 0;
    if (std::strcmp(request, "identify") == 0)
        return identify();
    if (std::sscanf(request, "get-feature %3u %1u %4u%n", &feature, &select, &length, &end) == 3 && request[end] == '\0'
        && feature <= 0xff && select <= 7 && length <= largest_buffer)
        return get_feature(feature, select, length);
    if (std::strcmp(request, "read-tolerance") == 0)
        return read_attribute(tolerance_file);
    constexpr std::string_view read_request = "read-attribute ";
    if (std::strncmp(request, read_request.data(), read_request.size()) == 0)
        return read_attribute(request + read_request.size());
    constexpr std::string_view write_request = "write-tolerance ";
    if (std::strncmp(request, write_request.data(), write_request.size()) == 0)
        return write_tolerance(request + write_request.size());
    errno = EINVAL;
    return error_answer();
}

} // namespace

int main(int argc, char**)
{
    if (argc != 1 || ::fcntl(directory_fd, F_GETFD) < 0) {
        std::fputs("nvmepolicy-device is started by nvmepolicyd and nvmepolicyctl, with a controller's sysfs directory as "
                   "descriptor 3 and its node as descriptor 4\n",
                   stderr);
        return 2;
    }
    // A drive is waited for from here on; starting a process may take its time on a busy machine.
    if (!answer({AnswerKind::ok, 0, 0}))
        return 1;
    char request[longest_request];
    while (read_request(request))
        if (!answer(serve(request)))
            return 1;
    return 0;
}
