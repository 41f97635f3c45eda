// SPDX-License-Identifier: LGPL-2.1-or-later
// What the machine announces, and what each of it means: look again.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "host/uevents.h"
#include "loop.h"
#include "reconciler.h"

namespace nvmepolicy {

class Announcements {
public:
    /// `udev_runs`: whether a udev daemon is there whose rules are to be waited for.
    Announcements(Loop& loop, Reconciler& reconciler, const Publisher& publisher, std::function<bool()> udev_runs)
        : loop_(loop)
        , reconciler_(reconciler)
        , publisher_(publisher)
        , udev_runs_(std::move(udev_runs))
    {
    }
    /// From now on that group's events come.
    void hears(UeventMonitor::Group group);
    void event(UeventMonitor::Group group, const Uevent& event);
    /// Some could not be delivered, `which` for people: everything may have changed.
    void events_lost(const std::string& which);
    /// Somebody wrote the tolerance files of these; `overflow`: and perhaps of others.
    void written(const std::vector<std::string>& controllers, bool overflow);
    void clock_was_set();

private:
    void power_may_have_changed();
    void connected(UeventMonitor::Group group, const std::string& name);

    Loop& loop_;
    Reconciler& reconciler_;
    const Publisher& publisher_;
    std::function<bool()> udev_runs_;
    bool hears_kernel_ = false;
    Loop::Source power_timer_;
    Milliseconds power_moved_at_{0};                     ///< first report of the burst that power_timer_ waits for the end of
    std::map<std::string, Milliseconds> losses_said_at_; ///< by what was lost
    std::map<std::string, Loop::Source> late_;           ///< connected in the kernel, udev not done yet
};

} // namespace nvmepolicy
