// SPDX-License-Identifier: LGPL-2.1-or-later
// The one way from a look to a write: observe, decide, apply, verify. Put a breakpoint here and you have seen it all.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/breaker_store.h"
#include "host/host.h"
#include "host/ledger_store.h"
#include "nvmepolicy/explain.h"
#include "nvmepolicy/foreign.h"
#include "parallel.h"

namespace nvmepolicy {

/// What is the same for all controllers of one round.
struct Circumstances {
    Machine machine;
    Policy policy;
    Wish wish;
    std::map<ControllerId, std::vector<MeasuredWake>> measured;
    const BreakerStore* breaker = nullptr; ///< which drives are kept at their boot value; none: none
};

/// What a running service adds to a look: it remembers, and it may be stopped.
struct Session {
    BreakerStore* breaker = nullptr; ///< where a trial is announced
    SessionMemory memory{};
    Milliseconds now{0}; ///< time since boot
    /// Counts the wishes. A look that was begun under an older one, and kept waiting by its drive, writes nothing any more.
    const std::atomic<std::uint64_t>* wishes = nullptr;
    std::uint64_t begun_under = 0;
    bool claim = false;  ///< somebody asked for our values: theirs does not stay
    bool leaves = false; ///< the disks are looked at too; nothing is decided by them yet
};

/// One controller after a look, and after what came of it.
struct Outcome {
    std::string name;
    Machine machine;                      ///< with the module parameters as they were at this look
    std::optional<Controller> controller; ///< none: it could not be identified, see `error`
    ControllerPolicy policy;
    ApstDecision decision;
    Verdict verdict;
    Plan plan;                    ///< what a reconcile would change now; after one: what it changed
    bool superseded = false;      ///< nothing was written, since the wishes have changed meanwhile
    bool applied = false;         ///< the plan was carried out
    std::optional<Refusal> error; ///< what went wrong on the way
    std::vector<std::string> explanation;
    /// The file holds a value of ours that lets the drive deeper than the one found first; none: it could not be read.
    std::optional<bool> deeper_than_at_boot;
    ForeignVerdict foreign;         ///< of a running service
    LatencyTolerance foreign_value; ///< what somebody else had left, where foreign says something

    /// The look, or one of the facts that it is made of, was refused for that reason.
    [[nodiscard]] bool refused(RefusalKind kind) const;
    /// It has left or is on its way out: not a failure of ours.
    [[nodiscard]] bool gone() const;
    /// What went wrong, or could not be read; empty: nothing.
    [[nodiscard]] std::string last_error() const;
    /// Nothing is left to wish for: in order, or merely reported as configured.
    [[nodiscard]] bool in_order() const;
};

/// Looks and decides; changes nothing.
[[nodiscard]] Outcome look(Host& host, const std::string& name, const Circumstances& now, const LedgerStore& ledger,
                           Session* session = nullptr);

/// Looks, decides, applies and verifies. A table that does not follow is repaired once.
[[nodiscard]] Outcome reconcile(Host& host, const std::string& name, const Circumstances& now, LedgerStore& ledger,
                                Session* session = nullptr);

/// What a reconcile that somebody asks for would change, by what was seen at an earlier look. Asks no drive.
[[nodiscard]] Plan plan_by(const Outcome& seen, const Circumstances& now, const LedgerStore& ledger);

/// What became of one ledger entry in a restore.
struct Restored {
    enum class Result {
        put_back,        ///< the value found first is there again
        already,         ///< it was there already
        left_to_another, ///< somebody else has written since: theirs stays
        gone,            ///< the controller has left; a new one starts with the kernel's default
        not_forgotten,   ///< nothing of ours is left in it, but its entry is still on disk, see error
        failed,          ///< see error; the entry is kept
    };
    ControllerId controller;
    std::string name;
    Result result = Result::failed;
    LatencyTolerance first;
    std::optional<LatencyTolerance> found;
    std::optional<Refusal> error;

    [[nodiscard]] bool in_order() const { return result != Result::failed && result != Result::not_forgotten; }
};

/// Puts back what each attribute held before our first write, as long as it still holds ours. `threads`: how many drives are
/// served at a time.
[[nodiscard]] std::vector<Restored> restore(Host& host, LedgerStore& ledger, std::size_t threads = most_threads);

/// The controllers that may hold a value of ours after a restore.
[[nodiscard]] std::vector<ControllerId> not_put_back(const std::vector<Restored>& all);

} // namespace nvmepolicy
