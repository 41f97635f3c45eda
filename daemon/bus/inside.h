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
    Workers& workers;
    const Publisher& publisher;
    Reconciler& reconciler;
    Wishes& wishes;
    CurrentState& state;
    bool simulated = false;
    /// What a reconcile would change, by drives that answer soon. On a worker.
    std::function<std::vector<Outcome>(const Circumstances&, const std::vector<std::string>& controllers)> plan;
    using Errors = std::vector<Refusal>;
    /// Reads the configuration again.
    std::function<void(std::function<void(const Errors&)> done)> reload;
    std::function<Errors()> configuration_errors; ///< of the last reading
    std::function<void()> resumed;                ///< the machine was asleep
    std::function<void(const std::string& why)> lost;
};

} // namespace nvmepolicy::bus
