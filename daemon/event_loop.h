// SPDX-License-Identifier: LGPL-2.1-or-later
// sd-event with owners: what a callback needs lives exactly as long as its source.
#pragma once

#include <mutex>
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
