// SPDX-License-Identifier: LGPL-2.1-or-later
#include "simulated_loop.h"

#include <vector>

namespace nvmepolicy::simulation {

class SimulatedLoop::Entry : public Watched {
public:
    Entry(Place& place, std::uint64_t number) : place_(place), number_(number) {}
    ~Entry() override { place_.erase(number_); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    Entry(Entry&&) = delete;
    Entry& operator=(Entry&&) = delete;

private:
    Place& place_;
    std::uint64_t number_;
};

Loop::Source SimulatedLoop::put(Place& place, Milliseconds due, Callback callback)
{
    const std::uint64_t number = next_number_++;
    place.emplace(number, std::pair{due, std::move(callback)});
    return std::make_unique<Entry>(place, number);
}

Loop::Source SimulatedLoop::after(Milliseconds delay, Callback callback)
{
    return put(timers_, scheduler_.now() + delay, std::move(callback));
}

Loop::Source SimulatedLoop::soon(Callback callback)
{
    return put(soon_, scheduler_.now(), std::move(callback));
}

bool SimulatedLoop::has_work() const
{
    if (!posted_.empty() || !soon_.empty())
        return true;
    const auto next = next_timer();
    return next && *next <= scheduler_.now();
}

std::optional<Milliseconds> SimulatedLoop::next_timer() const
{
    std::optional<Milliseconds> next;
    for (const auto& [number, timer] : timers_)
        if (!next || timer.first < *next)
            next = timer.first;
    return next;
}

void SimulatedLoop::run(Place& place, std::uint64_t number, const char* what)
{
    trace_.say(scheduler_.now(), "loop: {}", what);
    const auto entry = place.extract(number); // fires once
    entry.mapped().second();
}

void SimulatedLoop::turn()
{
    std::vector<std::uint64_t> due;
    for (const auto& [number, timer] : timers_)
        if (timer.first <= scheduler_.now())
            due.push_back(number);
    const std::size_t choices = due.size() + (posted_.empty() ? 0U : 1U);
    if (choices == 0) {
        if (!soon_.empty())
            run(soon_, soon_.begin()->first, "now that nothing else is due");
        return;
    }
    const std::size_t choice = dice_.below(choices);
    if (choice < due.size())
        return run(timers_, due[choice], "a timer");
    trace_.say(scheduler_.now(), "loop: what workers have posted");
    std::deque<Callback> posted;
    posted.swap(posted_);
    for (const Callback& callback : posted)
        callback();
}

void SimulatedWorkers::submit(Job job)
{
    waiting_.push_back(std::move(job));
    begin();
}

void SimulatedWorkers::begin()
{
    if (waiting_.empty() || running_ == most_)
        return;
    ++running_;
    scheduler_.start(Scheduler::Owner::process, "a worker begins", [this, job = std::move(waiting_.front())] {
        job();
        --running_;
        begin();
    });
    waiting_.pop_front();
}

} // namespace nvmepolicy::simulation
