// SPDX-License-Identifier: LGPL-2.1-or-later
// sd-event with owners: what a callback needs lives exactly as long as its source.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

struct sd_event;
struct sd_event_source;

namespace nvmepolicy {

class EventLoop {
public:
    using Callback = std::function<void()>;
    struct Unref {
        void operator()(sd_event_source* source) const;
    };
    /// Dropping it ends the watching. A source may be dropped from inside its own callback.
    using Source = std::unique_ptr<sd_event_source, Unref>;

    EventLoop();
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;
    EventLoop(EventLoop&&) = delete;
    EventLoop& operator=(EventLoop&&) = delete;

    enum class Rank {
        first, ///< before everything that has happened at the same time
        usual,
    };
    [[nodiscard]] Source on_readable(int descriptor, Callback callback, Rank rank = Rank::usual);
    /// The signal must be blocked in every thread; main does so before anything starts one.
    [[nodiscard]] Source on_signal(int signal, Callback callback);
    /// Once, after at least that long. Time in suspend does not count.
    [[nodiscard]] Source after(std::chrono::milliseconds delay, Callback callback);
    /// Before the loop next waits. From the loop's thread only.
    [[nodiscard]] Source soon(Callback callback);

    /// From any thread: runs `callback` on the loop's.
    void post(Callback callback);

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
