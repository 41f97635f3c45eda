// SPDX-License-Identifier: LGPL-2.1-or-later
// The service: what it is made of, what it listens to, and how it ends.
#include "service.h"

#include <csignal>
#include <fmt/format.h>
#include <sys/timerfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "announcements.h"
#include "bus/connection.h"
#include "bus/door.h"
#include "command_line/usage.h"
#include "event_loop.h"
#include "host/attribute_watch.h"
#include "host/installation.h"
#include "host/policy_store.h"
#include "host/uevents.h"
#include "reconciler.h"
#include "simulated_events.h"
#include "stage.h"
#include "story_player.h"
#include "wishes.h"
#include "worker_pool.h"

namespace nvmepolicy {
namespace {

constexpr std::size_t kept_workers = 2;
constexpr std::size_t most_workers = 32;
/// A stop is not held up by a drive.
constexpr Milliseconds time_to_restore{2'000};
constexpr Milliseconds time_to_stop{2'500};

/// A timer that never fires, and is cancelled by the kernel when the clock is set: after every resume.
/// Source: timerfd_create(2), TFD_TIMER_CANCEL_ON_SET; timekeeping_resume().
UniqueFd make_resume_timer()
{
    UniqueFd timer(::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC));
    itimerspec never{};
    never.it_value.tv_sec = std::numeric_limits<std::int32_t>::max();
    if (timer)
        ::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr);
    return timer;
}

class Service {
public:
    using Errors = std::vector<Refusal>;
    /// `bus`: none, it is not to be there for others.
    Service(const Options& options, Journal& journal, Policy policy, Stage stage, std::unique_ptr<sdbus::IConnection> bus)
        : options_(options)
        , stage_(std::move(stage))
        , publisher_(journal)
        , pool_(kept_workers, most_workers)
        , on_exit_(policy.daemon.on_exit.value)
        , may_write_(!policy.daemon.dry_run.value)
    {
        if (SimulatedHost* simulated = stage_.simulated())
            simulated_events_.emplace(simulated->kernel(), loop_);
        else
            listen_to_the_kernel();
        if (bus)
            state_.emplace(loop_, pool_, *stage_.host);
        reconciler_.emplace(Reconciler::Surroundings{loop_, pool_, *stage_.host, *stage_.ledger, *stage_.breaker, write_watch(),
                                                     publisher_, read_clocks, state_ ? &*state_ : nullptr},
                            policy);
        wishes_.emplace(Wishes::Surroundings{loop_, pool_, *reconciler_, publisher_, *stage_.profile}, std::move(policy),
                        chosen_profile());
        announcements_.emplace(loop_, *reconciler_, publisher_,
                               [simulated = stage_.host->simulated()] { return !simulated && udev_runs(); });
        if (simulated_events_)
            simulated_events_->deliver_to(*announcements_);
        if (stage_.cast)
            story_.emplace(
                loop_, *options_.story, *stage_.cast, [this](const std::string& text) { tell(text); },
                [this] { story_ended(); });
        for (const auto& [group, monitor] :
             {std::pair{UeventMonitor::Group::kernel, &kernel_events_}, std::pair{UeventMonitor::Group::udev, &udev_events_}})
            if (*monitor)
                announcements_->hears(group);
        for (const int signal : {SIGTERM, SIGINT})
            sources_.push_back(loop_.on_signal(signal, [this] { stop(); }));
        sources_.push_back(loop_.on_signal(SIGHUP, [this] { reload([](const Errors&) {}); }));
        loop_.serve_watchdog();
        if (bus)
            door_.emplace(std::move(bus), loop_, inside());
        else if (wishes_->policy().daemon.follow.value != Follow::none)
            publisher_.say(LogLevel::warning, Happening::configuration,
                           "daemon.follow has no effect without D-Bus: daemon.profile counts");
    }

    int run()
    {
        if (door_)
            if (const auto opened = door_->open(); !opened) {
                publisher_.say(LogLevel::error, Happening::trouble,
                               opened.error().text()
                                   + "; is another nvmepolicyd running, or does the bus have no policy for it?");
                return exit_no_bus;
            }
        reconciler_->look_at_power();
        reconciler_->enumerate();
        publisher_.say(
            LogLevel::info, Happening::started,
            fmt::format("nvmepolicyd {} started{}", NVMEPOLICY_VERSION, simulated_events_ ? ", on SIMULATED drives" : ""));
        if (story_)
            begin_story();
        sd_notify(0, "READY=1\nSTATUS=Following the machine");
        return loop_.run();
    }

private:
    void listen_to_the_kernel()
    {
        subscribe(UeventMonitor::Group::kernel, kernel_events_);
        subscribe(UeventMonitor::Group::udev, udev_events_);
        if (auto watch = AttributeWatch::start()) {
            watch_.emplace(*std::move(watch));
            sources_.push_back(loop_.on_readable(watch_->descriptor(), [this] { attributes_written(); }));
        } else
            publisher_.say(LogLevel::warning, Happening::trouble, watch.error().text());
        if (LeftBehind* children = stage_.left_behind())
            sources_.push_back(loop_.on_readable(children->descriptor(), [children] { children->reap(); }));
        resume_timer_ = make_resume_timer();
        if (resume_timer_)
            sources_.push_back(loop_.on_readable_first(resume_timer_.get(), [this] { clock_was_set(); }));
    }

