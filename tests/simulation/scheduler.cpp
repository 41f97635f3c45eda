// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler.h"

#include <algorithm>

namespace nvmepolicy::simulation {

void Scheduler::start(Owner owner, const std::string& what, std::function<void()> work)
{
    auto task = std::make_unique<Task>();
    task->owner = owner;
    task->what = what;
    task->fiber = std::make_unique<Fiber>(std::move(work));
    tasks_.push_back(std::move(task));
}

bool Scheduler::ready(const Task& task) const
{
    return !task.condition || (task.deadline && *task.deadline <= now_) || task.condition();
}

bool Scheduler::can_run()
{
    return std::ranges::any_of(tasks_, [this](const auto& task) { return ready(*task); });
}

void Scheduler::run_one()
{
    ready_.clear();
    for (const auto& task : tasks_)
        if (ready(*task))
            ready_.push_back(task.get());
    if (ready_.empty())
        return;
    Task* const task = ready_[dice_.below(ready_.size())];
    trace_.say(now_, "  {}", task->what);
    task->begun = true;
    running_ = task;
    task->fiber->resume();
    running_ = nullptr;
    if (task->fiber->ended())
        std::erase_if(tasks_, [task](const auto& t) { return t.get() == task; });
}

void Scheduler::step(const std::string& what)
{
    if (!running_ || !dice_.one_in(steps_to_a_turn_))
        return;
    running_->what = what;
    running_->condition = nullptr;
    running_->fiber->pause();
}

bool Scheduler::sleep_until(const std::string& what, const std::function<bool()>& condition,
                            std::optional<Milliseconds> deadline)
{
    if (!running_ || condition())
        return condition();
    Task& task = *running_;
    task.what = what;
    task.condition = condition;
    task.deadline = deadline;
    task.fiber->pause();
    task.condition = nullptr;
    task.deadline.reset();
    return condition();
}

void Scheduler::kill_processes()
{
    std::erase_if(tasks_, [](const auto& task) { return task->owner == Owner::process || !task->begun; });
}

std::optional<Milliseconds> Scheduler::next_deadline() const
{
    std::optional<Milliseconds> next;
    for (const auto& task : tasks_)
        if (task->deadline && (!next || *task->deadline < *next))
            next = task->deadline;
    return next;
}

void Scheduler::advance_to(Milliseconds time)
{
    now_ = std::max(now_, time);
}

bool FiberWaiting::wait_until(std::unique_lock<std::mutex>& lock, Time deadline, const std::function<bool()>& condition)
{
    if (condition())
        return true;
    const auto until = std::chrono::duration_cast<Milliseconds>(deadline.time_since_epoch());
    lock.unlock();
    const bool held = scheduler_.sleep_until("waits for its turn at the PM QoS lock", condition, until);
    lock.lock();
    return held;
}

void FiberWaiting::pause(std::chrono::milliseconds time)
{
    scheduler_.sleep_until(
        "pauses", [] { return false; }, scheduler_.now() + time);
}

} // namespace nvmepolicy::simulation
