// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sysfs.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "errno_refusal.h"
#include "nvmepolicy/plan.h"

namespace nvmepolicy {
namespace {

constexpr std::size_t largest_attribute = std::size_t{64} * 1024; // A page on x86, up to 64 KiB where pages are that large.

} // namespace

Result<std::string> read_all(int fd, const std::string& where, std::size_t largest)
{
    std::string text;
    char chunk[4096];
    for (;;) {
        const ssize_t got = ::read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno_refusal(where, "", errno);
        if (got == 0)
            return text;
        text.append(chunk, static_cast<std::size_t>(got));
        if (text.size() > largest)
            return Refusal{where, "", "larger than the " + std::to_string(largest) + " bytes that are allowed here",
                           RefusalKind::invalid};
    }
}

Result<std::unique_ptr<SysfsDirectory>> SysfsDirectory::open(const std::string& path)
{
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd)
        return errno_refusal(path, "", errno);
    struct stat status {};
    if (::fstat(fd.get(), &status) < 0)
        return errno_refusal(path, "", errno);
    return std::unique_ptr<SysfsDirectory>(new SysfsDirectory(path, std::move(fd), status.st_ino));
}

Result<std::string> SysfsDirectory::read(const std::string& attribute) const
{
    const std::string where = path_ + "/" + attribute;
    // Reading this one can wait for a minute behind somebody else's drive; ControllerDevice knows how.
    if (attribute.ends_with(tolerance_attribute))
        return Refusal{where, "", "is read through the controller's device only", RefusalKind::invalid};
    const UniqueFd fd(::openat(fd_.get(), attribute.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd)
        return errno_refusal(where, "", errno);
    return read_all(fd.get(), where, largest_attribute);
}

Result<std::vector<std::string>> SysfsDirectory::list(const std::string& below) const
{
    const std::string where = below == "." ? path_ : path_ + "/" + below;
    const int fd = ::openat(fd_.get(), below.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno_refusal(where, "", errno);
    DIR* stream = ::fdopendir(fd);
    if (!stream) {
        ::close(fd);
        return errno_refusal(where, "", errno);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..")
            names.push_back(name);
    }
    const int error = errno;
    ::closedir(stream);
    if (error != 0)
        return errno_refusal(where, "", error);
    std::ranges::sort(names);
    return names;
}

} // namespace nvmepolicy
