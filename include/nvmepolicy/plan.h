// SPDX-License-Identifier: LGPL-2.1-or-later
// What we would change, whose wish that is, and why. A plan lists only what differs; an empty plan writes nothing.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// The name of the attribute in plans, ledgers and messages, relative to the controller's directory.
inline constexpr const char* tolerance_attribute = "power/pm_qos_latency_tolerance_us";

/// Write the latency tolerance of a controller.
struct ToleranceChange {
    ControllerId controller;
    std::string name; ///< nvme0, for people
    LatencyTolerance from;
    LatencyTolerance to;
    /// The file holds the right value already, but the drive does not follow it. The kernel sends nothing when the
    /// number stays the same, so this one, which admits no more, is written first.
    std::optional<LatencyTolerance> through;
    std::string origin;       ///< which profile, rule, hold or safety rule asked for it
    std::string reason;       ///< with the numbers used
    std::uint64_t object = 0; ///< the controller object that was decided about
    friend bool operator==(const ToleranceChange&, const ToleranceChange&) = default;
};

/// Everything that can be changed. A new kind of change is a new alternative; the compiler leads on from there.
using Change = std::variant<ToleranceChange>;

struct Plan {
    std::vector<Change> changes;
    [[nodiscard]] bool empty() const { return changes.empty(); }
    friend bool operator==(const Plan&, const Plan&) = default;
};

} // namespace nvmepolicy
