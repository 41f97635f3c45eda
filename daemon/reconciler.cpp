// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reconciler.h"

#include <algorithm>
#include <set>
#include <utility>

#include "host/observe.h"

namespace nvmepolicy {
namespace {

constexpr Milliseconds stuck_after{5'000};
constexpr Milliseconds longest_wait_to_settle{2'000};
constexpr Milliseconds first_pause{500};
constexpr Milliseconds longest_pause{60'000};
/// About six minutes. Resets end in `connected`, but the activation of a firmware does not; it has one minute where the drive
/// does not ask for more. Source: nvme_fw_act_work().
constexpr int most_looks_at_one_not_live = 12;
constexpr int writes_looked_at_at_once = 3;
constexpr Milliseconds pause_between_written_looks{5'000};
/// Resets so soon after a resume are the resume's.
constexpr Milliseconds resume_settles{30'000};
/// Less may have passed between two readings of the clocks, on a busy machine.
constexpr Milliseconds shortest_sleep{500};

bool not_live(const Outcome& o)
{
    return !o.controller || o.controller->state != ControllerState::live; // without one: not known to the kernel yet
}

/// Things that pass by themselves are worth another look; the others wait for an event.
bool passes(const Outcome& o)
{
    if (o.error)
        return o.error->kind == RefusalKind::try_later || o.error->kind == RefusalKind::timed_out;
    if (!o.controller || o.controller->state == ControllerState::dead)
        return false;
    return o.refused(RefusalKind::try_later) || o.refused(RefusalKind::timed_out);
}

} // namespace

std::optional<Milliseconds> pause_before_next_look(int failures, bool not_live)
{
    if (not_live && failures >= most_looks_at_one_not_live)
        return std::nullopt;
    return std::min(first_pause * (1 << std::min(failures, 10)), longest_pause);
}

struct Reconciler::Object {
    std::string name;
    std::uint64_t incarnation = 0; ///< tells this object from an earlier one of that name
    bool dirty = false;
    bool running = false;
    bool connected_meanwhile = false; ///< since the running job was started, which knows nothing of it
    bool claiming = false;            ///< the running job does so
    bool claim = false;               ///< the next look claims back what somebody else left
    bool was_not_live = false;        ///< at the last look
    bool is_stuck = false;            ///< the running job hangs with its drive
    int failures = 0;                 ///< looks in a row that ended in something passing
    int written_looks = 0;
    Milliseconds written_since{0};
    SessionMemory memory;
    /// Counts what was wanted of it. Jobs look at it, also when we are gone.
    std::shared_ptr<std::atomic<std::uint64_t>> wishes = std::make_shared<std::atomic<std::uint64_t>>(0);
    std::optional<ControllerId> id;
    bool deeper_than_at_boot = false;
    Loop::Source retry;
    Loop::Source stuck;
};

struct Reconciler::Waiter {
    Loop::Callback callback;
    Loop::Source deadline;
};

Reconciler::Reconciler(const Surroundings& surroundings, Policy policy, std::optional<Wish> wish)
    : in_(surroundings)
    , asleep_(in_.clocks().asleep)
{
    auto first = std::make_shared<Circumstances>();
    first->breaker = &in_.breaker;
    first->wish = wish ? *std::move(wish) : wish_of(policy);
    first->policy = std::move(policy);
    now_ = std::move(first);
}

Reconciler::~Reconciler() = default;

Reconciler::Object& Reconciler::object(const std::string& controller)
{
    auto& slot = objects_[controller];
    if (!slot) {
        slot = std::make_unique<Object>();
        slot->name = controller;
        slot->incarnation = next_incarnation_++;
    }
    return *slot;
}

void Reconciler::configure(Policy policy, std::optional<Wish> wish)
{
    auto next = std::make_shared<Circumstances>(*now_);
    next->wish = wish ? *std::move(wish) : wish_of(policy);
    next->policy = std::move(policy);
    now_ = std::move(next);
    claim();
}

void Reconciler::want(const Wish& wish)
{
    const Circumstance before = now_;
    auto next = std::make_shared<Circumstances>(*now_);
    next->wish = wish;
    now_ = std::move(next);
    const auto held = [](const Wish& w, const ControllerId& id) {
        const auto found = w.holds_on.find(id);
        return found == w.holds_on.end() ? std::optional<LatencyHold>{} : found->second;
    };
    const Wish& was = before->wish;
    const bool concerns_all = was.profile != wish.profile || was.held_by != wish.held_by || was.holds != wish.holds;
    const bool concerns_some = was.holds_on != wish.holds_on;
    if (!concerns_all && !concerns_some)
        return;
    for (auto& [name, object] : objects_)
        if (concerns_all || !object->id || held(was, *object->id) != held(wish, *object->id))
            wish_changed(*object);
}

void Reconciler::claim()
{
    for (auto& [name, object] : objects_) {
        object->claim = true;
        wish_changed(*object);
    }
}

void Reconciler::wish_changed(Object& o)
{
    ++*o.wishes;
    schedule(o);
}

void Reconciler::when_settled(Loop::Callback callback)
{
    auto waiter = std::make_unique<Waiter>();
    waiter->callback = std::move(callback);
    waiter->deadline = in_.loop.after(unsettled_.empty() && machine_known_ ? Milliseconds{0} : longest_wait_to_settle,
                                      [this, raw = waiter.get()] {
                                          const auto found = std::ranges::find(waiters_, raw, &std::unique_ptr<Waiter>::get);
                                          const auto ended = std::move(*found);
                                          waiters_.erase(found);
                                          ended->callback();
                                      });
    waiters_.push_back(std::move(waiter));
}

void Reconciler::settled(const std::string& controller)
{
    unsettled_.erase(controller);
    if (!unsettled_.empty())
        return;
    for (const auto& waiter : std::exchange(waiters_, {}))
        waiter->callback();
}

void Reconciler::clear_breaker(const std::string& controller, std::function<void(const Result<void>&)> reply)
{
    if (stopping_)
        return reply(Refusal{controller, "", "its breaker is not cleared while the service is stopping"});
    const auto found = objects_.find(controller);
    if (found == objects_.end() || !found->second->id)
        return reply(Refusal{controller, "", "its breaker cannot be cleared while it cannot be identified"});
    in_.pool.submit([this, id = *found->second->id, controller, reply = std::move(reply)] {
        const auto cleared = in_.breaker.clear(id);
        in_.loop.post([this, id, controller, cleared, reply] {
            if (cleared) {
                drop_outs_.erase(id);
                in_.publisher.breaker_cleared(controller, since_boot());
                if (const auto object = objects_.find(controller); object != objects_.end())
                    wish_changed(*object->second);
            }
            if (!cleared && cleared.error().kind == RefusalKind::absent)
                return reply(Refusal{controller, "", "its breaker has not tripped"});
            reply(cleared);
        });
    });
}

void Reconciler::look_at_power()
{
    // Batteries are asked through firmware, which may take its time.
    in_.pool.submit([this, reading = ++power_readings_] {
        std::vector<Refusal> complaints;
        Machine machine = observe_machine(in_.host, complaints);
        in_.loop.post([this, reading, machine, complaints = std::move(complaints)] {
            if (reading < power_reading_applied_)
                return; // A later one was faster.
            power_reading_applied_ = reading;
            for (const Refusal& complaint : complaints)
                if (std::ranges::find(complaints_, complaint) == complaints_.end())
                    in_.publisher.say(LogLevel::warning, Happening::trouble, complaint.text());
            complaints_ = complaints;
            const bool changed = !machine_known_ || machine.power_source != now_->machine.power_source;
            if (machine_known_ && changed)
                in_.publisher.say(LogLevel::info, Happening::power_source,
                                  machine.power_source == PowerSource::battery ? "on battery" : "on AC");
            machine_known_ = true;
            auto next = std::make_shared<Circumstances>(*now_);
            next->machine = machine;
            now_ = std::move(next);
            if (changed && in_.listener)
                in_.listener->circumstances_changed();
            if (!changed)
                return;
            for (auto& [name, object] : objects_)
                wish_changed(*object);
        });
    });
}

void Reconciler::enumerate()
{
    // What comes while the list is being made is not on it, and has not left.
    in_.pool.submit([this, younger = next_incarnation_] {
        auto names = controller_names(in_.host);
        in_.loop.post([this, younger, names = std::move(names)] {
            if (!names) {
                in_.publisher.say(LogLevel::error, Happening::trouble, names.error().text());
                return;
            }
            const std::set<std::string> there(names->begin(), names->end());
            std::vector<std::string> vanished;
            for (const auto& [name, object] : objects_)
                if (object->incarnation < younger && !there.contains(name))
                    vanished.push_back(name);
            for (const std::string& name : vanished)
                removed(name);
            for (const std::string& name : *names)
                mark_dirty(name);
        });
    });
}

void Reconciler::mark_dirty(const std::string& controller)
{
    schedule(object(controller));
}

void Reconciler::mark_all_dirty()
{
    for (auto& [name, object] : objects_)
        schedule(*object);
}

void Reconciler::written(const std::string& controller)
{
    const auto found = objects_.find(controller);
    if (found == objects_.end())
        return;
    Object& o = *found->second;
    const Milliseconds now = since_boot();
    if (now - o.written_since > pause_between_written_looks) {
        o.written_since = now;
        o.written_looks = 0;
    }
    if (++o.written_looks <= writes_looked_at_at_once)
        schedule(o);
    else if (!o.retry)
        look_again(o, pause_between_written_looks);
}

void Reconciler::connected(const std::string& controller)
{
    Object& o = object(controller);
    if (o.id)
        dropped_out(o);
    forget_stubborn_table(o.memory);
    o.connected_meanwhile = true;
    o.failures = 0;
    schedule(o);
}

void Reconciler::removed(const std::string& controller)
{
    const auto found = objects_.find(controller);
    if (found == objects_.end())
        return;
    dropped_out(*found->second);
    ++*found->second->wishes; // Whatever takes its name or its place is another one's job.
    if (in_.watch)
        in_.watch->forget(controller);
    objects_.erase(found);
    due_.erase(controller);
    in_.publisher.left(controller, since_boot());
    if (in_.listener)
        in_.listener->left(controller);
    settled(controller);
}

void Reconciler::dropped_out(Object& o)
{
    const Clocks clocks = in_.clocks();
    const Milliseconds now = clocks.since_boot;
    notice_sleep(clocks);
    if (!o.id || !o.deeper_than_at_boot || now - resumed_at_ < resume_settles)
        return;
    if (!note_drop_out(drop_outs_[*o.id], now))
        return;
    const std::string reason = "it dropped out three times within an hour while it was allowed into deeper sleep than at boot";
    in_.publisher.breaker(o.name, reason, now);
    in_.pool.submit([this, id = *o.id, reason, name = o.name] {
        const auto tripped = in_.breaker.trip(id, reason);
        in_.loop.post([this, tripped, name] {
            if (!tripped)
                in_.publisher.say(LogLevel::error, Happening::trouble, tripped.error().text());
            if (objects_.contains(name))
                mark_dirty(name);
        });
    });
}

/// The resume's own event may be handled after the resets that it brought, so the clocks are asked.
void Reconciler::notice_sleep(const Clocks& now)
{
    if (now.asleep - asleep_ > shortest_sleep)
        resumed_at_ = now.since_boot;
    asleep_ = now.asleep;
}

void Reconciler::resumed()
{
    const Clocks now = in_.clocks();
    notice_sleep(now); // Or the next drop-out, hours later, would be taken for this resume's.
    resumed_at_ = now.since_boot;
    look_at_power();
    enumerate();
}

void Reconciler::schedule(Object& o)
{
    o.dirty = true;
    if (!o.running)
        due_.insert(o.name);
    if (!o.is_stuck)
        unsettled_.insert(o.name);
    if (!soon_)
        soon_ = in_.loop.soon([this] { run_dirty(); });
}

void Reconciler::run_dirty()
{
    soon_.reset();
    if (!machine_known_ || stopping_)
        return; // look_at_power() marks everything once it knows.
    for (const std::string& name : std::exchange(due_, {}))
        if (const auto found = objects_.find(name); found != objects_.end() && found->second->dirty && !found->second->running)
            start(*found->second);
}

void Reconciler::start(Object& o)
{
    o.dirty = false;
    o.running = true;
    o.connected_meanwhile = false;
    o.retry.reset();
    if (in_.watch)
        in_.watch->watch(o.name); // before the look, or a write slips in between
    o.stuck = in_.loop.after(stuck_after, [this, name = o.name] {
        in_.publisher.stuck(name, stuck_after, since_boot());
        catch_up_later();
        if (in_.listener)
            in_.listener->stuck(name);
        objects_.at(name)->is_stuck = true;
        settled(name);
    });
    o.claiming = std::exchange(o.claim, false);
    Session session{&in_.breaker, o.memory, since_boot(), o.wishes.get(), *o.wishes, o.claiming, in_.listener != nullptr};
    in_.pool.submit([this, name = o.name, incarnation = o.incarnation, now = now_, wishes = o.wishes, session]() mutable {
        Outcome outcome = now->policy.daemon.dry_run.value ? look(in_.host, name, *now, in_.ledger, &session)
                                                           : reconcile(in_.host, name, *now, in_.ledger, &session);
        in_.loop.post([this, name, incarnation, outcome = std::move(outcome), memory = session.memory] {
            finished(name, incarnation, outcome, memory);
        });
    });
}

void Reconciler::finished(const std::string& controller, std::uint64_t incarnation, const Outcome& outcome,
                          const SessionMemory& memory)
{
    const auto found = objects_.find(controller);
    if (found == objects_.end() || found->second->incarnation != incarnation)
        return; // It left meanwhile, and perhaps another one has its name.
    Object& o = *found->second;
    o.running = false;
    o.is_stuck = false;
    o.stuck.reset();
    if (!outcome.superseded)
        o.memory = memory;
    if (o.connected_meanwhile)
        forget_stubborn_table(o.memory);
    if (outcome.controller) {
        o.id = outcome.controller->id;
        o.deeper_than_at_boot = outcome.deeper_than_at_boot.value_or(o.deeper_than_at_boot);
    }
    if (outcome.superseded) {
        o.claim = o.claim || o.claiming;
        schedule(o);
        return;
    }
    in_.publisher.outcome(outcome, since_boot());
    catch_up_later();
    if (in_.listener)
        in_.listener->looked(outcome);
    const bool judged = outcome.controller && outcome.controller->tolerance && !outcome.error && !passes(outcome);
    if (!judged)
        o.claim = o.claim || o.claiming; // It could not come to a write.

    // Looks that failed for another reason do not use up those at a controller that will be live in a moment.
    if (std::exchange(o.was_not_live, not_live(outcome)) != not_live(outcome))
        o.failures = 0;
    if (outcome.foreign.stand == ForeignStand::wait)
        look_again(o, outcome.foreign.pause);
    else if (!passes(outcome))
        o.failures = 0;
    else if (const auto pause = pause_before_next_look(o.failures, not_live(outcome))) {
        ++o.failures;
        look_again(o, *pause);
    }
    if (o.dirty)
        schedule(o);
    else
        settled(controller);
}

void Reconciler::look_again(Object& o, Milliseconds delay)
{
    o.retry = in_.loop.after(delay, [this, name = o.name] {
        const auto found = objects_.find(name);
        if (found == objects_.end())
            return;
        found->second->retry.reset();
        schedule(*found->second);
    });
}

void Reconciler::catch_up_later()
{
    const auto due = in_.publisher.due();
    if (!due || catch_up_)
        return;
    catch_up_ = in_.loop.after(std::max(*due - since_boot(), Milliseconds{0}), [this] {
        catch_up_.reset();
        in_.publisher.catch_up(since_boot());
        catch_up_later();
    });
}

void Reconciler::stop()
{
    stopping_ = true;
    for (auto& [name, object] : objects_)
        ++*object->wishes;
}

} // namespace nvmepolicy
