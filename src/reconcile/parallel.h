// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace nvmepolicy {

/// The threads only wait for their drive, so it is the number of sick drives that counts, not of processors.
inline constexpr std::size_t most_threads = 16;

/// Calls `action(0)` … `action(count - 1)`, up to `threads` at a time, and returns when all are done. With one, the caller does
/// it. Where no thread is to be had, fewer do it.
template <class Action>
void for_each_in_parallel(std::size_t count, const Action& action, std::size_t threads = most_threads)
{
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++)
            action(i);
    };
    std::vector<std::jthread> workers;
    try {
        for (std::size_t i = 1; i < std::min(count, threads); ++i)
            workers.emplace_back(work);
    } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): this thread works too
    }
    work();
}

} // namespace nvmepolicy
