// SPDX-License-Identifier: LGPL-2.1-or-later
#include "event_loop.h"

#include <cerrno>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <systemd/sd-event.h>
#include <unistd.h>

namespace nvmepolicy {
namespace {

void check(int result, const char* what)
{
    if (result < 0)
        throw std::system_error(-result, std::generic_category(), what);
}

/// The callback may drop its own source, and with it the userdata; so a copy of it runs.
int call(void* userdata)
{
    const Loop::Callback callback = *static_cast<Loop::Callback*>(userdata);
    callback();
    return 0;
}

int on_io(sd_event_source*, int, std::uint32_t, void* userdata)
{
    return call(userdata);
}
int on_signal_event(sd_event_source*, const signalfd_siginfo*, void* userdata)
{
    return call(userdata);
}
int on_time(sd_event_source*, std::uint64_t, void* userdata)
{
    return call(userdata);
}
int on_defer(sd_event_source*, void* userdata)
{
    return call(userdata);
}

class SdSource : public Loop::Watched {
public:
    /// Ties the callback's life to the source's.
    SdSource(sd_event_source* source, Loop::Callback callback) : source_(source)
    {
        sd_event_source_set_userdata(source, new Loop::Callback(std::move(callback)));
        sd_event_source_set_destroy_callback(source, [](void* userdata) { delete static_cast<Loop::Callback*>(userdata); });
    }
    ~SdSource() override { sd_event_source_disable_unref(source_); }
    SdSource(const SdSource&) = delete;
    SdSource& operator=(const SdSource&) = delete;
    SdSource(SdSource&&) = delete;
    SdSource& operator=(SdSource&&) = delete;

private:
    sd_event_source* source_;
};

constexpr std::int64_t behind_everything_else = SD_EVENT_PRIORITY_IDLE + 100;

/// Up to two descriptors and a timer, set anew before each wait.
class InterestSource : public Loop::Watched {
public:
    using Prepare = std::function<std::optional<EventLoop::Interest>()>;
    InterestSource(sd_event* event, Prepare prepare, Loop::Callback ready)
        : prepare_(std::move(prepare))
        , ready_(std::move(ready))
    {
        const auto first = prepare_();
        if (!first)
            return;
        check(sd_event_add_io(event, &io_, first->fd, 0, on_io_ready, this), "sd_event_add_io");
        if (first->wake_fd >= 0)
            check(sd_event_add_io(event, &wake_, first->wake_fd, EPOLLIN, on_io_ready, this), "sd_event_add_io");
        check(sd_event_add_time(event, &timer_, CLOCK_MONOTONIC, UINT64_MAX, 1, on_deadline, this), "sd_event_add_time");
        check(sd_event_source_set_enabled(timer_, SD_EVENT_OFF), "sd_event_source_set_enabled");
        for (sd_event_source* source : {io_, wake_, timer_})
            if (source)
                check(sd_event_source_set_priority(source, behind_everything_else), "sd_event_source_set_priority");
        check(sd_event_source_set_prepare(io_, on_prepare), "sd_event_source_set_prepare");
    }
    ~InterestSource() override
    {
        for (sd_event_source* source : {io_, wake_, timer_})
            sd_event_source_disable_unref(source);
    }
    InterestSource(const InterestSource&) = delete;
    InterestSource& operator=(const InterestSource&) = delete;
    InterestSource(InterestSource&&) = delete;
    InterestSource& operator=(InterestSource&&) = delete;

private:
    static InterestSource& self(void* userdata) { return *static_cast<InterestSource*>(userdata); }
    static int on_io_ready(sd_event_source*, int, std::uint32_t, void* userdata)
    {
        self(userdata).ready_();
        return 0;
    }
    static int on_deadline(sd_event_source*, std::uint64_t, void* userdata)
    {
        self(userdata).ready_();
        return 0;
    }
    static int on_prepare(sd_event_source*, void* userdata)
    {
        self(userdata).prepare();
        return 0;
    }
    void prepare()
    {
        const auto interest = prepare_();
        if (!interest) {
            for (sd_event_source* source : {io_, wake_, timer_})
                if (source)
                    sd_event_source_set_enabled(source, SD_EVENT_OFF);
            return;
        }
        const auto wanted = (interest->events & POLLIN ? EPOLLIN : 0U) | (interest->events & POLLOUT ? EPOLLOUT : 0U);
        check(sd_event_source_set_io_events(io_, wanted), "sd_event_source_set_io_events");
        if (interest->deadline_us)
            check(sd_event_source_set_time(timer_, *interest->deadline_us), "sd_event_source_set_time");
        check(sd_event_source_set_enabled(timer_, interest->deadline_us ? SD_EVENT_ONESHOT : SD_EVENT_OFF),
              "sd_event_source_set_enabled");
    }

