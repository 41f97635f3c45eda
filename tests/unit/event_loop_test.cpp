// SPDX-License-Identifier: LGPL-2.1-or-later
#include "event_loop.h"

#include <array>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

TEST(TheEventLoop, ReturnsTheCodeThatExitWasGiven)
{
    EventLoop loop;
    loop.post([&] { loop.exit(3); });
    EXPECT_EQ(loop.run(), 3);
}

TEST(TheEventLoop, RunsOnItsOwnThreadWhatOthersPostAndLosesNone)
{
    EventLoop loop;
    constexpr int threads = 8, each = 500;
    int run = 0;
    const auto self = std::this_thread::get_id();
    bool elsewhere = false;
    std::vector<std::jthread> posting;
    for (int t = 0; t < threads; ++t)
        posting.emplace_back([&] {
            for (int i = 0; i < each; ++i)
                loop.post([&] {
                    elsewhere = elsewhere || std::this_thread::get_id() != self;
                    if (++run == threads * each)
                        loop.exit(0);
                });
        });
    EXPECT_EQ(loop.run(), 0);
    EXPECT_EQ(run, threads * each);
    EXPECT_FALSE(elsewhere);
}

TEST(TheEventLoop, KeepsTheOrderOfOneThread)
{
    EventLoop loop;
    std::vector<int> order;
    for (int i = 0; i < 100; ++i)
        loop.post([&, i] { order.push_back(i); });
    loop.post([&] { loop.exit(0); });
    EXPECT_EQ(loop.run(), 0);
    ASSERT_EQ(order.size(), 100U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(TheEventLoop, TakesFirstWhatIsToComeFirst)
{
    int ends[2][2];
    ASSERT_EQ(::pipe2(ends[0], O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(ends[1], O_CLOEXEC), 0);
    EventLoop loop;
    std::string order;
    const auto note = [&](int end, char word) {
        char byte = 0;
        EXPECT_EQ(::read(end, &byte, 1), 1);
        if ((order += word).size() == 2)
            loop.exit(0);
    };
    const auto uevent = loop.on_readable(ends[0][0], [&] { note(ends[0][0], 'u'); });
    const auto resume = loop.on_readable_first(ends[1][0], [&] { note(ends[1][0], 'r'); });
    EXPECT_EQ(::write(ends[0][1], "x", 1), 1);
    EXPECT_EQ(::write(ends[1][1], "x", 1), 1);
    EXPECT_EQ(loop.run(), 0);
    EXPECT_EQ(order, "ru");
    for (const int fd : {ends[0][0], ends[0][1], ends[1][0], ends[1][1]})
        ::close(fd);
}

TEST(TheEventLoop, RunsWhatAPostedCallbackPosts)
{
    EventLoop loop;
    int depth = 0;
    std::function<void()> again = [&] {
        if (++depth == 50)
            loop.exit(0);
        else
            loop.post(again);
    };
    loop.post(again);
    EXPECT_EQ(loop.run(), 0);
    EXPECT_EQ(depth, 50);
}

/// Tells when the last copy of a callback that holds it is gone.
struct Alive {
    explicit Alive(bool& gone) : gone_(gone) {}
    ~Alive() { gone_ = true; }
    Alive(const Alive&) = delete;
    Alive& operator=(const Alive&) = delete;
    Alive(Alive&&) = delete;
    Alive& operator=(Alive&&) = delete;
    bool& gone_;
};

TEST(ASource, MayBeDroppedInItsOwnCallback)
{
    EventLoop loop;
    bool gone = false;
    bool alive_after_drop = false;
    EventLoop::Source source;
    auto inside = std::make_shared<Alive>(gone);
    source = loop.after(0ms, [&, inside] {
        source.reset();
        alive_after_drop = !gone;
        loop.post([&] { loop.exit(0); });
    });
    inside.reset();
    EXPECT_EQ(loop.run(), 0);
    EXPECT_TRUE(alive_after_drop) << "what a callback holds lives until it returns";
    EXPECT_TRUE(gone) << "and no longer";
}

TEST(ASource, MayBeReplacedInItsOwnCallback)
{
    EventLoop loop;
    int times = 0;
    EventLoop::Source source;
    std::function<void()> again = [&] {
        if (++times == 10)
            loop.exit(0);
        else
            source = loop.after(0ms, again);
    };
    source = loop.after(0ms, again);
    EXPECT_EQ(loop.run(), 0);
    EXPECT_EQ(times, 10);
}

TEST(ASource, ThatWasDroppedIsSilent)
{
    EventLoop loop;
    bool gone = false;
    auto inside = std::make_shared<Alive>(gone);
    EventLoop::Source source = loop.after(0ms, [inside] { FAIL() << "was dropped"; });
    inside.reset();
    source.reset();
    EXPECT_TRUE(gone);
    const EventLoop::Source end = loop.after(20ms, [&] { loop.exit(0); });
    EXPECT_EQ(loop.run(), 0);
}

TEST(ASource, FiresOnceForATimeAndAsOftenAsThereIsSomethingToRead)
{
    EventLoop loop;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    ASSERT_EQ(::write(ends[1], "abc", 3), 3);
    std::string read;
    const EventLoop::Source reading = loop.on_readable(ends[0], [&] {
        char c = 0;
        ASSERT_EQ(::read(ends[0], &c, 1), 1);
        read += c;
    });
    int fired = 0;
    const EventLoop::Source once = loop.after(0ms, [&] { ++fired; });
    const EventLoop::Source end = loop.after(300ms, [&] { loop.exit(0); });
    EXPECT_EQ(loop.run(), 0);
    EXPECT_EQ(read, "abc");
    EXPECT_EQ(fired, 1);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(ASource, HearsASignalThatWasBlocked)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    EventLoop loop;
    const EventLoop::Source source = loop.on_signal(SIGHUP, [&] { loop.exit(7); });
    ::kill(::getpid(), SIGHUP);
    EXPECT_EQ(loop.run(), 7);
}

TEST(Soon, ComesAfterWhatHasHappenedAlready)
{
    EventLoop loop;
    std::string order;
    EventLoop::Source soon = loop.soon([&] {
        order += "S";
        soon.reset();
        loop.exit(0);
    });
    for (int i = 0; i < 5; ++i)
        loop.post([&] { order += "p"; });
    EXPECT_EQ(loop.run(), 0);
    EXPECT_EQ(order, "pppppS");
}

TEST(Soon, IsOnceAndCanBeAskedForAgain)
{
    EventLoop loop;
    int times = 0;
    EventLoop::Source soon;
    std::function<void()> again = [&] {
        soon.reset();
        if (++times == 4)
            loop.exit(0);
        else
            soon = loop.soon(again);
    };
    soon = loop.soon(again);
    EXPECT_EQ(loop.run(), 0);
    EXPECT_EQ(times, 4);
}

TEST(TheEventLoop, LeavesNoDescriptorBehind)
{
    const auto next_free = [] {
        const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::close(fd);
        return fd;
    };
    const int before = next_free();
    for (int i = 0; i < 5; ++i) {
        EventLoop loop;
        const EventLoop::Source timer = loop.after(1h, [] {});
        loop.post([&] { loop.exit(0); });
        EXPECT_EQ(loop.run(), 0);
    }
    EXPECT_EQ(next_free(), before);
}

} // namespace
} // namespace nvmepolicy
