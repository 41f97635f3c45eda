// SPDX-License-Identifier: LGPL-2.1-or-later
// What a simulated kernel announces, brought to the loop: as UeventMonitor and AttributeWatch do with a real one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "announcements.h"
#include "host/write_watch.h"
#include "simulation/simulated_kernel.h"

namespace nvmepolicy {

/// Used from the loop's thread; the kernel announces on whichever thread causes it to.
class SimulatedEvents : public WriteWatch {
public:
    SimulatedEvents(SimulatedKernel& kernel, Loop& loop) : kernel_(kernel), loop_(loop) {}
    /// From now on. Both outlive the kernel's last event.
    void deliver_to(Announcements& announcements);

    void watch(const std::string& controller) override;
    void forget(const std::string& controller) override { watched_.erase(controller); }

private:
    SimulatedKernel& kernel_;
    Loop& loop_;
    std::map<std::string, std::uint64_t> watched_; ///< object numbers, by name
};

} // namespace nvmepolicy
