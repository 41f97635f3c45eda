// SPDX-License-Identifier: LGPL-2.1-or-later
// The door to uevents. They are hints: whoever gets one looks again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nvmepolicy/result.h"

struct udev_monitor;

namespace nvmepolicy {

struct Uevent {
    std::string subsystem;  ///< nvme, power_supply
    std::string action;     ///< add, change, remove
    std::string name;       ///< nvme0
    std::string nvme_event; ///< NVME_EVENT, such as "connected"; empty where there is none
};

/// One netlink group, subscribed when made.
class UeventMonitor {
public:
    enum class Group {
        kernel, ///< at once, also while udevd hangs
        udev,   ///< once udev's rules have run
    };
    [[nodiscard]] static Result<UeventMonitor> subscribe(Group group);

    [[nodiscard]] int descriptor() const;

    enum class Reading { event, nothing, overflow };
    /// The next event; `overflow` when the kernel had to drop some: everything may have changed.
    [[nodiscard]] Reading next(Uevent& event);

private:
    struct Unref {
        void operator()(udev_monitor* monitor) const;
    };
    explicit UeventMonitor(std::unique_ptr<udev_monitor, Unref> monitor) : monitor_(std::move(monitor)) {}
    std::unique_ptr<udev_monitor, Unref> monitor_;
};

/// Whether a udev daemon runs, so that events of its group will come.
[[nodiscard]] bool udev_runs();

} // namespace nvmepolicy
