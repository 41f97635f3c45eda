// SPDX-License-Identifier: LGPL-2.1-or-later
// A netlink socket: uevents on their way to a process, or lost.
#pragma once

#include <deque>

#include "host/uevents.h"

namespace nvmepolicy::simulation {

struct Channel {
    std::deque<Uevent> events;
    bool lost = false; ///< the socket was full: the next read says so
    [[nodiscard]] bool has_news() const { return lost || !events.empty(); }
};

} // namespace nvmepolicy::simulation
