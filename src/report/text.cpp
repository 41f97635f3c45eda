// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "actual_table.h"
#include "table.h"

namespace nvmepolicy {
namespace {

std::string power_source(const Machine& machine)
{
    return machine.power_source == PowerSource::battery ? "battery" : "AC";
}

std::string heading(const Round& round, bool simulated)
{
    return fmt::format("{}profile {} on {}\n", simulated ? "SIMULATED drives, " : "", round.circumstances.wish.profile,
                       power_source(round.circumstances.machine));
}

std::string state_word(std::optional<int> state)
{
    return state ? fmt::format("PS{}", *state) : "none";
}

std::string power_word(const IdleOutlook& outlook)
{
    if (!outlook.idle_power)
        return "-";
    return (outlook.idle_power_is_maximum ? "<= " : "") + show(*outlook.idle_power);
}

std::string cache_word(const Controller& c)
{
    std::string mode;
    for (const Leaf& leaf : c.leaves) {
        const std::string one = leaf.cache_mode ? *leaf.cache_mode : "unknown";
        if (mode.empty())
            mode = one;
        else if (mode != one)
            return "mixed";
    }
    return mode.empty() ? "-" : mode;
}

/// `yes`, or in two or three words why not; the sentence follows below the table.
std::string verdict_word(const Outcome& o)
{
    switch (o.verdict.agreement) {
    case Agreement::verified: return "yes";
    case Agreement::verified_by_quirk: return "yes (quirk)";
    case Agreement::not_applicable: return o.decision.support == ApstSupport::off_by_quirk ? "off by quirk" : "no APST";
    case Agreement::off_but_enabled: return "off by quirk";
    case Agreement::awaits_change: return "not applied";
    case Agreement::parameters_moved: return "next time";
    case Agreement::table_differs: return "NO";
    case Agreement::left_to_another: return "overridden";
    case Agreement::ignored: return "NO (NPSS)";
    case Agreement::unread: break;
    }
    return "unread";
}

std::vector<std::string> status_row(const Outcome& o)
{
    if (!o.controller)
        return {o.name, o.gone() ? "gone" : "unknown", "-", "-", "-", "-", "-", "-", "-"};
    const Controller& c = *o.controller;
    const bool has_tolerance = c.tolerance && c.tolerance->has_value();
    const IdleOutlook outlook = actual_outlook(o);
    return {c.name,
            o.gone() ? "gone" : show(c.state),
            c.model.empty() ? "-" : c.model,
            has_tolerance ? show(**c.tolerance) : "-",
            actual_table(c) ? state_word(outlook.deepest_state) : "-",
            outlook.wake_latency
                ? show(*outlook.wake_latency) + (outlook.wake_source == WakeSource::measured ? " measured" : "")
                : "-",
            power_word(outlook),
            cache_word(c),
            verdict_word(o)};
}

/// The message, led in by the controller's name unless it names it itself.
std::string remark(const std::string& name, const std::string& text)
{
    return text.starts_with(name + ":") ? text : name + ": " + text;
}

/// What a line of the table cannot say.
std::vector<std::string> remarks(const Outcome& o)
{
    std::vector<std::string> lines;
    if (o.error)
        lines.push_back(remark(o.name, o.error->text()));
    if (!o.controller)
        return lines;
    if (o.decision.ceiling && o.decision.ceiling->binds && !o.decision.ceiling->lifted
        && o.decision.support == ApstSupport::supported)
        lines.push_back(fmt::format("{}: LIMITED by {}, set before us; allow_deeper = true in a [[match]] lifts it", o.name,
                                    o.decision.ceiling->source));
    const bool worth_a_word = !o.verdict.verified() && o.verdict.agreement != Agreement::not_applicable;
    const bool said = o.error && o.verdict.agreement == Agreement::unread;
    if (worth_a_word && !said)
        lines.push_back(remark(o.name, o.verdict.reason));
    return lines;
}

std::string show_power_states(const Controller& c, const ApstDecision& d)
{
    Table table({"STATE", "KIND", "MAX POWER", "IDLE POWER", "ENTRY", "EXIT", "ROUND TRIP", ""});
    const auto latency = [](const std::optional<Microseconds>& l) { return l ? show(*l) : std::string("unreported"); };
    const auto power = [](const std::optional<Microwatts>& p) { return p ? show(*p) : std::string("-"); };
    for (const PowerState& s : c.identify->power_states) {
        const bool unwanted = std::ranges::any_of(d.unwanted, [&](const UnwantedState& u) { return u.state == s.index; });
        table.add({fmt::format("PS{}", s.index), s.operational ? "operational" : "sleep", power(s.max_power),
                   power(s.idle_power), latency(s.entry_latency), latency(s.exit_latency),
                   s.entry_latency && s.exit_latency ? show(s.round_trip()) : "-", unwanted ? "unwanted" : ""});
    }
    return table.text();
}

std::string entry_word(const ApstEntry& entry)
{
    return entry.transitions() ? fmt::format("PS{} after {} ms", entry.target(), entry.idle_time().count()) : "stays";
}

std::string show_tables(const Controller& c, const ApstDecision& d)
{
    Table table({"FROM", "PREDICTED", "DRIVE HOLDS", ""});
    const ApstFeature* actual = actual_table(c);
    for (std::size_t i = 0; i < c.identify->power_states.size(); ++i) {
        const ApstEntry& predicted = d.predicted.feature.entries[i];
        const bool differs = actual && !(actual->entries[i] == predicted);
        table.add({fmt::format("PS{}", i), entry_word(predicted), actual ? entry_word(actual->entries[i]) : "unread",
                   differs ? "differs" : ""});
    }
    return fmt::format("APST {} predicted, {} in the drive\n", d.predicted.feature.enabled ? "on" : "off",
                       actual ? (actual->enabled ? "on" : "off") : "unread")
           + table.text();
}

} // namespace

Style style_of_stdout()
{
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    const bool forbidden = (no_color && *no_color) || !term || std::string(term) == "dumb";
    return !forbidden && ::isatty(STDOUT_FILENO) ? Style::coloured : Style::plain;
}

std::string status_text(const Round& round, bool simulated, Style style)
{
    std::string text = heading(round, simulated);
    if (round.outcomes.empty() && round.complaints.empty())
        return text + "no NVMe controllers\n";
    Table table({"NAME", "STATE", "MODEL", "TOLERANCE", "DEEPEST", "WAKES IN", "IDLE POWER", "CACHE MODE", "VERIFIED"});
    for (const Outcome& o : round.outcomes) {
        auto row = status_row(o);
        const char* colour = o.in_order() ? "32" : o.gone() ? "33" : "31";
        table.add(std::move(row), style == Style::coloured ? colour : "");
    }
    text += table.text();
    std::vector<std::string> lines;
    for (const Refusal& complaint : round.complaints)
        lines.push_back(complaint.text());
    for (const Outcome& o : round.outcomes)
        for (std::string& line : remarks(o))
            lines.push_back(std::move(line));
    if (!lines.empty())
        text += "\n";
    for (const std::string& line : lines)
        text += line + "\n";
    return text;
}

std::string show_text(const Round& round, const Outcome& o, bool simulated, Style style)
{
    Round one{round.circumstances, {o}, {}, round.complaints};
    std::string text = status_text(one, simulated, style);
    if (!o.controller)
        return text;
    const Controller& c = *o.controller;
    text += fmt::format("\nserial {}, firmware {}, {} {}\nsubsystem {}\n", c.id.serial.empty() ? "-" : c.id.serial,
                        c.firmware.empty() ? "-" : c.firmware, c.transport, c.address, c.id.subsystem_nqn);
    if (c.identify) {
        text += "\n" + show_power_states(c, o.decision);
        if (o.decision.support == ApstSupport::supported)
            text += "\n" + show_tables(c, o.decision);
    }
    if (!c.leaves.empty()) {
        Table table({"DISK", "CACHE MODE", "FUA", "ANA", "HOLDERS"});
        for (const Leaf& leaf : c.leaves)
            table.add({leaf.name, leaf.cache_mode ? *leaf.cache_mode : "unknown",
                       leaf.fua ? (*leaf.fua ? "yes" : "no") : "unknown", leaf.ana_state.empty() ? "-" : leaf.ana_state,
                       leaf.holders.empty() ? "-" : fmt::format("{}", fmt::join(leaf.holders, " "))});
        text += "\n" + table.text();
    }
    return text;
}

std::string change_text(const Outcome& o, const ToleranceChange& c)
{
    return fmt::format("{}: latency tolerance {} -> {}{} ({}): {}; {}", o.name, c.from.kernel_text(),
                       c.through ? c.through->kernel_text() + " -> " : "", c.to.kernel_text(), c.origin, c.reason,
                       o.error ? o.error->text() : o.verdict.reason);
}

std::string changes_text(const Round& round)
{
    Table table({"NAME", "ATTRIBUTE", "FROM", "TO", "ORIGIN", "REASON"});
    bool empty = true;
    for (const Outcome& o : round.outcomes)
        for (const Change& change : o.plan.changes) {
            const auto& c = std::get<ToleranceChange>(change);
            const std::string to = c.through ? c.through->kernel_text() + ", " + c.to.kernel_text() : c.to.kernel_text();
            table.add({c.name, tolerance_attribute, c.from.kernel_text(), to, c.origin, c.reason});
            empty = false;
        }
    return empty ? "nothing to change\n" : table.text();
}

std::string plan_text(const Round& round, bool simulated)
{
    return heading(round, simulated) + changes_text(round);
}

std::string predict_text(const DriveFile& drive, const LatencyTolerance& tolerance, const PredictedTable& predicted)
{
    std::string text =
        fmt::format("{} at a latency tolerance of {}\n", drive.model.empty() ? "drive" : drive.model, show(tolerance));
    if (!predicted.command_sent)
        return text
               + (drive.npss > highest_npss ? "the kernel sends nothing: NPSS is above 31\n"
                                            : "the kernel sends nothing: the drive does not support APST\n");
    if (!predicted.feature.enabled)
        return text + "APST off\n";
    Table table({"FROM", "TO", "RAW"});
    for (const PowerState& s : drive.power_states) {
        const ApstEntry& entry = predicted.feature.entries[static_cast<std::size_t>(s.index)];
        table.add({fmt::format("PS{}", s.index), entry_word(entry), fmt::format("0x{:016x}", entry.raw)});
    }
    const auto deepest = predicted.feature.deepest_state();
    return text + table.text()
           + fmt::format("deepest state: {}\n", deepest ? fmt::format("PS{}", *deepest) : "none, it stays awake");
}

} // namespace nvmepolicy
