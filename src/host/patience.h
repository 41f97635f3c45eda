// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <chrono>

namespace nvmepolicy {

/// How long answers are waited for. What has not come by then is left behind; nothing is cancelled.
struct Patience {
    using Clock = std::chrono::steady_clock;
    std::chrono::milliseconds per_call{0};
    Clock::time_point end = Clock::time_point::max(); ///< no answer is waited for beyond this, however many calls there are

    [[nodiscard]] Clock::time_point deadline(Clock::time_point now) const { return std::min(now + per_call, end); }
};

/// A little more than the kernel gives an admin command (nvme_core.admin_timeout, 60 s by default), to hear its own answer.
[[nodiscard]] Patience patience_beyond_the_kernel();

} // namespace nvmepolicy
