// SPDX-License-Identifier: LGPL-2.1-or-later
// The real machine.
#pragma once

#include <chrono>

#include "host.h"
#include "pm_qos_lane.h"

namespace nvmepolicy {

class LinuxHost : public Host {
public:
    /// `patience`: how long one call to a drive is waited for before the child is left behind with it.
    /// `device_program`: path of nvmepolicy-device.
    LinuxHost(std::chrono::milliseconds patience, std::string device_program);

    [[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override;
    [[nodiscard]] std::unique_ptr<ControllerDevice> open_device(const Directory& directory, const std::string& name) override;
    [[nodiscard]] bool simulated() const override { return false; }

private:
    std::chrono::milliseconds patience_;
    std::string device_program_;
    PmQosLane lane_;
};

/// The kernel gives an admin command 60 s by default (nvme_core.admin_timeout); a little more, to hear its own answer.
inline constexpr std::chrono::milliseconds patience_beyond_the_kernel{65'000};

/// Refuses where /sys/devices is mounted read-only, as in a container: nothing could be applied there.
[[nodiscard]] Result<void> check_sysfs_writable();

} // namespace nvmepolicy
