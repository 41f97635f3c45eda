// SPDX-License-Identifier: LGPL-2.1-or-later
#include "world.h"

#include <algorithm>
#include <array>
#include <utility>

namespace nvmepolicy::simulation {
namespace {

constexpr std::uint64_t most_steps = 200'000;
constexpr Milliseconds comes_to_rest_within{std::int64_t{30} * 60 * 1000};

LatencyTolerance us(std::int64_t limit)
{
    return LatencyTolerance::of(Microseconds{limit});
}

} // namespace

World::World(std::uint64_t seed, const std::vector<DriveFile>& drives, bool print, bool fingerprint)
    : dice_(seed)
    , trace_(print)
{
    if (fingerprint)
        trace_.take_fingerprint();
    kernel_.announce = [this](const Uevent& event) { announce(event); };
    kernel_.tolerance_written = [this](const SimulatedController& c) {
        if (service_)
            service_->file_written(c);
    };
    kernel_.requested = [this](const SimulatedController& c, const std::string& request,
                               const std::shared_ptr<PendingCall>& call) {
        storage_.latest.reset(); // Whoever was in it has returned.
        invariants_.requested(c, request, call);
    };
    kernel_.stored = [this](const SimulatedController& c, const LatencyTolerance& before, bool by_us) {
        trace_.say(scheduler_.now(), "{} holds {}, set by {}", c.name, c.tolerance.kernel_text(),
                   by_us ? "us" : "somebody else");
        invariants_.stored(c, before, by_us);
    };
    set_up(drives);
}

World::~World()
{
    scheduler_.end_all(); // while what their work uses is still there
}

void World::set_up(const std::vector<DriveFile>& drives)
{
    constexpr std::array<std::uint64_t, 8> parameters{100000, 100000, 100000, 100000, 25000, 0, 5500, 4294967295};
    kernel_.version = dice_.one_in(2) ? KernelVersion::linux_6_1 : KernelVersion::linux_6_12;
    kernel_.machine.default_ps_max_latency_us = dice_.any_of<std::uint64_t>(parameters);
    kernel_.machine.power_source = dice_.one_in(2) ? PowerSource::battery : PowerSource::ac;
    udev_runs_ = !dice_.one_in(4);
    scheduler_.mix(1 + dice_.below(6));
    storage_.files[std::string(runtime_directory) + "/boot"] = "this-boot";
    const std::size_t count = 1 + dice_.below(4);
    for (std::size_t i = 0; i < count; ++i)
        drives_.push_back({dice_.any_of<DriveFile>(drives),
                           {fmt::format("nqn.2014-08.org.nvmexpress:simulated:{}", i),
                            fmt::format("SERIAL{}", i),
                            static_cast<std::uint16_t>(i),
                            {}}});
    inside_.assign(count, false);
    for (std::size_t i = 0; i < 3; ++i)
        firmwares_.push_back(dice_.any_of<DriveFile>(drives));
    left_to_befall_ = 2 + dice_.below(10);
}

Policy World::any_policy()
{
    constexpr std::array profiles{"performance", "balanced", "power-saver"};
    Policy policy;
    policy.daemon.profile.value = dice_.any_of<const char*>(profiles);
    policy.daemon.on_exit.value = dice_.one_in(4) ? OnExit::keep : OnExit::restore;
    policy.apst.on_conflict.value = dice_.one_in(3) ? OnConflict::enforce : OnConflict::yield;
    return policy;
}

// --- the machine goes on --------------------------------------------------------------------------------------------------

void World::announce(const Uevent& event)
{
    trace_.say(scheduler_.now(), "uevent: {} {} {}", event.action, event.name, event.nvme_event);
    invariants_.announced(event);
    if (service_)
        service_->kernel_events.events.push_back(event);
    if (!udev_runs_)
        return;
    if (udevd_.empty())
        udevd_done_at_ = scheduler_.now() + Milliseconds{dice_.one_in(8) ? dice_.between(0, 6000) : dice_.between(0, 30)};
    udevd_.push_back(event);
}

void World::udev_delivers()
{
    if (service_)
        service_->udev_events.events.push_back(udevd_.front());
    udevd_.pop_front();
}

/// One thing goes on; false: nothing can before time passes.
bool World::go_on()
{
    const bool udev_is_done = !udevd_.empty() && udevd_done_at_ <= scheduler_.now();
    const bool tasks = scheduler_.can_run();
    const bool loop = service_ && service_->has_work();
    const std::size_t choices = (udev_is_done ? 1U : 0U) + (tasks ? 4U : 0U) + (loop ? 2U : 0U);
    if (choices == 0)
        return false;
    ++steps_;
    storage_.latest.reset();
    std::size_t choice = dice_.below(choices);
    if (tasks && choice < 4)
        scheduler_.run_one();
    else {
        choice -= tasks ? 4U : 0U;
        if (loop && choice < 2)
            service_->turn();
        else
            udev_delivers();
    }
    if (storage_.latest && service_ && std::exchange(dies_in_append_, false)) {
        kill_service();
        return true;
    }
    if (service_ && service_->stopping())
        invariants_.restores();
    if (service_ && service_->ended()) {
        trace_.say(scheduler_.now(), "the service has ended with {}", *service_->ended());
        scheduler_.kill_processes();
        service_.reset();
        storage_.latest.reset();
        invariants_.ended();
    }
    return true;
}

void World::advance()
{
    std::optional<Milliseconds> next = scheduler_.next_deadline();
    const auto or_at = [&next](std::optional<Milliseconds> time) {
        if (time && (!next || *time < *next))
            next = time;
    };
    if (service_)
        or_at(service_->next_timer());
    if (!udevd_.empty())
        or_at(udevd_done_at_);
    if (befalling_ && left_to_befall_ > 0)
        or_at(next_befalls_at_);
    or_at(storage_is_cleared_at_);
    if (next)
        scheduler_.advance_to(*next);
    if (storage_is_cleared_at_ && *storage_is_cleared_at_ <= scheduler_.now())
        clear_storage();
    invariants_.time_passes();
    ++steps_;
}

void World::until_rest()
{
    const Milliseconds end = scheduler_.now() + comes_to_rest_within;
    while (!invariants_.broken()) {
        if (go_on())
            continue;
        if (scheduler_.tasks() == 0 && udevd_.empty() && (!service_ || !service_->next_timer()))
            return;
        if (scheduler_.now() > end || steps_ > most_steps)
            return invariants_.break_with("it comes to rest", "something goes on for ever although nothing happens any more");
        advance();
    }
}

// --- what befalls it ------------------------------------------------------------------------------------------------------

World::Held World::any_controller()
{
    const auto names = kernel_.names();
    return names.empty() ? nullptr : kernel_.find(names[dice_.below(names.size())]);
}

void World::in_the_kernel(const std::string& what, std::function<void()> work)
{
    count(what);
    trace_.say(scheduler_.now(), "--- {}", what);
    scheduler_.start(Scheduler::Owner::kernel, what, std::move(work));
}

void World::plug()
{
    std::vector<std::size_t> outside;
    for (std::size_t i = 0; i < drives_.size(); ++i)
        if (!inside_[i])
            outside.push_back(i);
    if (outside.empty())
        return;
    const std::size_t chosen = outside[dice_.below(outside.size())];
    inside_[chosen] = true;
    in_the_kernel("plug", [this, chosen] { kernel_.probe(drives_[chosen]); });
}

void World::unplug()
{
    if (const auto c = any_controller())
        in_the_kernel("unplug", [this, c] {
            if (c->leaving)
                return;
            kernel_.remove(c);
            inside_[c->id.cntlid] = false;
        });
}

void World::reset()
{
    if (const auto c = any_controller())
        in_the_kernel("reset", [this, c] { kernel_.reset(c); });
}

void World::new_firmware()
{
    if (const auto c = any_controller())
        in_the_kernel("reset with new firmware", [this, c, firmware = firmwares_[dice_.below(firmwares_.size())]]() mutable {
            // What the kernel's quirks hang on stays: it looks for them once in a controller's life.
            firmware.model = c->drive.model;
            firmware.pci_vendor_id = c->drive.pci_vendor_id;
            firmware.pci_device_id = c->drive.pci_device_id;
            invariants_.gets_firmware(*c); // at some time from now
            kernel_.reset(c, firmware);
            invariants_.gets_firmware(*c);
        });
}

void World::activate_firmware()
{
    if (const auto c = any_controller())
        in_the_kernel("firmware activation", [this, c] { kernel_.activate_firmware(c); });
}

void World::somebody_writes()
{
    static const std::array<LatencyTolerance, 7> values{
        us(0), us(5000), us(25000), us(60000), us(100000), LatencyTolerance::any(), LatencyTolerance::automatic()};
    if (const auto c = any_controller())
        in_the_kernel("foreign write", [this, c, value = dice_.any_of<LatencyTolerance>(values)] {
            static_cast<void>(kernel_.write_tolerance(c, value));
        });
}

void World::ac_plug()
{
    count("AC plug");
    const auto flips = static_cast<int>(1 + dice_.below(3));
    for (int i = 0; i < flips; ++i) {
        auto& source = kernel_.machine.power_source;
        source = source == PowerSource::ac ? PowerSource::battery : PowerSource::ac;
        invariants_.power_changes();
        announce({"power_supply", "change", "AC", ""});
    }
}

void World::reload()
{
    if (!service_ || service_->stopping())
        return;
    count("reload");
    trace_.say(scheduler_.now(), "--- reload");
    service_->reload(any_policy());
    invariants_.configured(service_->policy(), scheduler_.now());
}

void World::sicken()
{
    constexpr std::array kinds{"identify", "get-feature", "set-features"};
    const auto c = any_controller();
    if (!c)
        return;
    const std::string kind = dice_.any_of<const char*>(kinds);
    Fate fate;
    fate.times = static_cast<int>(1 + dice_.below(3));
    switch (dice_.below(3)) {
    case 0: fate.status = dice_.one_in(2) ? 0x4006 : 0x4002; break;
    case 1: fate.hang = Milliseconds{dice_.between(1, 3000)}; break;
    default: fate.hang = Milliseconds{dice_.between(3000, 90'000)}; break;
    }
    const std::string what = fmt::format("{} {}", kind, fate.status != 0 ? "fails" : "hangs");
    count(what);
    trace_.say(scheduler_.now(), "--- {}: {}", c->name, what);
    c->fates[kind] = fate;
    invariants_.falls_sick(*c);
    if (fate.status != 0 && kind == "set-features")
        invariants_.will_refuse(*c);
    if (fate.status == 0x4002)
        invariants_.will_refuse(*c);
}

void World::refuse()
{
    const auto c = any_controller();
    if (!c)
        return;
    count("drive refuses APST tables");
    c->refuses_apst = true;
    invariants_.will_refuse(*c);
}

void World::lose_events()
{
    if (!service_)
        return;
    count("events lost");
    trace_.say(scheduler_.now(), "--- events are lost");
    Channel& channel = dice_.one_in(2) ? service_->kernel_events : service_->udev_events;
    channel.events.clear();
    channel.lost = true;
    if (dice_.one_in(2))
        service_->file_events_lost = true;
}

void World::disturb_events()
{
    if (!service_)
        return;
    auto& events =
        (dice_.one_in(2) || service_->udev_events.events.empty() ? service_->kernel_events : service_->udev_events).events;
    if (events.empty()) {
        ++left_to_befall_; // later
        return;
    }
    if (events.size() > 1 && dice_.one_in(2) && events[0].name != events[1].name) {
        count("events reordered");
        std::swap(events[0], events[1]);
    } else {
        count("event doubled");
        events.push_front(events.front());
    }
}

void World::set_clock()
{
    if (!service_)
        return;
    count("clock set");
    service_->clock_was_set = true;
}

void World::fill_storage()
{
    count("storage full");
    // Sometimes a line fits where a whole file does not.
    storage_.room = dice_.one_in(2) ? dice_.below(100) : dice_.below(4000);
    storage_is_cleared_at_ = scheduler_.now() + Milliseconds{dice_.between(0, 200'000)};
    trace_.say(scheduler_.now(), "--- the storage has room for {} bytes", *storage_.room);
}

void World::clear_storage()
{
    storage_.room.reset();
    storage_is_cleared_at_.reset();
}

void World::start_service()
{
    count("service started");
    trace_.say(scheduler_.now(), "--- the service starts");
    const Process::Machine machine{dice_, trace_, scheduler_, kernel_, storage_, udev_runs_, asleep_};
    service_ = std::make_unique<Process>(machine, any_policy());
    if (service_->refused()) {
        invariants_.break_with("the ledger can always be read", service_->refused()->text());
        return;
    }
    invariants_.started({++processes_, false, &service_->policy(), Milliseconds{-1}, scheduler_.now()});
}

void World::kill_service()
{
    count("service killed");
    trace_.say(scheduler_.now(), "--- the service is killed");
    if (const auto append = std::exchange(storage_.latest, std::nullopt)) {
        count("append torn");
        storage_.tear(*append, dice_.below(append->text.size() + 1));
    }
    scheduler_.kill_processes();
    service_.reset();
    restoring_ = false;
    invariants_.ended();
}

void World::start_restore()
{
    count("restore");
    trace_.say(scheduler_.now(), "--- restore");
    restoring_ = true;
    invariants_.started({++processes_, true, nullptr, {}, {}});
    scheduler_.start(Scheduler::Owner::process, "restore", [this] {
        FiberWaiting waiting(scheduler_);
        SimulatedHost host(kernel_, waiting, service_patience());
        auto ledger = LedgerStore::open(ledger_file, storage_);
        if (!ledger)
            return invariants_.break_with("the ledger can always be read", ledger.error().text());
        restore_failed_ = false;
        for (const Restored& r : restore(host, **ledger, 1)) {
            trace_.say(scheduler_.now(), "restore: {} {}{}", r.name, static_cast<int>(r.result),
                       r.error ? ": " + r.error->text() : "");
            restore_failed_ = restore_failed_ || r.result == Restored::Result::failed;
        }
        restoring_ = false;
        invariants_.ended();
    });
}

void World::administrate()
{
    if (!service_)
        return restoring_ ? kill_service() : (dice_.one_in(3) ? start_restore() : start_service());
    if (dice_.one_in(3)) {
        count("service stopped");
        trace_.say(scheduler_.now(), "--- the service is told to stop");
        return service_->stop();
    }
    kill_service();
}

void World::befall()
{
    --left_to_befall_;
    switch (dice_.below(26)) {
    case 0:
    case 1:
    case 2: plug(); break;
    case 3:
    case 4: unplug(); break;
    case 5:
    case 6: reset(); break;
    case 7: new_firmware(); break;
    case 8: activate_firmware(); break;
    case 9:
    case 10:
    case 11: somebody_writes(); break;
    case 12: ac_plug(); break;
    case 13:
    case 14: reload(); break;
    case 15:
    case 16:
    case 17: sicken(); break;
    case 18: refuse(); break;
    case 19: lose_events(); break;
    case 20: disturb_events(); break;
    case 21: set_clock(); break;
    case 22: fill_storage(); break;
    case 23: dies_in_append_ = true; break;
    default: administrate(); break;
    }
    switch (dice_.below(4)) {
    case 0: break; // at once
    case 1: next_befalls_at_ = scheduler_.now() + Milliseconds{dice_.between(0, 20)}; break;
    case 2: next_befalls_at_ = scheduler_.now() + Milliseconds{dice_.between(0, 5'000)}; break;
    default: next_befalls_at_ = scheduler_.now() + Milliseconds{dice_.between(0, 120'000)}; break;
    }
}

// --- from beginning to end ------------------------------------------------------------------------------------------------

void World::let_time_pass()
{
    // Mostly while something goes on: that is where the rare orders are.
    if (left_to_befall_ > 0 && next_befalls_at_ <= scheduler_.now() && dice_.one_in(12))
        return befall();
    if (dice_.one_in(24))
        scheduler_.advance_to(scheduler_.now() + Milliseconds{dice_.between(1, 20)});
    if (go_on())
        return;
    if (left_to_befall_ > 0 && next_befalls_at_ <= scheduler_.now())
        return befall();
    advance();
}

/// From here on nothing befalls the machine, and every drive answers.
void World::heal()
{
    trace_.say(scheduler_.now(), "--- nothing befalls it any more");
    for (const std::string& name : kernel_.names()) {
        const auto c = kernel_.find(name);
        c->fates.clear();
        c->refuses_apst = false;
    }
    clear_storage();
    dies_in_append_ = false;
    until_rest();
    if (!service_ && !invariants_.broken())
        start_service();
    until_rest();
}

void World::check_rest()
{
    for (const std::string& name : kernel_.names())
        scheduler_.start(Scheduler::Owner::kernel, "a look from outside", [this, name] {
            FiberWaiting waiting(scheduler_);
            SimulatedHost host(kernel_, waiting, service_patience());
            const auto ledger = LedgerStore::open(ledger_file, storage_);
            if (!ledger)
                return invariants_.break_with("the ledger can always be read", ledger.error().text());
            std::optional<Refusal> complaint;
            const auto breaker = BreakerStore::open(state_directory, runtime_directory, complaint, storage_);
            Circumstances now;
            now.machine = kernel_.machine;
            now.policy = service_->policy();
            now.wish.profile = now.policy.daemon.profile.value;
            now.breaker = breaker.get();
            Session session;
            session.now = scheduler_.now();
            // What the service knows and a look from outside does not: who has put an original there.
            if (const auto c = kernel_.find(name); c && !invariants_.holds_ours(*c))
                session.memory = SessionMemory{.object = c->object, .may_be_restored = false};
            invariants_.at_rest(look(host, name, now, **ledger, &session));
        });
    const auto requested = std::exchange(kernel_.requested, nullptr);
    until_rest();
    kernel_.requested = requested;
}

void World::end()
{
    if (dice_.one_in(2))
        service_->stop();
    else
        kill_service();
    until_rest();
    if (invariants_.broken())
        return;
    start_restore();
    until_rest();
    if (restore_failed_)
        invariants_.break_with("the ledger restores exactly", "a restore fails on a machine where nothing is wrong");
    invariants_.restored();
}

Ending World::run(Counts& counts)
{
    counts_ = &counts;
    for (std::size_t i = 0; i < drives_.size(); ++i)
        if (!dice_.one_in(3))
            plug();
    if (dice_.one_in(2))
        until_rest();
    start_service();
    befalling_ = true;
    while (left_to_befall_ > 0 && !invariants_.broken() && steps_ < most_steps)
        let_time_pass();
    for (const auto& stage : {&World::heal, &World::check_rest, &World::end})
        if (!invariants_.broken()) {
            befalling_ = false;
            (this->*stage)();
        }
    return {invariants_.broken(), trace_.fingerprint(), steps_};
}

} // namespace nvmepolicy::simulation
