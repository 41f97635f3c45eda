// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <vector>

#include "current_state.h"
#include "publish.h"
#include "reconciler.h"
#include "wishes.h"

namespace nvmepolicy::bus {

/// The service, as far as the bus has to do with it.
struct Inside {
    Loop& loop;
    const Publisher& publisher;
    Reconciler& reconciler;
    Wishes& wishes;
    CurrentState& state;
    bool simulated = false;
    /// What a reconcile would change of a controller, by what was last seen of it.
    std::function<Plan(const Outcome&)> plan;
    using Errors = std::vector<Refusal>;
    /// Reads the configuration again.
    std::function<void(std::function<void(const Errors&)> done)> reload;
    std::function<Errors()> configuration_errors; ///< of the last reading
    std::function<void()> resumed;                ///< the machine was asleep
    std::function<void(const std::string& why)> lost;
};

} // namespace nvmepolicy::bus
