// SPDX-License-Identifier: LGPL-2.1-or-later
// How time passes for whoever waits for others: on threads, or on the clock of a simulation.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace nvmepolicy {

class Waiting {
public:
    using Time = std::chrono::steady_clock::time_point;
    virtual ~Waiting() = default;
    [[nodiscard]] virtual Time now() const = 0;
    /// Gives the lock back while it waits. `condition` is asked with the lock held, first at once and then after each wake().
    /// False: it did not hold by the deadline.
    virtual bool wait_until(std::unique_lock<std::mutex>& lock, Time deadline, const std::function<bool()>& condition) = 0;
    /// Whoever waits asks its condition again.
    virtual void wake() = 0;
    virtual void pause(std::chrono::milliseconds time) = 0;
};

/// For threads.
class ThreadWaiting : public Waiting {
public:
    [[nodiscard]] Time now() const override { return std::chrono::steady_clock::now(); }
    bool wait_until(std::unique_lock<std::mutex>& lock, Time deadline, const std::function<bool()>& condition) override
    {
        return changed_.wait_until(lock, deadline, condition);
    }
    void wake() override { changed_.notify_all(); }
    void pause(std::chrono::milliseconds time) override;

private:
    std::condition_variable changed_;
};

} // namespace nvmepolicy
