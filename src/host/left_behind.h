// SPDX-License-Identifier: LGPL-2.1-or-later
// Children that still wait for their drive after everybody else gave up. Whoever asks such a drive again is told at once.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "unique_fd.h"

namespace nvmepolicy {

/// May be used from several threads.
class LeftBehind {
public:
    LeftBehind();
    void add(std::uint64_t controller_object, int pid);
    /// True while a child that was left with that controller has not ended.
    [[nodiscard]] bool waits_for(std::uint64_t controller_object);

    /// Readable when one of them has ended, for a program that lives on: then it calls reap().
    [[nodiscard]] int descriptor() const { return endings_.get(); }
    void reap();

private:
    struct Child {
        std::uint64_t controller_object;
        int pid;
        UniqueFd ending; ///< a pidfd
    };
    void reap_locked();

    UniqueFd endings_; ///< an epoll over the pidfds
    std::mutex mutex_;
    std::vector<Child> children_; ///< guarded by mutex_
};

} // namespace nvmepolicy
