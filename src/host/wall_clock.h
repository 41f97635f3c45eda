// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>

namespace nvmepolicy {

/// For records that people read; nothing is decided by it.
[[nodiscard]] inline std::int64_t seconds_since_1970()
{
    using namespace std::chrono;
    return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

} // namespace nvmepolicy
