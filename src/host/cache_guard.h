// SPDX-License-Identifier: LGPL-2.1-or-later
// The cache lane of one controller: holds the leaves that are write through, and has everything at hand to put them back.
// It is started and has walked the way back before the first leaf goes write through, since a program cannot be counted on to
// start once the root disk hangs. It stands beside the jobs, which may be waiting for the same drive.
#pragma once

#include <cstdint>
#include <string>

#include "nvmepolicy/result.h"

namespace nvmepolicy {

/// Dropping it, or the end of the process that has it, puts all leaves back that it made write through, and flushes them.
class CacheGuard {
public:
    virtual ~CacheGuard() = default;

    // From a job. Each may wait as long as the drive does, up to the host's patience.

    /// Gets ready for a leaf: opens what will be needed, writes write back and sends a Flush.
    [[nodiscard]] virtual Result<void> hold(const std::string& leaf) = 0;
    /// Refuses `try_later` where there were more doubts than `doubts`: what this was decided by may no longer be true.
    /// A doubt that comes while it is under way ends in write back all the same.
    [[nodiscard]] virtual Result<void> write_through(const std::string& leaf, std::uint64_t doubts) = 0;
    /// And a Flush. Success: nothing that was acknowledged before is in danger because of this leaf's queue.
    [[nodiscard]] virtual Result<void> write_back(const std::string& leaf) = 0;

    // From any thread. Never waits.

    /// All leaves go back at once and are flushed, before anything else is done.
    virtual void doubt() = 0;
    [[nodiscard]] virtual std::uint64_t doubts() const = 0;
};

} // namespace nvmepolicy
