// SPDX-License-Identifier: LGPL-2.1-or-later
// Children that still wait for their drive after everybody else gave up. A drive has one at most: whoever asks again while it
// is there is told at once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace nvmepolicy {

class LeftBehind {
public:
    void add(std::uint64_t controller_object, int pid);
    /// True while a child that was left with that controller has not ended. One that has is reaped.
    [[nodiscard]] bool waits_for(std::uint64_t controller_object);

private:
    std::mutex mutex_;
    std::map<std::uint64_t, int> children_; ///< guarded by mutex_
};

} // namespace nvmepolicy
