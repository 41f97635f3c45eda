// SPDX-License-Identifier: LGPL-2.1-or-later
#include "process.h"

#include <algorithm>
#include <utility>

namespace nvmepolicy::simulation {
namespace {

// As in the service.
constexpr std::size_t most_workers = 32;
constexpr Milliseconds time_to_restore{2'000};
constexpr Milliseconds time_to_stop{2'500};

} // namespace

Patience service_patience()
{
    return {std::chrono::seconds(65)};
}

Process::Process(const Machine& machine, Policy policy)
    : in_(machine)
    , loop_(machine.scheduler, machine.dice, machine.trace)
    , workers_(machine.scheduler, most_workers)
    , waiting_(machine.scheduler)
    , host_(machine.kernel, waiting_, service_patience())
    , publisher_(*this)
    , policy_(std::move(policy))
{
    auto ledger = LedgerStore::open(ledger_file, in_.storage);
    if (!ledger) {
        refused_ = ledger.error();
        return;
    }
    ledger_ = *std::move(ledger);
    std::optional<Refusal> complaint;
    breaker_ = BreakerStore::open(state_directory, runtime_directory, complaint, in_.storage);
    reconciler_.emplace(Reconciler::Surroundings{loop_, workers_, host_, *ledger_, *breaker_, this, publisher_,
                                                 [this] {
                                                     return Clocks{in_.scheduler.now(), in_.asleep};
                                                 }},
                        policy_);
    announcements_.emplace(loop_, *reconciler_, publisher_, [this] { return in_.udev_runs; });
    announcements_->hears(UeventMonitor::Group::kernel);
    announcements_->hears(UeventMonitor::Group::udev);
    reconciler_->look_at_power();
    reconciler_->enumerate();
}

void Process::watch(const std::string& controller)
{
    const auto c = in_.kernel.find(controller);
    if (c && c->tolerance_file)
        watched_[controller] = c->object;
}

void Process::file_written(const SimulatedController& c)
{
    const auto watched = watched_.find(c.name);
    if (watched == watched_.end() || watched->second != c.object)
        return;
    if (std::ranges::find(written_, c.name) == written_.end())
        written_.push_back(c.name);
}

void Process::say(const JournalLine& line)
{
    in_.trace.say(in_.scheduler.now(), "journal: {}", line.text);
}

void Process::reload(Policy policy)
{
    policy_ = policy;
    reconciler_->configure(std::move(policy));
}

void Process::stop()
{
    if (std::exchange(stopping_, true))
        return;
    reconciler_->stop();
    sources_.push_back(loop_.after(time_to_stop, [this] { ended_ = 1; }));
    workers_.submit([this] {
        std::vector<Restored> restored;
        if (policy_.daemon.on_exit.value == OnExit::restore) {
            SimulatedHost hurried(host_, {time_to_restore, waiting_.now() + time_to_restore});
            restored = restore(hurried, *ledger_, 1);
        }
        static_cast<void>(breaker_->end_trials(not_put_back(restored)));
        loop_.post([this] { ended_ = 0; });
    });
}

bool Process::has_work() const
{
    return loop_.has_work() || kernel_events.has_news() || udev_events.has_news() || !written_.empty() || file_events_lost
           || clock_was_set;
}

void Process::deliver(UeventMonitor::Group group, Channel& channel)
{
    const char* const name = group == UeventMonitor::Group::kernel ? "kernel" : "udev";
    if (std::exchange(channel.lost, false)) {
        in_.trace.say(in_.scheduler.now(), "loop: {} events were lost", name);
        return announcements_->events_lost(name);
    }
    const Uevent event = channel.events.front();
    channel.events.pop_front();
    in_.trace.say(in_.scheduler.now(), "loop: {} event {} {} {}", name, event.action, event.name, event.nvme_event);
    announcements_->event(group, event);
}

void Process::turn()
{
    std::vector<std::function<void()>> choices;
    if (loop_.has_work())
        choices.emplace_back([this] { loop_.turn(); });
    if (kernel_events.has_news())
        choices.emplace_back([this] { deliver(UeventMonitor::Group::kernel, kernel_events); });
    if (udev_events.has_news())
        choices.emplace_back([this] { deliver(UeventMonitor::Group::udev, udev_events); });
    if (!written_.empty() || file_events_lost)
        choices.emplace_back([this] {
            const std::vector<std::string> names = std::exchange(written_, {});
            in_.trace.say(in_.scheduler.now(), "loop: files were written: {}", fmt::join(names, ", "));
            announcements_->written(names, std::exchange(file_events_lost, false));
        });
    if (clock_was_set)
        choices.emplace_back([this] {
            clock_was_set = false;
            announcements_->clock_was_set();
        });
    choices[in_.dice.below(choices.size())]();
}

} // namespace nvmepolicy::simulation
