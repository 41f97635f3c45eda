// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/explain.h"

#include <algorithm>
#include <fmt/format.h>

namespace nvmepolicy {
namespace {

using Lines = std::vector<std::string>;

std::string join(const std::vector<std::string>& parts)
{
    std::string out;
    for (std::size_t i = 0; i < parts.size(); ++i)
        out += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    return out;
}

std::string idle_figure(const PowerState& s)
{
    if (s.idle_power)
        return show(*s.idle_power) + " idle";
    return s.max_power ? "at most " + show(*s.max_power) : "power unreported";
}

std::string wake_figure(const PowerState& s, std::span<const MeasuredWake> measured)
{
    std::string text = s.exit_latency ? "wakes in " + show(*s.exit_latency) : "wake latency unreported";
    const auto found = std::ranges::find(measured, s.index, &MeasuredWake::state);
    if (found != measured.end())
        text += fmt::format(", measured {}", show(found->wake_latency));
    if (s.entry_latency && s.exit_latency)
        text += fmt::format(", round trip {}", show(s.round_trip()));
    return text;
}

std::string describe_table(const ApstFeature& table, std::span<const PowerState> states)
{
    if (!table.enabled)
        return "APST off: the drive does not go to sleep by itself";
    std::vector<std::string> moves;
    for (std::size_t first = 0; first < states.size();) {
        const ApstEntry entry = table.entries[first];
        std::size_t last = first;
        while (last + 1 < states.size() && table.entries[last + 1] == entry)
            ++last;
        if (entry.transitions())
            moves.push_back(fmt::format("{} to PS{} after {} ms without I/O",
                                        first == last ? fmt::format("PS{}", first) : fmt::format("PS{}-PS{}", first, last),
                                        entry.target(), entry.idle_time().count()));
        first = last + 1;
    }
    return moves.empty() ? "APST on, but no state to go to: the drive stays awake" : join(moves);
}

std::vector<const PowerState*> sleep_states(std::span<const PowerState> states)
{
    std::vector<const PowerState*> out;
    for (const PowerState& s : states)
        if (!s.operational)
            out.push_back(&s);
    return out;
}

Lines describe_drive(const ApstQuestion& q)
{
    const auto& states = q.controller.identify->power_states;
    std::vector<std::string> sleeping;
    for (const PowerState* s : sleep_states(states))
        sleeping.push_back(fmt::format("PS{} ({}, {})", s->index, idle_figure(*s), wake_figure(*s, q.measured)));
    if (sleeping.empty())
        return {fmt::format("The drive has {} power state{}, none of them a sleep state.", states.size(),
                            states.size() == 1 ? "" : "s")};
    return {fmt::format("The drive has {} power states. It can sleep in {}.", states.size(), join(sleeping))};
}

Lines describe_bound(const ApstQuestion& q, const ApstDecision& d)
{
    const char* source = q.machine.power_source == PowerSource::battery ? "battery" : "AC";
    const std::string& who = d.wished_by;
    Lines lines;
    const std::string where = d.written_at.empty() ? "" : " (" + d.written_at + ")";
    lines.push_back(
        d.wished.limit == Microseconds{0} ? fmt::format("On {}, {} asks for a drive that does not sleep{}.", source, who, where)
        : d.wished.limit ? fmt::format("On {}, {} allows a wake latency of {}{}.", source, who, show(d.wished), where)
                         : fmt::format("On {}, {} sets no bound on the wake latency{}.", source, who, where));
    if (d.ceiling && d.ceiling->binds && !d.ceiling->lifted)
        lines.push_back(fmt::format("LIMITED: {} was set before us and is never exceeded, because it may keep this drive from "
                                    "dropping off the bus. A [[match]] with allow_deeper = true lifts it.",
                                    d.ceiling->source));
    else if (d.ceiling && d.ceiling->binds)
        lines.push_back(fmt::format("{} would limit this, but a [[match]] says allow_deeper = true.", d.ceiling->source));
    return lines;
}

Lines describe_states(const ApstQuestion& q, const ApstDecision& d)
{
    Lines lines;
    for (const UnwantedState& u : d.unwanted) {
        if (d.bound.limit == Microseconds{0})
            break; // Said already: the drive does not sleep.
        const PowerState& s = q.controller.identify->power_states[static_cast<std::size_t>(u.state)];
        if (!u.wake_latency)
            lines.push_back(
                fmt::format("PS{} is unwanted: it leaves its wake latency unreported, so nobody knows whether it is "
                            "within {}.",
                            u.state, show(d.bound)));
        else if (u.source == WakeSource::measured)
            lines.push_back(fmt::format("PS{} is unwanted: it was measured to wake in {} against {} advertised, above {}.",
                                        u.state, show(*u.wake_latency), s.exit_latency ? show(*s.exit_latency) : "nothing",
                                        show(d.bound)));
        else
            lines.push_back(fmt::format("PS{} is unwanted: it advertises a wake latency of {}, above {}.", u.state,
                                        show(*u.wake_latency), show(d.bound)));
    }
    return lines;
}

/// Sleep states that no tolerance reaches, and what stands in the way.
Lines describe_unreachable(const ApstQuestion& q)
{
    Lines lines;
    const ApstTableInputs inputs = kernel_inputs(q.controller, q.machine);
    const ApstFeature widest = predict_apst_table(inputs, LatencyTolerance::any()).feature;
    const auto is_target = [&](int state) {
        return std::ranges::any_of(widest.entries, [=](const ApstEntry& e) { return e.raw != 0 && e.target() == state; });
    };
    for (const PowerState* s : sleep_states(inputs.states)) {
        if (is_target(s->index))
            continue;
        const auto round_trip = static_cast<std::uint64_t>(s->round_trip().count());
        const std::uint64_t last_tier = std::max(
            inputs.parameters.primary_latency_tol_us,
            inputs.parameters.secondary_timeout_ms != 0 ? inputs.parameters.secondary_latency_tol_us : std::uint64_t{0});
        if (s->index == inputs.npss && inputs.quirks.no_deepest_ps)
            lines.push_back(fmt::format(
                "PS{} is never used: the kernel quirk no_deepest_ps excludes the last state of this model.", s->index));
        else if (inputs.parameters.tiers() && round_trip > last_tier)
            lines.push_back(fmt::format("PS{} is not reachable at any tolerance: its round trip of {} is above the {} of the "
                                        "kernel's last tier. No profile decides that, the module parameters of nvme_core do.",
                                        s->index, show(s->round_trip()),
                                        show(Microseconds{static_cast<std::int64_t>(
                                            std::min(last_tier, static_cast<std::uint64_t>(largest_tolerance.count())))})));
    }
    return lines;
}

Lines describe_savings(const ApstQuestion& q)
{
    Lines lines;
    const PowerState* before = nullptr;
    for (const PowerState* s : sleep_states(q.controller.identify->power_states)) {
        if (before) {
            // Like with like: an idle figure is not compared with a maximum.
            const bool idle = s->idle_power && before->idle_power;
            const auto& lower = idle ? s->idle_power : s->max_power;
            const auto& upper = idle ? before->idle_power : before->max_power;
            if (lower && upper && *lower >= *upper)
                lines.push_back(fmt::format("By its own figures PS{} ({}) saves nothing over PS{} ({}); such figures are often "
                                            "placeholders, so they decide nothing here.",
                                            s->index, show(*lower), before->index, show(*upper)));
        }
        before = s;
    }
    return lines;
}

Lines describe_other_profiles(const ApstQuestion& q, const ApstDecision& d)
{
    Lines lines;
    const auto& states = q.controller.identify->power_states;
    for (const auto& [name, profile] : q.policy.profiles) {
        if (name == q.wish.profile)
            continue;
        const Wish other{name, {}, q.wish.holds, q.wish.holds_on};
        const ApstDecision would = decide_apst({q.controller, q.machine, q.policy, other, q.measured, q.ledger});
        if (would.predicted == d.predicted)
            continue;
        const IdleOutlook outlook = idle_outlook(would.predicted.feature, states, q.measured);
        if (!outlook.deepest_state) {
            lines.push_back(fmt::format("With profile {} the drive would not sleep.", name));
            continue;
        }
        lines.push_back(fmt::format("With profile {} it would sleep down to PS{}{}{}.", name, *outlook.deepest_state,
                                    outlook.idle_power ? fmt::format(", {}{}", outlook.idle_power_is_maximum ? "at most " : "",
                                                                     show(*outlook.idle_power))
                                                       : "",
                                    outlook.wake_latency ? fmt::format(", and wake in {}", show(*outlook.wake_latency)) : ""));
    }
    return lines;
}

void append(Lines& to, Lines&& lines)
{
    to.insert(to.end(), std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
}

Lines describe_matches(const ApstQuestion& q)
{
    Lines lines;
    for (const Match& m : q.policy.matched) {
        std::vector<std::string> overridden;
        for (const Overridden& o : m.overridden)
            overridden.push_back(fmt::format("{} ({})", o.key, o.by.text()));
        lines.push_back(fmt::format(
            "A [[match]] {} ({}){}{}{}.", !overridden.empty() && m.sets_nothing() ? "fits and is overridden" : "applies",
            m.origin.text(), m.because.empty() ? "" : ": " + m.because, m.source.empty() ? "" : " [" + m.source + "]",
            overridden.empty() ? "" : "; set elsewhere: " + join(overridden)));
    }
    return lines;
}

} // namespace

std::vector<std::string> explain_apst(const ApstQuestion& q, const ApstDecision& d, const Verdict& verdict)
{
    Lines lines;
    if (q.controller.identify)
        append(lines, describe_drive(q));
    append(lines, describe_matches(q));
    if (d.support != ApstSupport::supported) {
        lines.push_back(fmt::format("Autonomous power state transitions: {}.", verdict.reason));
        return lines;
    }

    append(lines, describe_bound(q, d));
    append(lines, describe_states(q, d));
    if (d.rule == ToleranceRule::boot_value)
        lines.push_back(fmt::format("KEPT BACK: {}.", d.reason));
    lines.push_back(fmt::format("So the tolerance is {}: {}.", show(d.tolerance), d.reason));
    append(lines, describe_unreachable(q));
    append(lines, describe_savings(q));
    lines.push_back(fmt::format("From that the kernel makes: {}.",
                                describe_table(d.predicted.feature, q.controller.identify->power_states)));

    const LatencyTolerance& found = **q.controller.tolerance;
    if (d.mode == ManageMode::observe && !found.same_effect(d.tolerance))
        lines.push_back(fmt::format("apst.mode is observe ({}), so the {} found in the file stays.",
                                    q.policy.apst.mode.origin.text(), show(found)));
    lines.push_back(fmt::format("{}: {}.", verdict.verified() ? "Verified" : "Not verified", verdict.reason));

    append(lines, describe_other_profiles(q, d));
    if (!sleep_states(q.controller.identify->power_states).empty())
        lines.push_back(
            fmt::format("While the machine is suspended to idle, the kernel selects PS{} whatever the tolerance is.",
                        q.controller.identify->npss));
    return lines;
}

} // namespace nvmepolicy
