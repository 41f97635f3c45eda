// SPDX-License-Identifier: LGPL-2.1-or-later
// The text of a duration, for those who have their own range and say themselves what is allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nvmepolicy/units.h"

namespace nvmepolicy {

/// A duration, or the reason why it is none.
struct DurationReading {
    std::optional<Microseconds> duration;
    std::string problem;
};

/// `0`, or a decimal number with its unit that makes whole microseconds, at most `longest`.
[[nodiscard]] DurationReading read_duration(std::string_view text, Microseconds longest);

/// `any`, or a duration as above that the kernel can hold.
struct BoundReading {
    std::optional<LatencyBound> bound;
    std::string problem;
};
[[nodiscard]] BoundReading read_bound(std::string_view text);

} // namespace nvmepolicy
