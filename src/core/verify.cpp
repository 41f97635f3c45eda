// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/verify.h"

#include <algorithm>
#include <fmt/format.h>

namespace nvmepolicy {
namespace {

std::string describe(const ApstFeature& table)
{
    if (!table.enabled)
        return "APST off";
    const auto deepest = table.deepest_state();
    return deepest ? fmt::format("APST on down to PS{}", *deepest) : "APST on without any transition";
}

ApstFeature predict(ApstTableInputs inputs, const ApstQuestion& q, bool no_deepest_ps, const ApstParameters& parameters)
{
    inputs.quirks.no_deepest_ps = no_deepest_ps;
    inputs.parameters = parameters;
    // The file decides, not the wish: in mode observe the two may differ for good.
    return predict_apst_table(inputs, **q.controller.tolerance).feature;
}

Verdict compare_tables(const ApstQuestion& q, const ApstFeature& actual)
{
    const ApstTableInputs inputs = kernel_inputs(q.controller, q.machine);
    const bool assumed = inputs.quirks.no_deepest_ps;
    const ApstFeature expected = predict(inputs, q, assumed, inputs.parameters);
    if (actual == expected)
        return {Agreement::verified, fmt::format("the drive holds the predicted table: {}", describe(actual)), {}};

    const bool certain = q.controller.quirks.source == QuirkKnowledge::Source::kernel;
    if (!certain && actual == predict(inputs, q, !assumed, inputs.parameters)) {
        if (assumed)
            return {Agreement::verified_by_quirk,
                    "the drive holds the table predicted without quirk no_deepest_ps, which this kernel does not seem to apply",
                    "not no_deepest_ps"};
        return {Agreement::verified_by_quirk,
                fmt::format("the drive holds the table predicted under the kernel quirk no_deepest_ps: PS{} is never used",
                            inputs.npss),
                "no_deepest_ps"};
    }

    // A table from before a change of module parameters is right until the kernel programs it again.
    const ApstParameters then = q.ledger && q.ledger->programmed_with ? *q.ledger->programmed_with : ApstParameters{};
    if (then != inputs.parameters
        && (actual == predict(inputs, q, assumed, then) || (!certain && actual == predict(inputs, q, !assumed, then))))
        return {Agreement::parameters_moved,
                "the drive holds the table of the module parameters before they were changed; it will change at the next "
                "programming (another tolerance, or a reset)",
                {}};

    return {
        Agreement::table_differs,
        fmt::format("the drive holds {}, predicted is {}: it refused the table, or the write met a controller that was being "
                    "initialised",
                    describe(actual), describe(expected)),
        {}};
}

Verdict without_tolerance_file(const ApstQuestion& q, const ApstDecision& d)
{
    if (d.support == ApstSupport::not_supported)
        return {Agreement::not_applicable, "not supported by the drive (APSTA is 0)", {}};
    const auto& actual = q.controller.apst;
    if (actual && actual->has_value() && (*actual)->enabled)
        return {Agreement::off_but_enabled,
                fmt::format("switched off by the kernel quirk no_apst, yet the drive has {} from its own defaults",
                            describe(**actual)),
                "no_apst"};
    return {Agreement::not_applicable, "switched off by the kernel quirk no_apst", "no_apst"};
}

/// A drive that did not answer is not written to: the write might never come back, and everybody would wait behind it. One
/// that answered with an error status, or that we may not ask, is another matter.
bool answered(const Result<std::optional<ApstFeature>>& apst)
{
    if (apst)
        return true;
    switch (apst.error().kind) {
    case RefusalKind::denied:
    case RefusalKind::unsupported:
    case RefusalKind::invalid: return true;
    case RefusalKind::absent:
    case RefusalKind::gone:
    case RefusalKind::try_later:
    case RefusalKind::timed_out:
    case RefusalKind::failed: break;
    }
    return false;
}

} // namespace

Verdict verify_apst(const ApstQuestion& q, const ApstDecision& d)
{
    const Controller& c = q.controller;
    switch (d.support) {
    case ApstSupport::not_supported:
    case ApstSupport::off_by_quirk: return without_tolerance_file(q, d);
    case ApstSupport::npss_invalid:
        return {Agreement::ignored,
                fmt::format("APST is not used by the kernel: NPSS is {}, the specification allows 31", c.identify->npss),
                {}};
    case ApstSupport::unknown: return {Agreement::unread, (c.identify ? c.tolerance.error() : c.identify.error()).text(), {}};
    case ApstSupport::supported: break;
    }
    if (!answered(c.apst))
        return {Agreement::unread, c.apst.error().text(), {}};
    const LatencyTolerance& found = **c.tolerance;
    if (d.mode == ManageMode::manage && !found.same_effect(d.tolerance))
        return {Agreement::awaits_change, fmt::format("the tolerance is {}, wanted is {}", show(found), show(d.tolerance)), {}};
    if (!c.apst)
        return {Agreement::unread, c.apst.error().text(), {}};
    if (!c.apst->has_value())
        return {Agreement::unread, "the drive's APST table was not read", {}};
    return compare_tables(q, **c.apst);
}

std::optional<LatencyTolerance> neighbour(const LatencyTolerance& wanted, std::span<const PowerState> states)
{
    const auto limit = wanted.limit();
    if (!limit)
        return LatencyTolerance::of(largest_tolerance);
    if (*limit > Microseconds{0})
        return LatencyTolerance::of(*limit - Microseconds{1});
    const bool one_admits_something = std::ranges::any_of(
        states, [](const PowerState& s) { return !s.operational && s.kernel_exit_latency() <= Microseconds{1}; });
    return one_admits_something ? std::nullopt : std::optional{LatencyTolerance::of(Microseconds{1})};
}

Plan plan_apst(const ApstQuestion& q, const ApstDecision& d, const Verdict& verdict)
{
    if (d.mode == ManageMode::observe || d.support != ApstSupport::supported)
        return {};
    const LatencyTolerance& found = **q.controller.tolerance;
    ToleranceChange change;
    change.controller = q.controller.id;
    change.object = q.controller.object;
    change.name = q.controller.name;
    change.from = found;
    change.to = d.tolerance;
    change.origin = d.origin;
    change.reason = d.reason;
    if (verdict.agreement == Agreement::awaits_change)
        return Plan{{change}};
    if (verdict.agreement != Agreement::table_differs)
        return {};
    change.through = neighbour(d.tolerance, q.controller.identify->power_states);
    if (!change.through)
        return {};
    change.origin = "repair";
    change.reason = fmt::format("the drive does not hold the table of {}; the kernel sends it again only after another value",
                                show(d.tolerance));
    return Plan{{change}};
}

} // namespace nvmepolicy
