// SPDX-License-Identifier: LGPL-2.1-or-later
// From a change to the machine. Knows attribute names; knows no policy.
#pragma once

#include "nvmepolicy/plan.h"
#include "observe.h"

namespace nvmepolicy {

/// Writes a tolerance, after making sure that the opened directory still belongs to the controller that was decided about.
/// Refuses `gone` where another drive has taken its place.
[[nodiscard]] Result<void> apply(const ToleranceChange& change, const Sighting& sighting, const StillWanted& still_wanted = {});

} // namespace nvmepolicy
