// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text_file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "errno_refusal.h"
#include "sysfs.h"
#include "unique_fd.h"

namespace nvmepolicy {

Result<std::string> read_text_file(const std::string& path, std::size_t largest)
{
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd)
        return errno_refusal(path, "", errno);
    struct stat status {};
    if (::fstat(fd.get(), &status) < 0)
        return errno_refusal(path, "", errno);
    constexpr unsigned null_major = 1, null_minor = 3; // Documentation/admin-guide/devices.txt
    if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(null_major, null_minor))
        return std::string{};
    if (!S_ISREG(status.st_mode))
        return Refusal{path, "", "not a regular file", RefusalKind::invalid};
    return read_all(fd.get(), path, largest);
}

Result<void> replace_text_file(const std::string& path, std::string_view text)
{
    const std::string draft = path + ".new";
    const UniqueFd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd)
        return errno_refusal(draft, "", errno);
    if (::fchmod(fd.get(), 0644) < 0) // whatever the umask
        return errno_refusal(draft, "", errno);
    while (!text.empty()) {
        const ssize_t put = ::write(fd.get(), text.data(), text.size());
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno_refusal(draft, "", errno);
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    if (::fsync(fd.get()) < 0 || ::rename(draft.c_str(), path.c_str()) < 0)
        return errno_refusal(path, "", errno);
    const UniqueFd directory(::open(path.substr(0, path.rfind('/') + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory && ::fsync(directory.get()) < 0) // The new name has to survive a crash too.
        return errno_refusal(path, "", errno);
    return {};
}

} // namespace nvmepolicy
