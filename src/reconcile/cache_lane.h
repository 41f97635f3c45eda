// SPDX-License-Identifier: LGPL-2.1-or-later
// What a running service holds write through, and how it would learn that it must not. One way leads to write through (S2),
// and it is CacheLane::write_through(); a doubt takes everything back without a question (S1, S3, S5).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/host.h"
#include "host/observe.h"
#include "host/waiting.h"
#include "nvmepolicy/decide_cache.h"
#include "nvmepolicy/feature_trace.h"

namespace nvmepolicy {

/// May be used from several threads.
class CacheLane {
public:
    struct Surroundings {
        Host& host;
        Waiting& waiting;
        /// Makes sure that the trace runs, and that heard() is told of it. From a job; may wait.
        std::function<Result<void>()> arm;
        /// Drops a guard where that may wait.
        std::function<void(std::shared_ptr<CacheGuard>)> dispose;
    };
    explicit CacheLane(Surroundings surroundings) : in_(std::move(surroundings)) {}

    // From a job.

    /// What would be watched by, as far as is known; starts nothing.
    [[nodiscard]] CacheDetection expected(const WriteCachePolicy& policy) const;
    /// Starts to watch. Facts that are to count must be read after this.
    [[nodiscard]] CacheDetection watch(const WriteCachePolicy& policy);
    /// To be asked before the facts are read.
    [[nodiscard]] std::uint64_t doubts(const std::string& controller) const;
    /// S2. Every leaf of `changes` is write through and verified, or all of them are write back again and the error says why.
    /// `doubts`: as they were before the facts were read that this was decided by.
    [[nodiscard]] Result<void> write_through(const Sighting& sighting, const std::vector<CacheModeChange>& changes,
                                             const CacheDetection& detection, std::uint64_t doubts);
    /// S1, for a leaf that is or was held; and a Flush. Success: nothing is in danger because of it.
    [[nodiscard]] Result<void> write_back(const Controller& controller, const std::string& leaf);
    /// This leaf of that controller object is write through by us.
    [[nodiscard]] bool holds(const Controller& controller, const std::string& leaf) const;
    [[nodiscard]] bool holds_any(const Controller& controller) const;
    /// Leaves that a doubt has taken back; it is not known that their Flush succeeded before write_back() says so.
    [[nodiscard]] std::vector<std::string> unsettled(const Controller& controller) const;
    /// Nothing of that controller is held or unsettled any more, so nobody needs to stand by. May wait.
    void dismiss_if_idle(const Controller& controller);
    /// How long write through is not worth a try: a Set Features is under way, or was seen just now.
    [[nodiscard]] std::optional<Milliseconds> pause(const std::string& controller) const;
    /// Gives everything back; may wait as long as a drive does.
    void release_all();

    // From the loop. Never waits.

    /// What the trace tells. The controllers to be looked at, because of a doubt or because the reason for one has ended.
    std::set<std::string> heard(const std::vector<TraceRecord>& records);
    void doubt(const std::string& controller);
    /// All that are held, and all that are about to be.
    std::set<std::string> doubt_all();
    void left(const std::string& controller);

private:
    using Time = Waiting::Time;
    struct Held {
        std::string name;
        std::shared_ptr<CacheGuard> guard;
        std::set<std::string> through;
        std::set<std::string> unsettled;
    };
    /// Of a name, since a trace knows no more.
    struct Doubts {
        std::uint64_t count = 0;
        std::set<std::uint32_t> under_way; ///< Set Features 06h that have not come back
        Time not_before{};                 ///< write through may be tried again
        int lately = 0;
        Time last{};
    };

    [[nodiscard]] std::shared_ptr<CacheGuard> guard_of(const Sighting& sighting);
    [[nodiscard]] Result<void> confirm_disabled(const Sighting& sighting, const CacheDetection& detection);
    [[nodiscard]] Result<void> switch_over(const Sighting& sighting, CacheGuard& guard,
                                           const std::vector<CacheModeChange>& changes, const CacheDetection& detection,
                                           std::uint64_t doubts);
    void doubt_locked(const std::string& controller);
    std::set<std::string> doubt_all_locked();

    Surroundings in_;
    mutable std::mutex mutex_;
    // Guarded by mutex_.
    std::map<std::uint64_t, Held> held_; ///< by controller object
    std::map<std::string, Doubts> doubts_;
    std::uint64_t doubts_about_all_ = 0;
    Time nobody_before_{}; ///< a record was lost, and with it perhaps a Set Features that is still under way
    std::map<std::uint32_t, std::uint64_t> seen_; ///< Get Features 06h in the trace, by the N of nvmeN
    std::optional<std::string> blind_because_;    ///< there is no trace, or it does not show what we do ourselves
};

} // namespace nvmepolicy
