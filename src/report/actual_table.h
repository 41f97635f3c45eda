// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "reconcile/reconcile.h"

namespace nvmepolicy {

/// The table that was read from the drive; null: none was.
[[nodiscard]] inline const ApstFeature* actual_table(const Controller& controller)
{
    return controller.apst && controller.apst->has_value() ? &**controller.apst : nullptr;
}

/// What the drive does when idle, by the table that was read; empty where none was.
[[nodiscard]] inline IdleOutlook actual_outlook(const Outcome& outcome)
{
    const Controller& c = *outcome.controller;
    const ApstFeature* actual = actual_table(c);
    return actual && c.identify ? idle_outlook(*actual, c.identify->power_states, outcome.decision.measured) : IdleOutlook{};
}

} // namespace nvmepolicy
