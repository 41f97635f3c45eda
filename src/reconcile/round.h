// SPDX-License-Identifier: LGPL-2.1-or-later
// All controllers at once, so that a sick one delays nobody.
#pragma once

#include "reconcile.h"

namespace nvmepolicy {

/// The machine after a round.
struct Round {
    Circumstances circumstances;
    std::vector<Outcome> outcomes; ///< by controller name
    std::vector<Subsystem> subsystems;
    std::vector<Refusal> complaints; ///< about the machine as a whole
};

enum class Intent { look, reconcile };

/// Looks at (and, with Intent::reconcile, changes) every controller, or only `only`. A few at a time; the PM QoS file one
/// at a time. `policy.daemon.profile` is the profile.
[[nodiscard]] Round run_round(Host& host, const Policy& policy, LedgerStore& ledger, const BreakerStore& breaker, Intent intent,
                              const std::optional<std::string>& only = std::nullopt);

} // namespace nvmepolicy
