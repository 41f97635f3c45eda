// SPDX-License-Identifier: LGPL-2.1-or-later
// Dirty objects, jobs and their results. Knows the order of the steps; the content of any of them is elsewhere.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clocks.h"
#include "host/breaker_store.h"
#include "host/write_watch.h"
#include "listener.h"
#include "loop.h"
#include "publish.h"
#include "workers.h"

namespace nvmepolicy {

/// After that many looks in a row that ended in something passing; none: an event must tell.
[[nodiscard]] std::optional<Milliseconds> pause_before_next_look(int failures, bool not_live);

/// Everything below is used from the loop's thread only. Jobs get values and return values; one at most a controller.
class Reconciler {
public:
    struct Surroundings {
        Loop& loop;
        Workers& pool;
        Host& host;
        LedgerStore& ledger;
        BreakerStore& breaker;
        WriteWatch* watch; ///< none: nobody tells of writes
        Publisher& publisher;
        std::function<Clocks()> clocks = read_clocks;
        Listener* listener = nullptr;
    };
    /// Without a wish, here as below: what the configuration by itself asks for.
    Reconciler(const Surroundings& surroundings, Policy policy, std::optional<Wish> wish = {});
    ~Reconciler();
    Reconciler(const Reconciler&) = delete;
    Reconciler& operator=(const Reconciler&) = delete;
    Reconciler(Reconciler&&) = delete;
    Reconciler& operator=(Reconciler&&) = delete;

    /// The configuration has changed: every controller is looked at, and values that somebody else left are claimed back.
    void configure(Policy policy, std::optional<Wish> wish = {});
    /// Something else is wanted of the drives: those that it concerns are looked at. What somebody else left stays.
    void want(const Wish& wish);
    /// Somebody asked for our values: every controller is looked at, and what somebody else left is claimed back.
    void claim();
    [[nodiscard]] const Circumstances& circumstances() const { return *now_; }
    /// Once nothing is under way any more but looks that hang with their drive, or after two seconds.
    void when_settled(Loop::Callback callback);
    /// The drive may go deeper again. The reply comes when that is recorded.
    void clear_breaker(const std::string& controller, std::function<void(const Result<void>&)> reply);
    /// The power source may have changed.
    void look_at_power();
    /// Look at what there is: events may have been lost, or there were none yet.
    void enumerate();

    void mark_dirty(const std::string& controller);
    /// Somebody wrote the tolerance file. Looks at once, but not a hundred times a second.
    void written(const std::string& controller);
    /// A controller has come live. For one that we know it was a reset.
    void connected(const std::string& controller);
    void removed(const std::string& controller);
    /// The machine was asleep, or its clock was set.
    void resumed();

    [[nodiscard]] Milliseconds since_boot() const { return in_.clocks().since_boot; }

    /// No more jobs are started, and running ones write no more.
    void stop();

private:
    struct Object;
    struct Waiter;
    using Circumstance = std::shared_ptr<const Circumstances>;

    Object& object(const std::string& controller);
    void schedule(Object& object);
    void run_dirty();
    void start(Object& object);
    void finished(const std::string& controller, std::uint64_t incarnation, const Outcome& outcome,
                  const SessionMemory& memory);
    void look_again(Object& object, Milliseconds delay);
    void dropped_out(Object& object);
    void notice_sleep(const Clocks& now);
    void mark_all_dirty();
    void wish_changed(Object& object);
    void settled(const std::string& controller);
    void catch_up_later();

    Surroundings in_;
    Circumstance now_;
    std::map<std::string, std::unique_ptr<Object>> objects_;
    std::set<std::string> due_; ///< to be started soon; one change among many controllers must not ask them all
    std::map<ControllerId, DropOuts> drop_outs_; ///< outlives the objects, since a drop-out ends one
    std::set<std::string> unsettled_;            ///< dirty or looked at, and not stuck
    std::vector<std::unique_ptr<Waiter>> waiters_;
    Loop::Source soon_;
    Loop::Source catch_up_;
    std::uint64_t next_incarnation_ = 0;
    std::uint64_t power_readings_ = 0;
    std::uint64_t power_reading_applied_ = 0;
    std::vector<Refusal> complaints_; ///< of the last reading; a battery may have us read every minute
    Milliseconds resumed_at_{0};
    Milliseconds asleep_; ///< by the clocks, when they were last asked
    bool stopping_ = false;
    bool machine_known_ = false;
};

} // namespace nvmepolicy
