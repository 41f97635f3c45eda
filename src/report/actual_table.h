// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// The table that was read from the drive; null: none was.
[[nodiscard]] inline const ApstFeature* actual_table(const Controller& controller)
{
    return controller.apst && controller.apst->has_value() ? &**controller.apst : nullptr;
}

} // namespace nvmepolicy
