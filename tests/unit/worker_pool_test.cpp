// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker_pool.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <latch>
#include <sys/resource.h>
#include <thread>

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

/// Pools are never destroyed, as in the service.
WorkerPool& pool(std::size_t kept, std::size_t most)
{
    static std::vector<WorkerPool*> reachable;
    return *reachable.emplace_back(new WorkerPool(kept, most));
}

std::ptrdiff_t threads()
{
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

bool eventually(const std::function<bool()>& condition)
{
    for (int i = 0; i < 5000 && !condition(); ++i)
        std::this_thread::sleep_for(2ms);
    return condition();
}

TEST(TheWorkerPool, GrowsWhileEveryThreadWaits)
{
    WorkerPool& p = pool(2, 32);
    std::latch all(20), end(1), done(20);
    for (int i = 0; i < 20; ++i)
        p.submit([&] {
            all.count_down();
            end.wait();
            done.count_down();
        });
    all.wait(); // hangs if some job waits for another one to end
    end.count_down();
    done.wait();
}

TEST(TheWorkerPool, RunsMoreJobsThanItMayHaveThreads)
{
    WorkerPool& p = pool(1, 4);
    std::atomic<int> inside = 0, most = 0;
    std::latch done(200);
    for (int i = 0; i < 200; ++i)
        p.submit([&] {
            const int now = ++inside;
            for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
            }
            std::this_thread::yield();
            --inside;
            done.count_down();
        });
    done.wait();
    EXPECT_LE(most, 4);
}

TEST(TheWorkerPool, KeepsNewJobsForLaterWhileAllItsThreadsWait)
{
    WorkerPool& p = pool(2, 4);
    std::latch waiting(4), end(1), done(14);
    for (int i = 0; i < 4; ++i)
        p.submit([&] {
            waiting.count_down();
            end.wait();
            done.count_down();
        });
    waiting.wait();
    std::atomic<int> later = 0;
    for (int i = 0; i < 10; ++i)
        p.submit([&] {
            ++later;
            done.count_down();
        });
    EXPECT_EQ(later, 0);
    end.count_down();
    done.wait();
    EXPECT_EQ(later, 10);
}

TEST(TheWorkerPool, ShrinksToWhatItKeeps)
{
    const auto before = threads();
    WorkerPool& p = pool(2, 16);
    std::latch all(12), end(1);
    for (int i = 0; i < 12; ++i)
        p.submit([&] {
            all.count_down();
            end.wait();
        });
    all.wait();
    EXPECT_GE(threads(), before + 12);
    end.count_down();
    EXPECT_TRUE(eventually([&] { return threads() <= before + 3; })) << threads() - before;
    std::latch works(1);
    p.submit([&] { works.count_down(); });
    works.wait();
}

TEST(TheWorkerPool, LetsTheProcessEndWhileAJobWaits)
{
    EXPECT_EXIT(
        {
            WorkerPool& p = pool(2, 4);
            std::latch begun(1);
            p.submit([&] {
                begun.count_down();
                for (;;)
                    std::this_thread::sleep_for(1h);
            });
            begun.wait();
            std::_Exit(5);
        },
        testing::ExitedWithCode(5), "");
}

TEST(TheWorkerPool, DoesWithTheThreadsThatItHasWhereNoMoreAreToBeHad)
{
    EXPECT_EXIT(
        {
            WorkerPool& p = pool(1, 8);
            std::latch begun(1);
            p.submit([&] { begun.count_down(); });
            begun.wait(); // its thread is there
            rlimit little{};
            ::getrlimit(RLIMIT_AS, &little);
            std::ifstream statm("/proc/self/statm");
            std::size_t pages = 0;
            statm >> pages;
            little.rlim_cur = pages * 4096 + (std::size_t{1} << 20); // no room for another stack
            ::setrlimit(RLIMIT_AS, &little);
            std::latch done(8);
            for (int i = 0; i < 8; ++i)
                p.submit([&] {
                    std::this_thread::sleep_for(20ms); // so that every thread is taken, and more are wanted
                    done.count_down();
                });
            done.wait();
            std::_Exit(0);
        },
        testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace nvmepolicy
