// SPDX-License-Identifier: LGPL-2.1-or-later
#include "simulated_events.h"

namespace nvmepolicy {

void SimulatedEvents::deliver_to(Announcements& announcements)
{
    announcements.hears(UeventMonitor::Group::kernel);
    const std::lock_guard lock(kernel_.time());
    kernel_.announce = [this, &announcements](const Uevent& event) {
        loop_.post([&announcements, event] { announcements.event(UeventMonitor::Group::kernel, event); });
    };
    kernel_.tolerance_written = [this, &announcements](const SimulatedController& c) {
        loop_.post([this, &announcements, name = c.name, object = c.object] {
            const auto watched = watched_.find(name);
            if (watched != watched_.end() && watched->second == object)
                announcements.written({name}, false);
        });
    };
}

void SimulatedEvents::watch(const std::string& controller)
{
    const std::lock_guard lock(kernel_.time());
    const auto c = kernel_.find(controller);
    if (c && c->tolerance_file)
        watched_[controller] = c->object;
}

} // namespace nvmepolicy
