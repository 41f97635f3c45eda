// SPDX-License-Identifier: LGPL-2.1-or-later
#include "clocks.h"

#include <ctime>

namespace nvmepolicy {
namespace {

std::chrono::nanoseconds read_clock(clockid_t clock)
{
    timespec now{};
    ::clock_gettime(clock, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

} // namespace

Clocks read_clocks()
{
    const auto awake = read_clock(CLOCK_MONOTONIC);
    const auto since_boot = read_clock(CLOCK_BOOTTIME);
    return {std::chrono::duration_cast<Milliseconds>(since_boot), std::chrono::duration_cast<Milliseconds>(since_boot - awake)};
}

} // namespace nvmepolicy
