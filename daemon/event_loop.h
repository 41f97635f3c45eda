// SPDX-License-Identifier: LGPL-2.1-or-later
// sd-event with owners: what a callback needs lives exactly as long as its source.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "loop.h"

struct sd_event;

namespace nvmepolicy {

class EventLoop : public Loop {
public:
    EventLoop();
    ~EventLoop() override;
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;
    EventLoop(EventLoop&&) = delete;
    EventLoop& operator=(EventLoop&&) = delete;

    [[nodiscard]] Source on_readable(int descriptor, Callback callback);
    /// The same, before everything else that has happened by then.
    [[nodiscard]] Source on_readable_first(int descriptor, Callback callback);
    /// What is to be waited for on behalf of something that has descriptors and deadlines of its own.
    struct Interest {
        int fd = -1;
        std::uint32_t events = 0;                 ///< as in poll(2)
        int wake_fd = -1;                         ///< readable: there is something to do as well; -1: there is none
        std::optional<std::uint64_t> deadline_us; ///< CLOCK_MONOTONIC; 0: at once
    };
    /// `prepare` is asked before each time the loop waits; none: it is over, and nothing is waited for any more. What is
    /// ready is handled after everything else, so that whoever sends much delays only himself.
    [[nodiscard]] Source on_interest(std::function<std::optional<Interest>()> prepare, Callback ready);
    /// The signal must be blocked in every thread; main does so before anything starts one.
    [[nodiscard]] Source on_signal(int signal, Callback callback);
    [[nodiscard]] Source after(Milliseconds delay, Callback callback) override;
    [[nodiscard]] Source soon(Callback callback) override;
    void post(Callback callback) override;

    /// Pings the service manager's watchdog for as long as the loop turns, where one is set.
    void serve_watchdog();
    /// Returns what exit() was given.
    [[nodiscard]] int run();
    void exit(int code);

private:
    void run_posted();

    sd_event* event_ = nullptr;
    int wake_ = -1;
    Source wake_source_;
    std::mutex mutex_;
    std::vector<Callback> posted_; ///< guarded by mutex_
};

} // namespace nvmepolicy
