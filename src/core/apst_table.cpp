// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel's APST algorithm, as Linux 6.1 and 6.12 have it. Where it looks odd, the kernel is odd: the point of this
// file is to say in advance what nvme_configure_apst() will send, not what would be sensible.
#include "nvmepolicy/apst_table.h"

#include <algorithm>
#include <cassert>

namespace nvmepolicy {
namespace {

/// One tier serves one state. A state of the first tier ends the descent from there upwards; a second-tier state is
/// taken only as long as no tier is.
enum class Tier { none, secondary, primary };

constexpr std::uint64_t longest_idle_time_ms = (1ULL << 24U) - 1;

/// The idle time before a state is entered, or none when no tier has room for it.
/// Source: nvme_apst_get_transition_time().
std::optional<std::uint64_t> tier_idle_time(const ApstParameters& p, std::uint64_t round_trip_us, Tier& taken)
{
    if (round_trip_us <= p.primary_latency_tol_us) {
        if (taken == Tier::primary)
            return std::nullopt;
        taken = Tier::primary;
        return p.primary_timeout_ms;
    }
    if (p.secondary_timeout_ms != 0 && round_trip_us <= p.secondary_latency_tol_us) {
        if (taken != Tier::none)
            return std::nullopt;
        taken = Tier::secondary;
        return p.secondary_timeout_ms;
    }
    return std::nullopt;
}

/// Without tiers: 50 times the round trip, in the 24 bits that the entry has.
std::uint64_t proportional_idle_time(std::uint64_t round_trip_us)
{
    return std::min((round_trip_us + 19) / 20, longest_idle_time_ms);
}

} // namespace

PredictedTable predict_apst_table(const ApstTableInputs& inputs, const LatencyTolerance& tolerance)
{
    PredictedTable table;
    if (!inputs.apst_supported || inputs.npss > highest_npss)
        return table;
    assert(inputs.states.size() > static_cast<std::size_t>(inputs.npss)); // decoding sees to it
    table.command_sent = true;
    const auto limit = tolerance.limit();
    if (inputs.quirks.no_apst || limit == Microseconds{0})
        return table;

    table.feature.enabled = true;
    std::uint64_t target = 0;
    Tier taken = Tier::none;
    for (int s = inputs.npss; s >= 0; --s) {
        // Every state above an accepted one points to it, operational or not.
        table.feature.entries[static_cast<std::size_t>(s)].raw = target;
        if (s == inputs.npss && inputs.quirks.no_deepest_ps)
            continue;
        const PowerState& state = inputs.states[static_cast<std::size_t>(s)];
        if (state.operational)
            continue;
        // The exit latency alone is compared with the tolerance; entry + exit picks the tier and so the idle time.
        if (limit && state.kernel_exit_latency() > *limit)
            continue;
        const auto round_trip = static_cast<std::uint64_t>(state.round_trip().count());
        const auto idle_ms = inputs.parameters.tiers() ? tier_idle_time(inputs.parameters, round_trip, taken)
                                                       : std::optional{proportional_idle_time(round_trip)};
        if (!idle_ms)
            continue;
        // A tier's time is not cut to 24 bits: a parameter above 16777215 ms runs over into the reserved half, as there.
        target = (static_cast<std::uint64_t>(s) << 3U) | (*idle_ms << 8U);
        table.max_round_trip = std::max(table.max_round_trip.value_or(Microseconds{0}), state.round_trip());
    }
    return table;
}

std::optional<int> ApstFeature::deepest_state() const
{
    if (!enabled)
        return std::nullopt;
    std::optional<int> reached;
    std::size_t at = 0;
    // A table from a device may run in a circle: no walk is longer than the table.
    for (std::size_t steps = 0; steps < states && entries[at].transitions(); ++steps) {
        const int next = entries[at].target();
        if (static_cast<std::size_t>(next) == at)
            break;
        reached = next;
        at = static_cast<std::size_t>(next);
    }
    return reached;
}

} // namespace nvmepolicy
