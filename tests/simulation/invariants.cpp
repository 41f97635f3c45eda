// SPDX-License-Identifier: LGPL-2.1-or-later
#include "invariants.h"

#include <algorithm>
#include <fmt/format.h>

#include "nvmepolicy/breaker.h"
#include "nvmepolicy/decode.h"
#include "nvmepolicy/ledger.h"

namespace nvmepolicy::simulation {
namespace {

/// For a change of the power source to be settled, read and acted on.
constexpr Milliseconds power_is_known_after{10'000};
/// For udevd to be late, and then for a look.
constexpr Milliseconds looked_at_after{8'000};
/// The longest pause between looks at a controller that was not live, and then for a look.
constexpr Milliseconds looked_at_again_after{68'000};
/// A changed wish claims back what somebody else has left: by the first look that comes to a decision, which a drive may hold
/// up.
constexpr Milliseconds claimed_within{150'000};

bool admits(const LatencyTolerance& value, const PowerState& state)
{
    return !value.limit() || (value.limit()->count() != 0 && state.kernel_exit_latency() <= *value.limit());
}

bool unwanted(const LatencyBound& bound, const PowerState& state)
{
    return !state.operational && bound.limit && (!state.exit_latency || *state.exit_latency > *bound.limit);
}

bool contains(const std::vector<LatencyTolerance>& all, const LatencyTolerance& value)
{
    return std::ranges::find(all, value) != all.end();
}

} // namespace

void Invariants::break_with(std::string invariant, std::string text)
{
    if (!broken_)
        broken_ = Violation{std::move(invariant), std::move(text)};
}

void Invariants::configured(const Policy& policy, Milliseconds now)
{
    caller_.policy = &policy;
    caller_.claims_until = now + claimed_within;
}

void Invariants::power_changes()
{
    power_changed_at_ = kernel_.time().now();
}

void Invariants::gets_firmware(const SimulatedController& c)
{
    histories_[c.object].firmware_at = kernel_.time().now();
}

void Invariants::announced(const Uevent& event)
{
    if (event.nvme_event != "connected")
        return;
    if (const auto c = kernel_.find(event.name))
        histories_[c->object].connected_at = kernel_.time().now();
}

void Invariants::stored(const SimulatedController& c, const LatencyTolerance& before, bool by_us)
{
    History& h = histories_[c.object];
    if (by_us) {
        if (h.ours.empty())
            h.before_us.push_back(before);
        h.ours.insert(c.tolerance.kernel_text());
    } else if (h.ours.empty())
        h.before_us.push_back(before);
    else
        h.foreign.push_back(c.tolerance);
    h.last_by_us = by_us;
    if (by_us)
        h.written_by = h.asked_by;
    if (!by_us) {
        h.foreign_at = kernel_.time().now();
        h.foreign_seen = false;
    }
}

void Invariants::requested(const SimulatedController& c, const std::string& request, const std::shared_ptr<PendingCall>& call)
{
    std::erase_if(requests_, [](const Request& r) { return r.call.expired() || r.call.lock()->returned; });
    const bool in_lane = request.find("-tolerance") != std::string::npos;
    for (const Request& other : requests_) {
        if (other.process != caller_.process)
            continue;
        if (in_lane && other.in_lane)
            break_with("one at a time in the lane",
                       fmt::format("{}: {} while {} has not returned", c.name, request, other.text));
    }
    requests_.push_back({caller_.process, in_lane, c.name + " " + request, call});
    History& h = histories_[c.object];
    if (request == "identify")
        h.asked_at = kernel_.time().now();
    if (request == "read-tolerance")
        h.foreign_seen = h.foreign_seen || !h.last_by_us;
    constexpr std::string_view write = "write-tolerance ";
    if (!request.starts_with(write))
        return;
    h.asked_by = caller_.process;
    if (const auto value = decode_tolerance(request, request.substr(write.size()) + "\n"))
        check_write(c, *value);
}

void Invariants::check_write(const SimulatedController& c, const LatencyTolerance& value)
{
    const auto file = storage_.files.find(ledger_file);
    const auto ledger = file == storage_.files.end() ? Result<Ledger>(Ledger{}) : parse_ledger(ledger_file, file->second);
    const LedgerEntry* const entry = ledger ? ledger->find(c.id) : nullptr;
    const bool known = entry && (entry->is_ours(value) || (caller_.restores && value == entry->original()));
    if (!known || entry->object != c.object)
        return break_with("in the ledger before it is written", fmt::format("{}: {}", c.name, value.kernel_text()));
    if (caller_.restores)
        return check_restoring(c, value);
    check_bound(c, value);
    check_trial(c, *entry, value);
    const History& h = histories_[c.object];
    // The original may have been put back by an earlier process, which is something that a later one cannot tell.
    const bool theirs_stays = caller_.policy->apst.on_conflict.value == OnConflict::yield && entry->ours && !h.last_by_us
                              && h.foreign_seen && h.foreign_at > caller_.claims_until && !c.tolerance.is_automatic()
                              && !entry->is_ours(c.tolerance) && !c.tolerance.same_effect(value)
                              && (h.written_by == caller_.process || c.tolerance != entry->original());
    if (theirs_stays)
        break_with("somebody else's value stays",
                   fmt::format("{}: {} is written over {}", c.name, value.kernel_text(), c.tolerance.kernel_text()));
}

void Invariants::check_bound(const SimulatedController& c, const LatencyTolerance& value)
{
    const Milliseconds now = kernel_.time().now();
    if (is_another_drive(c))
        return;
    const Profile& profile = caller_.policy->profiles.at(caller_.policy->daemon.profile.value);
    const bool battery = kernel_.machine.power_source == PowerSource::battery;
    const bool settled = now - power_changed_at_ > power_is_known_after;
    const auto within = [&](const LatencyBound& bound) {
        return std::ranges::none_of(c.drive.power_states,
                                    [&](const PowerState& s) { return unwanted(bound, s) && admits(value, s); });
    };
    const LatencyBound& here = battery ? profile.max_wake_latency_on_battery.value : profile.max_wake_latency.value;
    const LatencyBound& there = battery ? profile.max_wake_latency.value : profile.max_wake_latency_on_battery.value;
    if (!within(here) && (settled || !within(there)))
        break_with("no state beyond the bound", fmt::format("{}: {} admits a state that profile {} does not want", c.name,
                                                            value.kernel_text(), caller_.policy->daemon.profile.value));
    const std::uint64_t parameter = *kernel_.machine.default_ps_max_latency_us;
    const bool compiled_in = parameter == 100000 || parameter == 25000;
    if (compiled_in || parameter > static_cast<std::uint64_t>(largest_tolerance.count()))
        return;
    const auto ceiling = LatencyTolerance::of(Microseconds{static_cast<std::int64_t>(parameter)});
    for (const PowerState& state : c.drive.power_states)
        if (!state.operational && admits(value, state) && !admits(ceiling, state))
            break_with("no state beyond the ceiling",
                       fmt::format("{}: {} although default_ps_max_latency_us={}", c.name, value.kernel_text(), parameter));
}

void Invariants::check_trial(const SimulatedController& c, const LedgerEntry& entry, const LatencyTolerance& value)
{
    if (is_another_drive(c) || !goes_deeper(value, entry.first, c.drive.power_states))
        return;
    const auto file = storage_.files.find(breaker_file);
    const auto record =
        file == storage_.files.end() ? Result<BreakerRecord>(BreakerRecord{}) : parse_breaker(breaker_file, file->second);
    const auto token = storage_.files.find(std::string(runtime_directory) + "/boot");
    if (!record || token == storage_.files.end() || !record->on_trial(c.id, token->second))
        break_with("a trial is on disk before a drive goes deeper", fmt::format("{}: {}", c.name, value.kernel_text()));
}

/// It has other firmware by now, and has not been asked about it.
bool Invariants::is_another_drive(const SimulatedController& c)
{
    const History& h = histories_[c.object];
    return h.firmware_at >= h.asked_at && h.firmware_at.count() >= 0;
}

bool Invariants::may_be_put_back(const History& h, const LatencyTolerance& value) const
{
    // Somebody who lowered it later is as deep as the drive may be left.
    // A file that came back with other firmware reads `auto`.
    return contains(h.before_us, value) || contains(h.foreign, value) || (value.is_automatic() && h.firmware_at.count() >= 0);
}

void Invariants::check_restoring(const SimulatedController& c, const LatencyTolerance& value)
{
    if (!may_be_put_back(histories_[c.object], value))
        break_with("only originals are written once it stops", fmt::format("{}: {}", c.name, value.kernel_text()));
}

void Invariants::time_passes()
{
    const Milliseconds now = kernel_.time().now();
    if (kernel_.pm_qos_is_locked())
        lane_blocked_at_ = now;
    if (!caller_.policy || caller_.restores)
        return;
    for (const std::string& name : kernel_.names()) {
        const auto c = kernel_.find(name);
        History& h = histories_[c->object];
        if (c->state != ControllerState::live)
            h.not_live_at = now;
        // What comes live without an event is found by a look that is repeated ever more rarely.
        const Milliseconds due =
            std::max(std::max(h.connected_at, lane_blocked_at_) + looked_at_after, h.not_live_at + looked_at_again_after);
        if (c->state != ControllerState::live || h.sick || h.connected_at <= caller_.started_at || h.asked_at >= h.connected_at)
            continue;
        if (now > due)
            break_with("a sick drive delays no other",
                       fmt::format("{}: came live at {} ms and has not been looked at", name, h.connected_at.count()));
    }
}

void Invariants::at_rest(const Outcome& outcome)
{
    const auto c = kernel_.find(outcome.name);
    const History& h = histories_[c->object];
    if (outcome.in_order() && outcome.plan.empty())
        return;
    if (outcome.foreign.stand == ForeignStand::yield)
        return;
    if (h.refused || (caller_.policy->apst.on_conflict.value == OnConflict::enforce && !h.foreign.empty()))
        return; // It was tried as often as is reasonable.
    break_with("every change leads to a look",
               fmt::format("{}: {}", outcome.name, outcome.error ? outcome.error->text() : outcome.verdict.reason));
}

void Invariants::restored()
{
    for (const std::string& name : kernel_.names()) {
        const auto c = kernel_.find(name);
        const History& h = histories_[c->object];
        if (h.ours.empty() || !h.last_by_us || !c->tolerance_file || c->tolerance.is_automatic())
            continue;
        if (!may_be_put_back(h, c->tolerance))
            break_with("the ledger restores exactly",
                       fmt::format("{}: holds {}, and held {} before us", name, c->tolerance.kernel_text(),
                                   h.before_us.front().kernel_text()));
    }
}

} // namespace nvmepolicy::simulation
