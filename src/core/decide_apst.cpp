// SPDX-License-Identifier: LGPL-2.1-or-later
// The largest useful tolerance that admits no unwanted state: everything here serves that sentence.
#include "nvmepolicy/decide_apst.h"

#include "nvmepolicy/breaker.h"

#include <algorithm>
#include <fmt/format.h>

namespace nvmepolicy {
namespace {

/// The values that Linux is compiled with, today's and the proposed one. Anything else was put there by somebody.
constexpr std::uint64_t compiled_in_defaults[] = {100000, 25000};

struct KnownWake {
    std::optional<Microseconds> latency;
    WakeSource source = WakeSource::advertised;
};

KnownWake known_wake(const PowerState& state, std::span<const MeasuredWake> measured)
{
    const auto found = std::ranges::find(measured, state.index, &MeasuredWake::state);
    if (found != measured.end())
        return {found->wake_latency, WakeSource::measured};
    return {state.exit_latency, WakeSource::advertised};
}

ApstSupport support_of(const Controller& controller)
{
    if (!controller.identify)
        return ApstSupport::unknown;
    if (controller.identify->apsta == 0)
        return ApstSupport::not_supported;
    if (controller.identify->npss > highest_npss)
        return ApstSupport::npss_invalid;
    if (!controller.tolerance)
        return ApstSupport::unknown;
    return controller.tolerance->has_value() ? ApstSupport::supported : ApstSupport::off_by_quirk;
}

struct Bound {
    LatencyBound bound;
    std::string origin;
    std::string written_at;
};

Bound wished_bound(const ApstQuestion& q)
{
    auto profile = q.policy.profiles.find(q.wish.profile);
    if (profile == q.policy.profiles.end())
        profile = q.policy.profiles.find("balanced");
    const bool on_battery = q.machine.power_source == PowerSource::battery;
    const Setting<LatencyBound>& setting =
        on_battery ? profile->second.max_wake_latency_on_battery : profile->second.max_wake_latency;
    const std::string held = q.wish.held_by.empty() ? "" : ", hold of " + q.wish.held_by;
    Bound wished{setting.value, "profile " + profile->first + held, setting.origin.text()};
    const auto consider = [&wished](const LatencyHold& hold) {
        if (stricter(hold.bound, wished.bound) != wished.bound)
            wished = {hold.bound, "hold of " + hold.by, ""};
    };
    for (const LatencyHold& hold : q.wish.holds)
        consider(hold);
    if (const auto own = q.wish.holds_on.find(q.controller.id); own != q.wish.holds_on.end())
        consider(own->second);
    return wished;
}

/// The tolerance of a new controller: what the module parameter comes to in the file.
std::optional<LatencyTolerance> initial_tolerance(const Machine& machine)
{
    if (!machine.default_ps_max_latency_us)
        return std::nullopt;
    if (*machine.default_ps_max_latency_us > static_cast<std::uint64_t>(largest_tolerance.count()))
        return LatencyTolerance::any();
    return LatencyTolerance::of(Microseconds{static_cast<std::int64_t>(*machine.default_ps_max_latency_us)});
}

bool compiled_in(const std::optional<LatencyTolerance>& tolerance)
{
    return tolerance && tolerance->limit() && std::ranges::any_of(compiled_in_defaults, [&](std::uint64_t us) {
               return tolerance->limit()->count() == static_cast<std::int64_t>(us);
           });
}

/// A limit that was set before us: by the module parameter, or in the file itself before we first looked.
std::optional<Ceiling> ceiling_of(const ApstQuestion& q)
{
    std::optional<Ceiling> ceiling;
    const auto lower_to = [&](Microseconds limit, std::string source) {
        if (!ceiling || limit < ceiling->limit)
            ceiling = Ceiling{limit, std::move(source), false, q.policy.apst.allow_deeper.value};
    };
    const auto initial = initial_tolerance(q.machine);
    if (initial && initial->limit() && !compiled_in(initial))
        lower_to(*initial->limit(), fmt::format("nvme_core.default_ps_max_latency_us={}", initial->kernel_text()));
    const LatencyTolerance found =
        q.controller.tolerance ? q.controller.tolerance->value_or(LatencyTolerance::any()) : LatencyTolerance::any();
    const LatencyTolerance first = q.ledger ? q.ledger->first : found;
    const bool as_booted = initial ? first.same_effect(*initial) : compiled_in(first);
    if (first.limit() && !as_booted)
        lower_to(*first.limit(), fmt::format("{} found in {} at first sight", first.kernel_text(), tolerance_attribute));
    // Somebody who lowers it after us may have had a reason that we cannot know, such as a drive that dropped out.
    const bool foreign = q.obey_lower && q.ledger && !found.same_effect(first) && !q.ledger->is_ours(found);
    if (found.limit() && foreign && q.policy.apst.on_conflict.value == OnConflict::yield)
        lower_to(*found.limit(), fmt::format("{} written to {} by somebody else", found.kernel_text(), tolerance_attribute));
    return ceiling;
}

const PowerState* find_state(std::span<const PowerState> states, int index)
{
    const auto found = std::ranges::find(states, index, &PowerState::index);
    return found == states.end() ? nullptr : &*found;
}

/// Rule 4: chooses the tolerance and says how.
void choose_tolerance(ApstDecision& d, std::span<const PowerState> states)
{
    if (!d.bound.limit) {
        d.tolerance = LatencyTolerance::any();
        d.rule = ToleranceRule::no_constraint;
        d.reason = "no constraint is wanted";
        return;
    }
    std::optional<Microseconds> smallest_unwanted;
    int smallest_unwanted_state = 0;
    for (const UnwantedState& unwanted : d.unwanted) {
        const Microseconds exit = find_state(states, unwanted.state)->kernel_exit_latency();
        if (!smallest_unwanted || exit < *smallest_unwanted) {
            smallest_unwanted = exit;
            smallest_unwanted_state = unwanted.state;
        }
    }
    d.tolerance = LatencyTolerance::of(*d.bound.limit);
    d.rule = ToleranceRule::bound;
    d.reason = fmt::format("the bound of {} itself", show(d.bound));
    if (smallest_unwanted && d.bound.limit != Microseconds{0} && *smallest_unwanted <= *d.bound.limit) {
        d.tolerance = LatencyTolerance::of(*smallest_unwanted - Microseconds{1});
        d.rule = ToleranceRule::excludes_unwanted;
        d.reason =
            *smallest_unwanted == Microseconds{0}
                ? fmt::format("0, since PS{} is unwanted and leaves its exit latency unreported, which the kernel admits "
                              "at every other value",
                              smallest_unwanted_state)
                : fmt::format("one less than the {} us that the unwanted PS{} advertises", smallest_unwanted->count(),
                              smallest_unwanted_state);
        return;
    }
    // A drive that wakes faster than it says: the kernel compares what it says, so that is what must be allowed.
    for (const MeasuredWake& measured : d.measured) {
        const PowerState* state = find_state(states, measured.state);
        if (!state || state->operational || measured.wake_latency > *d.bound.limit)
            continue;
        const Microseconds advertised = state->kernel_exit_latency();
        const bool within_ceiling = !d.ceiling || d.ceiling->lifted || advertised <= d.ceiling->limit;
        const bool excludes_unwanted = !smallest_unwanted || advertised < *smallest_unwanted;
        // Beyond the largest number that the kernel keeps, only `any` would reach it, and that admits everything.
        const bool reachable = advertised <= largest_tolerance;
        if (advertised > *d.tolerance.limit() && reachable && within_ceiling && excludes_unwanted) {
            d.tolerance = LatencyTolerance::of(advertised);
            d.rule = ToleranceRule::reaches_calibrated;
            d.reason = fmt::format("the {} that PS{} advertises, since it was measured to wake in {}, within the bound of {}",
                                   show(advertised), state->index, show(measured.wake_latency), show(d.bound));
        }
    }
}

} // namespace

ApstTableInputs kernel_inputs(const Controller& controller, const Machine& machine)
{
    const IdentifyController& id = *controller.identify;
    // force_apst lifts both quirks. Source: nvme_init_identify().
    ApstQuirks quirks = machine.force_apst ? ApstQuirks{} : controller.quirks.quirks;
    // Where no_apst is in force there is no file: this kernel has another list, or force_apst was set at the last Identify.
    if (controller.tolerance && controller.tolerance->has_value())
        quirks.no_apst = false;
    return {id.apsta != 0, id.npss, id.power_states, quirks, machine.apst};
}

ApstDecision decide_apst(const ApstQuestion& q)
{
    ApstDecision d;
    d.support = support_of(q.controller);
    d.mode = q.policy.apst.mode.value;
    d.measured.assign(q.measured.begin(), q.measured.end());
    const Bound wished = wished_bound(q);
    d.wished = d.bound = wished.bound;
    d.wished_by = d.origin = wished.origin;
    d.written_at = wished.written_at;

    d.ceiling = ceiling_of(q);
    if (d.ceiling) {
        const LatencyBound limited = stricter(d.wished, LatencyBound{d.ceiling->limit});
        d.ceiling->binds = limited != d.wished;
        if (d.ceiling->binds && !d.ceiling->lifted) {
            d.bound = limited;
            d.origin = "ceiling " + d.ceiling->source;
        }
    }
    if (d.support != ApstSupport::supported)
        return d;

    const std::span<const PowerState> states = q.controller.identify->power_states;
    for (const PowerState& state : states) {
        if (state.operational || !d.bound.limit)
            continue;
        const KnownWake wake = known_wake(state, q.measured);
        if (!wake.latency || *wake.latency > *d.bound.limit)
            d.unwanted.push_back({state.index, wake.latency, wake.source});
    }
    choose_tolerance(d, states);
    const LatencyTolerance boot_value = q.ledger ? q.ledger->first : **q.controller.tolerance;
    d.breaker_tripped = q.breaker.has_value();
    if (q.breaker && goes_deeper(d.tolerance, boot_value, states)) {
        d.tolerance = boot_value;
        d.rule = ToleranceRule::boot_value;
        d.origin = "drop-out breaker";
        d.reason = *q.breaker;
    }
    d.deeper_than_at_boot = goes_deeper(d.tolerance, boot_value, states);
    d.predicted = predict_apst_table(kernel_inputs(q.controller, q.machine), d.tolerance);
    return d;
}

IdleOutlook idle_outlook(const ApstFeature& table, std::span<const PowerState> states, std::span<const MeasuredWake> measured)
{
    IdleOutlook outlook;
    const auto deepest = table.deepest_state();
    if (!deepest)
        return outlook;
    outlook.deepest_state = deepest;
    const PowerState* state = find_state(states, *deepest);
    if (!state)
        return outlook; // A table from a device may name a state that it does not have.
    const KnownWake wake = known_wake(*state, measured);
    outlook.wake_latency = wake.latency;
    outlook.wake_source = wake.source;
    if (state->entry_latency && state->exit_latency)
        outlook.round_trip = state->round_trip();
    outlook.idle_power = state->idle_power ? state->idle_power : state->max_power;
    outlook.idle_power_is_maximum = !state->idle_power && state->max_power;
    return outlook;
}

} // namespace nvmepolicy