    [[nodiscard]] WriteWatch* write_watch()
    {
        if (simulated_events_)
            return &*simulated_events_;
        return watch_ ? &*watch_ : nullptr;
    }

    std::optional<ChosenProfile> chosen_profile() const
    {
        std::optional<Refusal> complaint;
        auto chosen = stage_.profile->read(complaint);
        if (complaint)
            publisher_.say(LogLevel::warning, Happening::configuration,
                           complaint->text() + "; the profile that was chosen is not known, and daemon.profile counts");
        return chosen;
    }

    bus::Inside inside()
    {
        return {loop_,
                publisher_,
                *reconciler_,
                *wishes_,
                *state_,
                stage_.host->simulated(),
                [this](const Outcome& seen) { return plan_by(seen, reconciler_->circumstances(), *stage_.ledger); },
                [this](std::function<void(const Errors&)> done) { reload(std::move(done)); },
                [this] { return configuration_errors_; },
                [this] { reconciler_->resumed(); },
                [this](const std::string& why) {
                    if (stopping_)
                        return; // Values are being put back, which needs no bus.
                    publisher_.say(LogLevel::error, Happening::stopping,
                                   "D-Bus is lost, so this ends to be started again; what was set stays: " + why);
                    loop_.exit(exit_no_bus);
                }};
    }

    void begin_story()
    {
        tell(fmt::format("{}: {}", options_.story->name, options_.story->shows));
        story_->begin();
    }

    void tell(const std::string& text) const { publisher_.say(LogLevel::info, Happening::story, "story: " + text); }

    void story_ended()
    {
        if (options_.story_loop)
            return begin_story();
        tell("the end");
        stop();
    }

    void subscribe(UeventMonitor::Group group, std::optional<UeventMonitor>& monitor)
    {
        auto subscribed = UeventMonitor::subscribe(group);
        if (!subscribed) {
            publisher_.say(LogLevel::warning, Happening::trouble, subscribed.error().text());
            return;
        }
        monitor.emplace(*std::move(subscribed));
        sources_.push_back(loop_.on_readable(monitor->descriptor(), [this, group, &monitor] { drain(group, *monitor); }));
    }

    void drain(UeventMonitor::Group group, UeventMonitor& monitor)
    {
        Uevent event;
        for (;;) {
            switch (monitor.next(event)) {
            case UeventMonitor::Reading::nothing: return;
            case UeventMonitor::Reading::overflow:
                announcements_->events_lost(group == UeventMonitor::Group::kernel ? "uevents" : "udev's events");
                break;
            case UeventMonitor::Reading::event: announcements_->event(group, event); break;
            }
        }
    }

    void attributes_written()
    {
        bool overflow = false;
        const std::vector<std::string> written = watch_->written(overflow);
        announcements_->written(written, overflow);
    }

    void clock_was_set()
    {
        std::uint64_t expirations = 0;
        static_cast<void>(::read(resume_timer_.get(), &expirations, sizeof expirations)); // ECANCELED, and armed anew
        announcements_->clock_was_set();
    }

    void reload(std::function<void(const Errors&)> done)
    {
        if (stopping_)
            return done({Refusal{"", "", "the service is stopping"}});
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000);
        // A disk may be slow, and it may be the one that hangs.
        pool_.submit([this, number = ++reloads_, done = std::move(done)] {
            PolicyReading reading = load_policy({.vendor_directory = this_installation().vendor_directory}, options_.config);
            loop_.post([this, number, reading = std::move(reading), done] {
                reloaded(number, reading);
                done(reading.errors);
            });
        });
    }

