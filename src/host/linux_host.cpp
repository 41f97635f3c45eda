// SPDX-License-Identifier: LGPL-2.1-or-later
#include "linux_host.h"

#include <cerrno>
#include <sys/statvfs.h>

#include "device_child.h"
#include "errno_refusal.h"
#include "laned_device.h"
#include "nvmepolicy/decode.h"
#include "sysfs.h"

namespace nvmepolicy {

LinuxHost::LinuxHost(Patience patience, std::string device_program)
    : patience_(patience)
    , device_program_(std::move(device_program))
{
}

LinuxHost::LinuxHost(const LinuxHost& same, Patience patience)
    : patience_(patience)
    , device_program_(same.device_program_)
    , shared_(same.shared_)
{
}

Result<std::unique_ptr<Directory>> LinuxHost::open_directory(const std::string& path)
{
    auto directory = SysfsDirectory::open("/sys/" + path);
    if (!directory)
        return directory.error();
    return std::unique_ptr<Directory>(*std::move(directory));
}

std::unique_ptr<ControllerDevice> LinuxHost::open_device(const Directory& directory, const std::string& name)
{
    const auto& sysfs = dynamic_cast<const SysfsDirectory&>(directory);
    auto line = std::make_unique<DeviceChild>(name, sysfs.descriptor(), sysfs.object(), device_program_, patience_,
                                              shared_->left_behind);
    return std::make_unique<LanedDevice>(name, sysfs.object(), std::move(line), shared_->lane, patience_);
}

Patience patience_beyond_the_kernel()
{
    constexpr std::uint64_t default_seconds = 60;
    constexpr std::uint64_t longest_seconds = 24ULL * 60 * 60;
    std::uint64_t seconds = default_seconds;
    if (const auto parameters = SysfsDirectory::open("/sys/module/nvme_core/parameters"))
        if (const auto raw = (*parameters)->read("admin_timeout"))
            if (const auto number = decode_number("admin_timeout", *raw, longest_seconds))
                seconds = *number;
    return {std::chrono::seconds(seconds + 5)};
}

Result<void> check_sysfs_writable()
{
    // Where the file is counts: a sandbox may have /sys read-only and /sys/devices not.
    struct statvfs status {};
    if (::statvfs("/sys/devices", &status) < 0)
        return errno_refusal("/sys/devices", "", errno);
    if ((status.f_flag & ST_RDONLY) != 0)
        return Refusal{"/sys/devices", "",
                       "mounted read-only, as in a container: latency tolerances cannot be written here. Run this on the host, "
                       "or look without changing anything (--dry-run)",
                       RefusalKind::denied};
    return {};
}

} // namespace nvmepolicy
