// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker_pool.h"

#include <system_error>
#include <thread>

namespace nvmepolicy {

WorkerPool::WorkerPool(std::size_t kept, std::size_t most) : kept_(kept), most_(most)
{
    const std::lock_guard lock(mutex_);
    while (threads_ < kept_)
        start_thread();
}

void WorkerPool::submit(Job job)
{
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_one();
}

void WorkerPool::start_thread()
{
    try {
        std::thread([this] { work(); }).detach();
        ++threads_;
        ++idle_;
    } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): those that are there do the work
    }
}

void WorkerPool::work()
{
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return !jobs_.empty(); });
        const Job job = std::move(jobs_.front());
        jobs_.pop_front();
        --idle_;
        // The last free thread finds its successor before it disappears behind a drive.
        if (idle_ == 0 && threads_ < most_)
            start_thread();
        lock.unlock();
        job();
        lock.lock();
        if (idle_ >= kept_)
            break;
        ++idle_;
    }
    --threads_;
}

} // namespace nvmepolicy