    void reloaded(std::uint64_t number, const PolicyReading& reading)
    {
        if (number < reload_applied_ || stopping_)
            return; // A later one was faster.
        reload_applied_ = number;
        configuration_errors_ = reading.errors;
        for (const Refusal& error : reading.errors)
            publisher_.say(LogLevel::error, Happening::configuration, error.text());
        if (reading.errors.empty()) {
            publisher_.say(LogLevel::info, Happening::configuration, "the configuration was read again");
            on_exit_ = reading.policy.daemon.on_exit.value;
            Policy policy = reading.policy;
            if (!may_write_ && !policy.daemon.dry_run.value)
                publisher_.say(LogLevel::warning, Happening::configuration,
                               "it stays a dry run: what writing needs was not set up at the start");
            policy.daemon.dry_run.value = policy.daemon.dry_run.value || !may_write_;
            wishes_->configure(std::move(policy));
        } else {
            publisher_.say(LogLevel::error, Happening::configuration,
                           "the configuration has errors, so the one that is running stays");
            if (state_)
                state_->circumstances_changed();
        }
        sd_notify(0, "READY=1");
    }

    void stop()
    {
        if (stopping_)
            return;
        stopping_ = true;
        story_.reset();
        sd_notify(0, "STOPPING=1");
        reconciler_->stop();
        publisher_.say(LogLevel::info, Happening::stopping, "stopping");
        sources_.push_back(loop_.after(time_to_stop, [this] {
            publisher_.say(
                LogLevel::warning, Happening::stopping,
                "a drive or the disk did not answer in time, so not everything was put back; nvmepolicyd --restore does");
            loop_.exit(exit_failed);
        }));
        const bool put_back = may_write_ && on_exit_ == OnExit::restore;
        pool_.submit([this, put_back] {
            std::vector<Restored> restored;
            if (put_back) {
                const auto hurried = stage_.hurried(time_to_restore);
                restored = restore(hurried ? *hurried : *stage_.host, *stage_.ledger);
            }
            const auto ended = stage_.breaker->end_trials(not_put_back(restored));
            static_cast<void>(stage_.profile->save()); // whoever chose it may just have been told that it is done
            loop_.post([this, restored = std::move(restored), ended] { stopped(restored, ended); });
        });
    }

    void stopped(const std::vector<Restored>& restored, const Result<void>& ended)
    {
        int code = exit_done;
        for (const Restored& r : restored) {
            publisher_.say(r.in_order() ? LogLevel::info : LogLevel::warning, Happening::stopping, restored_text(r));
            if (!r.in_order())
                code = exit_failed;
        }
        if (!ended)
            publisher_.say(LogLevel::error, Happening::stopping, ended.error().text());
        loop_.exit(code);
    }

    const Options& options_;
    Stage stage_;
    EventLoop loop_; // before everything that watches on it
    Publisher publisher_;
    WorkerPool pool_;
    std::optional<UeventMonitor> kernel_events_;
    std::optional<UeventMonitor> udev_events_;
    std::optional<AttributeWatch> watch_;
    std::optional<SimulatedEvents> simulated_events_;
    std::optional<StoryPlayer> story_;
    UniqueFd resume_timer_;
    std::optional<CurrentState> state_; ///< none: nobody asks for it
    std::optional<Reconciler> reconciler_;
    std::optional<Wishes> wishes_;
    std::optional<bus::Door> door_;
    Errors configuration_errors_; ///< of the last reading
    std::optional<Announcements> announcements_;
    std::vector<EventLoop::Source> sources_;
    OnExit on_exit_;
    bool may_write_;
    std::uint64_t reloads_ = 0;
    std::uint64_t reload_applied_ = 0;
    bool stopping_ = false;
};

/// In every thread that comes: they are the loop's.
void block_signals()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&signals, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGPIPE, SIG_IGN); // NOLINT: whoever read standard error may have gone
}

} // namespace

int run_service(const Options& options, const Log& log)
{
    // First: a bus that does not answer must not keep a signal from ending this.
    std::unique_ptr<sdbus::IConnection> bus;
    if (options.bus != "none") {
        auto connected = bus::connect(options.bus);
        if (!connected) {
            log.say(LogLevel::error, connected.error().text() + "; --bus none runs without");
            return exit_no_bus;
        }
        bus = *std::move(connected);
    }
    block_signals();
    PolicyReading reading = load_policy({.vendor_directory = this_installation().vendor_directory}, options.config);
    for (const Refusal& error : reading.errors)
        log.say(LogLevel::error, error.text());
    if (!reading.errors.empty())
        return exit_usage;
    if (options.dry_run)
        reading.policy.daemon.dry_run.value = true;
    auto stage = set_stage(options, !reading.policy.daemon.dry_run.value, log);
    if (!stage)
        return exit_failed;
    Journal journal(options.log_level);
    // Workers may be waiting for a drive; neither they nor anything that they use may be waited for or torn down.
    int code = exit_failed;
    try {
        code = (new Service(options, journal, std::move(reading.policy), *std::move(stage), std::move(bus)))->run();
    } catch (const std::exception& error) {
        log.say(LogLevel::error, error.what());
    }
    std::fflush(nullptr);
    std::_Exit(code);
}

} // namespace nvmepolicy
