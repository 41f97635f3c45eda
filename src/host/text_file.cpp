// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text_file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "errno_refusal.h"
#include "sysfs.h"

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

Result<void> write_all(const UniqueFd& fd, const std::string& path, std::string_view text)
{
    while (!text.empty()) {
        const ssize_t put = ::write(fd.get(), text.data(), text.size());
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno_refusal(path, "", errno);
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

Result<UniqueFd> replace_text_file(const std::string& path, std::string_view text)
{
    const std::string draft = path + ".new";
    UniqueFd fd(::open(draft.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd)
        return errno_refusal(draft, "", errno);
    const auto given_up = [&draft](Refusal refusal) {
        ::unlink(draft.c_str()); // It would take up what room there is.
        return refusal;
    };
    if (::fchmod(fd.get(), 0644) < 0) // whatever the umask
        return given_up(errno_refusal(draft, "", errno));
    if (const auto written = write_all(fd, draft, text); !written)
        return given_up(written.error());
    if (::fsync(fd.get()) < 0 || ::rename(draft.c_str(), path.c_str()) < 0)
        return given_up(errno_refusal(path, "", errno));
    const UniqueFd directory(::open(path.substr(0, path.rfind('/') + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory && ::fsync(directory.get()) < 0) // The new name has to survive a crash too.
        return errno_refusal(path, "", errno);
    return fd;
}

Result<void> make_readable_directory(const std::string& path)
{
    const bool made = ::mkdir(path.c_str(), 0755) == 0;
    if ((!made && errno != EEXIST) || (made && ::chmod(path.c_str(), 0755) < 0))
        return errno_refusal(path, "", errno);
    return {};
}

} // namespace nvmepolicy
