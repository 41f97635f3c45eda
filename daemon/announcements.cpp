// SPDX-License-Identifier: LGPL-2.1-or-later
#include "announcements.h"

#include <fmt/format.h>

namespace nvmepolicy {
namespace {

/// A plug that is still being wiggled, and a battery that reports all the time.
constexpr Milliseconds power_settles{1'000};
constexpr Milliseconds power_is_restless{3'000};
constexpr Milliseconds pause_between_losses_said{60'000};
/// udev's rules may write the same file; they are waited for, but not for ever.
constexpr Milliseconds udev_is_late{2'000};

} // namespace

void Announcements::hears(UeventMonitor::Group group)
{
    hears_kernel_ = hears_kernel_ || group == UeventMonitor::Group::kernel;
}

void Announcements::event(UeventMonitor::Group group, const Uevent& event)
{
    if (event.subsystem == "power_supply")
        power_may_have_changed();
    else if (event.action == "remove" && group == UeventMonitor::Group::kernel) {
        late_.erase(event.name);
        reconciler_.removed(event.name);
    } else if (event.action == "change" && event.nvme_event == "connected")
        connected(group, event.name);
}

void Announcements::events_lost(const std::string& which)
{
    const Milliseconds now = reconciler_.since_boot();
    const auto said = losses_said_at_.find(which);
    if (said == losses_said_at_.end() || now - said->second >= pause_between_losses_said) {
        losses_said_at_[which] = now;
        publisher_.say(
            LogLevel::warning, Happening::trouble,
            fmt::format("{} came faster than they could be read and some were lost; everything is looked at", which));
    }
    reconciler_.look_at_power();
    reconciler_.enumerate();
}

void Announcements::written(const std::vector<std::string>& controllers, bool overflow)
{
    for (const std::string& name : controllers)
        reconciler_.written(name);
    if (overflow)
        events_lost("writes to the drives' files");
}

void Announcements::clock_was_set()
{
    reconciler_.resumed();
}

/// One look once the plug rests, but no later than that while some battery does not.
void Announcements::power_may_have_changed()
{
    const Milliseconds now = reconciler_.since_boot();
    if (!power_timer_)
        power_moved_at_ = now;
    else if (now + power_settles > power_moved_at_ + power_is_restless)
        return;
    power_timer_ = loop_.after(power_settles, [this] {
        power_timer_.reset();
        reconciler_.look_at_power();
    });
}

/// Acted on once udev's rules have run, since they may write the same file; without udevd, or when it is late, anyway.
void Announcements::connected(UeventMonitor::Group group, const std::string& name)
{
    if (group == UeventMonitor::Group::kernel && udev_runs_()) {
        late_[name] = loop_.after(udev_is_late, [this, name] {
            late_.erase(name);
            reconciler_.connected(name);
        });
        return;
    }
    if (group == UeventMonitor::Group::udev && hears_kernel_ && late_.erase(name) == 0)
        return; // udevd was late, and it has been acted on.
    reconciler_.connected(name);
}

} // namespace nvmepolicy
