// SPDX-License-Identifier: LGPL-2.1-or-later
// Threads for jobs that may wait long.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "workers.h"

namespace nvmepolicy {

/// Grows while jobs wait and every thread is taken, up to `most`, and shrinks to `kept` sleeping threads. New threads are
/// started by the pool's own, never by the caller: the event loop must not wait for one. Threads are detached; the process
/// may end while some of them wait for a drive, so the pool must not be destroyed before it does.
class WorkerPool : public Workers {
public:
    WorkerPool(std::size_t kept, std::size_t most);

    void submit(Job job) override;

private:
    void start_thread();
    void work();

    const std::size_t kept_;
    const std::size_t most_;
    std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_.
    std::deque<Job> jobs_;
    std::size_t threads_ = 0;
    std::size_t idle_ = 0;
};

} // namespace nvmepolicy
