// SPDX-License-Identifier: LGPL-2.1-or-later
// The time of a simulated machine: whatever goes on at the same time is a fiber, and chance says which goes on next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dice.h"
#include "fiber.h"
#include "host/waiting.h"
#include "simulation/kernel_time.h"
#include "trace.h"

namespace nvmepolicy::simulation {

class Scheduler : public KernelTime {
public:
    /// Whose work it is: a process' ends with it, the kernel's goes on.
    enum class Owner { kernel, process };

    Scheduler(Dice& dice, Trace& trace) : dice_(dice), trace_(trace) {}

    // KernelTime.
    void lock() override {}
    void unlock() override {}
    [[nodiscard]] Milliseconds now() const override { return now_; }
    void step(const std::string& what) override;
    bool sleep_until(const std::string& what, const std::function<bool()>& condition,
                     std::optional<Milliseconds> deadline) override;
    void spawn(const std::string& what, std::function<void()> work) override { start(Owner::kernel, what, std::move(work)); }

    void start(Owner owner, const std::string& what, std::function<void()> work);
    /// How many steps pass on average before another one's turn may come: 1 for the finest mixture.
    void mix(std::size_t steps) { steps_to_a_turn_ = steps; }
    /// kill -9: what of the process is inside the kernel goes on there, and what has not yet got there never does.
    void kill_processes();
    void end_all() { tasks_.clear(); }

    [[nodiscard]] bool can_run();
    /// One of those that can goes on.
    void run_one();
    /// When one that sleeps will be woken, if nothing else does it before.
    [[nodiscard]] std::optional<Milliseconds> next_deadline() const;
    void advance_to(Milliseconds time);
    /// How many have not ended, sleeping for ever included.
    [[nodiscard]] std::size_t tasks() const { return tasks_.size(); }

private:
    struct Task {
        Owner owner;
        std::string what;
        std::unique_ptr<Fiber> fiber;
        std::function<bool()> condition; ///< none: it can run
        std::optional<Milliseconds> deadline;
        bool begun = false;
    };
    [[nodiscard]] bool ready(const Task& task) const;

    Dice& dice_;
    Trace& trace_;
    Milliseconds now_{0};
    std::size_t steps_to_a_turn_ = 1;
    std::vector<std::unique_ptr<Task>> tasks_;
    std::vector<Task*> ready_; ///< kept for its memory
    Task* running_ = nullptr;
};

/// How a process waits in that time.
class FiberWaiting : public Waiting {
public:
    explicit FiberWaiting(Scheduler& scheduler) : scheduler_(scheduler) {}
    [[nodiscard]] Time now() const override { return Time(scheduler_.now()); }
    bool wait_until(std::unique_lock<std::mutex>& lock, Time deadline, const std::function<bool()>& condition) override;
    void wake() override {}
    void pause(std::chrono::milliseconds time) override;

private:
    Scheduler& scheduler_;
};

} // namespace nvmepolicy::simulation
