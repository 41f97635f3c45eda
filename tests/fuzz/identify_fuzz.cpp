// SPDX-License-Identifier: LGPL-2.1-or-later
// Any bytes as an Identify page and an APST table, under any circumstances: decode, predict, decide, verify, plan and
// explain do not crash, and what is decided never admits an unwanted state or exceeds a ceiling.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "nvmepolicy/decode.h"
#include "nvmepolicy/drive_file.h"
#include "nvmepolicy/explain.h"
#include "require.h"

using namespace nvmepolicy;

namespace {

constexpr std::size_t knobs_size = 32;

/// The first bytes of the input choose the circumstances.
class Knobs {
public:
    explicit Knobs(const std::uint8_t* bytes) : bytes_(bytes) {}
    std::uint8_t byte() { return at_ < knobs_size ? bytes_[at_++] : std::uint8_t{0}; }
    bool flag() { return (byte() & 1) != 0; }
    std::int64_t latency()
    {
        constexpr std::int64_t interesting[] = {0,     1,      999,    1000,      4999,       5000,       9999,
                                                10000, 24999,  25000,  25001,     43000,      99999,      100000,
                                                5500,  100001, 500000, 260000000, 2147483645, 2147483646, 15000};
        return interesting[byte() % std::size(interesting)];
    }
    LatencyTolerance tolerance()
    {
        switch (byte() % 4) {
        case 0: return LatencyTolerance::automatic();
        case 1: return LatencyTolerance::any();
        default: return LatencyTolerance::of(Microseconds{latency()});
        }
    }

private:
    const std::uint8_t* bytes_;
    std::size_t at_ = 0;
};

/// The kernel's rule, told again.
bool admits(const LatencyTolerance& tolerance, const PowerState& s)
{
    if (s.operational || tolerance.limit() == Microseconds{0})
        return false;
    return !tolerance.limit() || s.kernel_exit_latency() <= *tolerance.limit();
}

void check_table(const PredictedTable& table, const IdentifyController& id, const LatencyTolerance& tolerance)
{
    if (!table.command_sent) {
        require(table == PredictedTable{}, "a table that nobody sends");
        return;
    }
    for (std::size_t i = 0; i < ApstFeature::states; ++i) {
        const ApstEntry& entry = table.feature.entries[i];
        if (entry.raw == 0)
            continue;
        const auto target = static_cast<std::size_t>(entry.target());
        require(table.feature.enabled, "an entry in a table that is off");
        require(target < id.power_states.size() && i < target, "a target that is not deeper than its source");
        require(admits(tolerance, id.power_states[target]), "a target that the tolerance does not admit");
    }
    const auto deepest = table.feature.deepest_state();
    require(!deepest || *deepest <= id.npss, "a deepest state that is not there");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    if (size < knobs_size)
        return 0;
    Knobs knobs(bytes);
    std::vector<std::uint8_t> page(identify_page_size);
    std::copy_n(bytes + knobs_size, std::min(size - knobs_size, page.size()), page.begin());

    const auto id = decode_identify("nvme0", page);
    if (!id) {
        require_printable(id.error().text(), "a message that is not printable");
        return 0;
    }
    require(id->power_states.size() == static_cast<std::size_t>(std::min<int>(id->npss, highest_npss)) + 1, "wrong states");
    for (const std::string* text : {&id->serial, &id->model, &id->firmware, &id->subsystem_nqn})
        require_printable(*text, "a name that is not printable");

    Controller c;
    c.name = "nvme0";
    c.id = {id->subsystem_nqn, id->serial, id->cntlid};
    c.model = id->model;
    c.state = ControllerState::live;
    c.identify = *id;
    c.quirks.quirks = {knobs.flag(), knobs.flag()};
    c.quirks.source = knobs.flag() ? QuirkKnowledge::Source::kernel : QuirkKnowledge::Source::device_table;
    if (knobs.flag())
        c.tolerance = std::optional{knobs.tolerance()};
    else if (knobs.flag())
        c.tolerance = std::optional<LatencyTolerance>{};

    Machine machine;
    machine.power_source = knobs.flag() ? PowerSource::battery : PowerSource::ac;
    if (knobs.flag())
        machine.default_ps_max_latency_us = static_cast<std::uint64_t>(knobs.latency());
    machine.force_apst = knobs.flag();
    if (knobs.flag())
        machine.apst.primary_timeout_ms = static_cast<std::uint64_t>(knobs.latency());
    if (knobs.flag())
        machine.apst.secondary_latency_tol_us = UINT64_MAX;

    ControllerPolicy policy{builtin_profiles(), {}, {}, {}, {}};
    policy.apst.allow_deeper.value = knobs.flag();
    policy.apst.mode.value = knobs.flag() ? ManageMode::observe : ManageMode::manage;
    policy.profiles.at("balanced").max_wake_latency.value = {Microseconds{knobs.latency()}};
    const char* const profiles[] = {"performance", "balanced", "power-saver", "none"};
    Wish wish{profiles[knobs.byte() % 4], {}};
    if (knobs.flag())
        wish.holds = {{{Microseconds{knobs.latency()}}, "somebody"}};
    const std::vector<MeasuredWake> measured{{knobs.byte() % 34, Microseconds{knobs.latency()}},
                                             {id->npss, Microseconds{knobs.latency()}}};
    LedgerEntry entry;
    entry.first = knobs.tolerance();
    const bool touched = knobs.flag();
    const ApstQuestion question{c, machine, policy, wish, measured, touched ? &entry : nullptr};

    for (const LatencyTolerance& tolerance :
         {LatencyTolerance::of(Microseconds{0}), LatencyTolerance::of(Microseconds{1}),
          LatencyTolerance::of(Microseconds{25000}), LatencyTolerance::of(largest_tolerance), LatencyTolerance::any()}) {
        const PredictedTable table = predict_apst_table(kernel_inputs(c, machine), tolerance);
        check_table(table, *id, tolerance);
        if (const auto through = neighbour(tolerance, id->power_states)) {
            require(!through->same_effect(tolerance), "a neighbour of the same effect");
            for (const PowerState& s : id->power_states)
                require(!admits(*through, s) || admits(tolerance, s), "a neighbour that admits more");
        }
    }

    ApstDecision d = decide_apst(question);
    if (d.support == ApstSupport::supported) {
        for (const UnwantedState& unwanted : d.unwanted)
            require(!admits(d.tolerance, id->power_states.at(static_cast<std::size_t>(unwanted.state))),
                    "an unwanted state admitted");
        if (d.ceiling && !d.ceiling->lifted)
            require(d.tolerance.limit() && *d.tolerance.limit() <= d.ceiling->limit, "a ceiling exceeded");
        check_table(d.predicted, *id, d.tolerance);
    }

    // The drive may hold what the kernel would send, or anything at all.
    std::vector<std::uint8_t> feature(apst_table_size);
    const std::size_t behind = knobs_size + identify_page_size;
    if (size > behind)
        std::copy_n(bytes + behind, std::min(size - behind, feature.size()), feature.begin());
    const std::optional<ApstFeature> anything = *decode_apst_feature("nvme0", feature, knobs.byte());
    std::vector<Result<std::optional<ApstFeature>>> answers{anything, std::optional<ApstFeature>{}, Refusal{}};
    if (c.tolerance && c.tolerance->has_value())
        answers.emplace_back(std::optional{predict_apst_table(kernel_inputs(c, machine), **c.tolerance).feature});
    for (const auto& answer : answers) {
        c.apst = answer;
        d = decide_apst(question);
        const Verdict verdict = verify_apst(question, d);
        const Plan plan = plan_apst(question, d, verdict);
        require(plan.empty() || (d.support == ApstSupport::supported && d.mode == ManageMode::manage), "a change out of place");
        require(plan.changes.size() <= 1, "more than one change");
        for (const Change& change : plan.changes) {
            const auto& to = std::get<ToleranceChange>(change);
            require(to.to == d.tolerance, "a change to something else");
            require(to.through || !to.from.same_effect(to.to), "a change that the kernel would not notice");
        }
        const auto lines = explain_apst(question, d, verdict);
        require(!lines.empty(), "nothing explained");
        for (const std::string& line : lines)
            require_printable(line, "an explanation that is not printable");
        if (answer && answer->has_value())
            static_cast<void>(idle_outlook(**answer, id->power_states, measured));
    }

    const auto drive = capture(c);
    require(drive.has_value(), "an identified controller that cannot be captured");
    const std::string text = format_drive_file(*drive);
    const auto again = parse_drive_file("captured", text);
    require(again && *again == *drive, "a capture that does not come back", text);
    return 0;
}
