// SPDX-License-Identifier: LGPL-2.1-or-later
// The service as one process: all that ends with it. The parts are the real ones.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "announcements.h"
#include "channel.h"
#include "memory_storage.h"
#include "reconciler.h"
#include "simulated_loop.h"
#include "simulation/simulated_host.h"

namespace nvmepolicy::simulation {

class Process : public WriteWatch, public JournalSink {
public:
    struct Machine {
        Dice& dice;
        Trace& trace;
        Scheduler& scheduler;
        SimulatedKernel& kernel;
        MemoryStorage& storage;
        const bool& udev_runs;
        const Milliseconds& asleep; ///< how long it was, since boot
    };
    Process(const Machine& machine, Policy policy);
    ~Process() override = default;
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    Process(Process&&) = delete;
    Process& operator=(Process&&) = delete;

    /// Why it could not start.
    [[nodiscard]] const std::optional<Refusal>& refused() const { return refused_; }

    // What the kernel sends.
    Channel kernel_events, udev_events;
    void file_written(const SimulatedController& c);
    bool file_events_lost = false;
    bool clock_was_set = false;

    // What the administrator does.
    void reload(Policy policy);
    void stop();
    [[nodiscard]] bool stopping() const { return stopping_; }
    /// It is over; the exit code.
    [[nodiscard]] std::optional<int> ended() const { return ended_; }

    [[nodiscard]] const Policy& policy() const { return policy_; }

    [[nodiscard]] bool has_work() const;
    void turn();
    [[nodiscard]] std::optional<Milliseconds> next_timer() const { return loop_.next_timer(); }

    // WriteWatch, JournalSink.
    void watch(const std::string& controller) override;
    void forget(const std::string& controller) override { watched_.erase(controller); }
    void say(const JournalLine& line) override;

private:
    void deliver(UeventMonitor::Group group, Channel& channel);

    Machine in_;
    SimulatedLoop loop_;
    SimulatedWorkers workers_;
    FiberWaiting waiting_;
    SimulatedHost host_;
    std::unique_ptr<LedgerStore> ledger_;
    std::unique_ptr<BreakerStore> breaker_;
    Publisher publisher_;
    Policy policy_;
    std::optional<Reconciler> reconciler_;
    std::optional<Announcements> announcements_;
    std::vector<Loop::Source> sources_;
    std::map<std::string, std::uint64_t> watched_; ///< object numbers, by name
    std::vector<std::string> written_;             ///< what inotify will tell
    std::optional<Refusal> refused_;
    bool stopping_ = false;
    std::optional<int> ended_;
};

/// As the real service's, which are its own: no admin command is given up before the kernel does.
[[nodiscard]] Patience service_patience();

} // namespace nvmepolicy::simulation