    Prepare prepare_;
    Loop::Callback ready_;
    sd_event_source* io_ = nullptr;
    sd_event_source* wake_ = nullptr;
    sd_event_source* timer_ = nullptr;
};

Loop::Source own(sd_event_source* source, Loop::Callback callback)
{
    return std::make_unique<SdSource>(source, std::move(callback));
}

} // namespace

EventLoop::EventLoop()
{
    check(sd_event_new(&event_), "sd_event_new");
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    check(wake_ < 0 ? -errno : 0, "eventfd");
    wake_source_ = on_readable(wake_, [this] { run_posted(); });
}

EventLoop::~EventLoop()
{
    wake_source_.reset();
    ::close(wake_);
    sd_event_unref(event_);
}

Loop::Source EventLoop::on_readable(int descriptor, Callback callback)
{
    sd_event_source* source = nullptr;
    check(sd_event_add_io(event_, &source, descriptor, EPOLLIN, on_io, nullptr), "sd_event_add_io");
    return own(source, std::move(callback));
}

Loop::Source EventLoop::on_readable_first(int descriptor, Callback callback)
{
    sd_event_source* source = nullptr;
    check(sd_event_add_io(event_, &source, descriptor, EPOLLIN, on_io, nullptr), "sd_event_add_io");
    check(sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT), "sd_event_source_set_priority");
    return own(source, std::move(callback));
}

Loop::Source EventLoop::on_interest(std::function<std::optional<Interest>()> prepare, Callback ready)
{
    return std::make_unique<InterestSource>(event_, std::move(prepare), std::move(ready));
}

Loop::Source EventLoop::on_signal(int signal, Callback callback)
{
    sd_event_source* source = nullptr;
    check(sd_event_add_signal(event_, &source, signal, on_signal_event, nullptr), "sd_event_add_signal");
    return own(source, std::move(callback));
}

Loop::Source EventLoop::after(Milliseconds delay, Callback callback)
{
    sd_event_source* source = nullptr;
    const auto microseconds = static_cast<std::uint64_t>(std::chrono::microseconds(delay).count());
    check(sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, microseconds, 0, on_time, nullptr),
          "sd_event_add_time_relative");
    return own(source, std::move(callback));
}

Loop::Source EventLoop::soon(Callback callback)
{
    sd_event_source* source = nullptr;
    check(sd_event_add_defer(event_, &source, on_defer, nullptr), "sd_event_add_defer");
    // Behind everything that has happened already, so that a burst is seen whole.
    check(sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IDLE), "sd_event_source_set_priority");
    return own(source, std::move(callback));
}

void EventLoop::post(Callback callback)
{
    {
        const std::lock_guard lock(mutex_);
        posted_.push_back(std::move(callback));
    }
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_, &one, sizeof one)); // Fails only when a wake-up is pending already.
}

void EventLoop::run_posted()
{
    std::uint64_t count = 0;
    static_cast<void>(::read(wake_, &count, sizeof count));
    std::vector<Callback> posted;
    {
        const std::lock_guard lock(mutex_);
        posted.swap(posted_);
    }
    for (const Callback& callback : posted)
        callback();
}

void EventLoop::serve_watchdog()
{
    check(sd_event_set_watchdog(event_, 1), "sd_event_set_watchdog");
}

int EventLoop::run()
{
    const int code = sd_event_loop(event_);
    check(code, "sd_event_loop");
    return code;
}

void EventLoop::exit(int code)
{
    check(sd_event_exit(event_, code), "sd_event_exit");
}

} // namespace nvmepolicy
