// SPDX-License-Identifier: LGPL-2.1-or-later
// An event loop and workers whose turns are taken by chance.
#pragma once

#include <deque>
#include <map>

#include "loop.h"
#include "scheduler.h"
#include "workers.h"

namespace nvmepolicy::simulation {

class SimulatedLoop : public Loop {
public:
    SimulatedLoop(Scheduler& scheduler, Dice& dice, Trace& trace) : scheduler_(scheduler), dice_(dice), trace_(trace) {}

    [[nodiscard]] Source after(Milliseconds delay, Callback callback) override;
    [[nodiscard]] Source soon(Callback callback) override;
    void post(Callback callback) override { posted_.push_back(std::move(callback)); }

    /// Something is due.
    [[nodiscard]] bool has_work() const;
    /// One of the things that are due is done.
    void turn();
    [[nodiscard]] std::optional<Milliseconds> next_timer() const;

private:
    using Place = std::map<std::uint64_t, std::pair<Milliseconds, Callback>>;
    class Entry;
    Source put(Place& place, Milliseconds due, Callback callback);
    void run(Place& place, std::uint64_t number, const char* what);

    Scheduler& scheduler_;
    Dice& dice_;
    Trace& trace_;
    std::uint64_t next_number_ = 0;
    std::deque<Callback> posted_;
    Place timers_;
    Place soon_;
};

/// As many at a time as the service's pool has threads.
class SimulatedWorkers : public Workers {
public:
    SimulatedWorkers(Scheduler& scheduler, std::size_t most) : scheduler_(scheduler), most_(most) {}
    void submit(Job job) override;

private:
    void begin();

    Scheduler& scheduler_;
    std::size_t most_;
    std::size_t running_ = 0;
    std::deque<Job> waiting_;
};

} // namespace nvmepolicy::simulation
