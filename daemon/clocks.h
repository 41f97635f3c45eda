// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "nvmepolicy/units.h"

namespace nvmepolicy {

struct Clocks {
    Milliseconds since_boot{0}; ///< suspend included
    Milliseconds asleep{0};     ///< how much of it was suspend; 0 where the machine has no clock that runs on meanwhile
};
[[nodiscard]] Clocks read_clocks();

} // namespace nvmepolicy
