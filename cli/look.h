// SPDX-License-Identifier: LGPL-2.1-or-later
// How a command without a daemon sees the drives: by looking itself, without changing anything and without waiting long.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvmepolicy/policy_file.h"
#include "reconcile/round.h"

namespace nvmepolicy {

/// Says that there is no such controller, which one was probably meant, and which there are.
void complain_about_controller(const std::string& name, const std::vector<std::string>& names);

/// The options that the looking commands share.
struct LookOptions {
    std::optional<std::string> config;
    std::optional<std::string> simulate;
    std::string bus = "system"; ///< where the service may be asked instead
    bool json = false;
};

struct Look {
    Round round;
    bool simulated = false;
};

/// Looks at all controllers, or only at one, which must be there. None: it was not possible, and the reason has been printed.
[[nodiscard]] std::optional<Look> look_around(const LookOptions& options,
                                              const std::optional<std::string>& only = std::nullopt);

/// Prints every error of a configuration; true when there is none.
[[nodiscard]] bool report_policy_errors(const PolicyReading& reading);

} // namespace nvmepolicy
