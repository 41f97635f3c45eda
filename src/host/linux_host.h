// SPDX-License-Identifier: LGPL-2.1-or-later
// The real machine.
#pragma once

#include <memory>
#include <string>

#include "host.h"
#include "left_behind.h"
#include "patience.h"
#include "pm_qos_lane.h"

namespace nvmepolicy {

class LinuxHost : public Host {
public:
    /// `patience`: how long calls to a drive are waited for before the child is left behind with them.
    /// `device_program`: path of nvmepolicy-device.
    LinuxHost(Patience patience, std::string device_program);
    /// The same machine with another patience; both take turns at the PM QoS lock.
    LinuxHost(const LinuxHost& same, Patience patience);

    [[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override;
    [[nodiscard]] std::unique_ptr<ControllerDevice> open_device(const Directory& directory, const std::string& name) override;
    [[nodiscard]] bool simulated() const override { return false; }
    [[nodiscard]] LeftBehind& left_behind() { return shared_->left_behind; }

private:
    Patience patience_;
    std::string device_program_;
    /// What all devices of the machine share.
    struct Shared {
        LeftBehind left_behind;
        ThreadWaiting waiting;
        PmQosLane lane{[this](std::uint64_t object) { return left_behind.waits_for(object); }, waiting};
    };
    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

/// Refuses where /sys/devices is mounted read-only, as in a container: nothing could be applied there.
[[nodiscard]] Result<void> check_sysfs_writable();

} // namespace nvmepolicy
