// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "fields.h"
#include "table.h"

namespace nvmepolicy {
namespace {

std::string heading(const Document& document)
{
    return fmt::format("{}profile {} on {}\n", is_true(document, "simulated") ? "SIMULATED drives, " : "",
                       text_of(document, "profile"), is_true(document, "on_battery") ? "battery" : "AC");
}

/// A number of microseconds for people, a word as it is.
std::string latency_word(const Document& object, const char* key, const char* otherwise)
{
    const auto number = number_of(object, key);
    return number ? show(Microseconds{*number}) : text_of(object, key, otherwise);
}

std::string power_word(const Document& object, const char* key)
{
    const Document& value = member(object, key);
    // Held in whole microwatts, written in milliwatts; what is beyond any drive would not convert.
    if (!value.is_number() || !(std::abs(value.get<double>()) < 1e12))
        return "-";
    return show(Microwatts{std::llround(value.get<double>() * 1000.0)});
}

std::string state_word(const Document& apst)
{
    if (member(apst, "actual_table").is_null())
        return "-";
    const auto state = number_of(apst, "deepest_state");
    return state ? fmt::format("PS{}", *state) : "none";
}

std::string idle_power_word(const Document& apst)
{
    const bool is_maximum = text_of(apst, "idle_power_source") == "max_power";
    return (is_maximum ? "<= " : "") + power_word(apst, "idle_power_mw");
}

std::string wake_word(const Document& apst)
{
    return latency_word(apst, "wake_latency_us", "-") + (text_of(apst, "wake_latency_source") == "measured" ? " measured" : "");
}

std::string cache_word(const Document& c)
{
    std::string mode;
    for (const Document& leaf : member(member(c, "write_cache"), "leaves")) {
        const std::string one = text_of(leaf, "mode", "unknown");
        if (mode.empty())
            mode = one;
        else if (mode != one)
            return "mixed";
    }
    return mode.empty() ? "-" : mode;
}

std::vector<std::string> status_row(const Document& c)
{
    const Document& apst = member(c, "apst");
    return {text_of(c, "name", "-"),
            is_true(c, "gone") ? "gone" : text_of(c, "state", "unknown"),
            text_of(c, "model", "-"),
            latency_word(apst, "tolerance_us", "-"),
            state_word(apst),
            wake_word(apst),
            idle_power_word(apst),
            cache_word(c),
            text_of(apst, "verdict", "-")};
}

/// The message, led in by the controller's name unless it names it itself.
std::string remark(const std::string& name, const std::string& text)
{
    return text.starts_with(name + ":") ? text : name + ": " + text;
}

/// What a line of the table cannot say.
std::vector<std::string> remarks(const Document& c)
{
    std::vector<std::string> lines;
    const std::string name = text_of(c, "name", "-");
    const std::string error = text_of(c, "last_error");
    const Document& apst = member(c, "apst");
    const std::string reason = text_of(apst, "reason");
    if (!error.empty() && (apst.is_null() || error != reason))
        lines.push_back(remark(name, error));
    if (apst.is_null())
        return lines;
    if (is_true(apst, "ceiling_binds") && !member(apst, "wanted_tolerance_us").is_null())
        lines.push_back(fmt::format("{}: LIMITED by {}, set before us; allow_deeper = true in a [[match]] lifts it", name,
                                    text_of(apst, "ceiling_source")));
    const std::string agreement = text_of(apst, "agreement");
    const bool worth_a_word = !is_true(apst, "verified") && agreement != "not_applicable";
    const bool said = agreement == "unread" && !error.empty() && error != reason;
    if (worth_a_word && !said && !reason.empty())
        lines.push_back(remark(name, reason));
    return lines;
}

std::string show_power_states(const Document& show_document)
{
    Table table({"STATE", "KIND", "MAX POWER", "IDLE POWER", "ENTRY", "EXIT", "ROUND TRIP", ""});
    const Document& unwanted = member(member(show_document, "apst"), "unwanted_states");
    for (const Document& s : member(show_document, "power_states")) {
        const auto entry = number_of(s, "entry_latency_us");
        const auto exit = number_of(s, "exit_latency_us");
        const bool is_unwanted = std::ranges::find(unwanted, member(s, "state")) != unwanted.end();
        table.add({fmt::format("PS{}", number_of(s, "state").value_or(-1)), is_true(s, "operational") ? "operational" : "sleep",
                   power_word(s, "max_power_mw"), power_word(s, "idle_power_mw"),
                   latency_word(s, "entry_latency_us", "unreported"), latency_word(s, "exit_latency_us", "unreported"),
                   entry && exit ? show(Microseconds{*entry} + Microseconds{*exit}) : "-", is_unwanted ? "unwanted" : ""});
    }
    return table.text();
}

std::string entry_word(const ApstEntry& entry)
{
    return entry.transitions() ? fmt::format("PS{} after {} ms", entry.target(), entry.idle_time().count()) : "stays";
}

/// An entry of a table in a document, by its 64 bits; none where they are not there.
std::optional<ApstEntry> entry_at(const Document& table, std::size_t i)
{
    if (!table.is_array() || i >= table.size())
        return std::nullopt;
    const std::string raw = text_of(table[i], "raw");
    ApstEntry entry;
    const char* end = raw.data() + raw.size();
    if (!raw.starts_with("0x") || std::from_chars(raw.data() + 2, end, entry.raw, 16).ptr != end)
        return std::nullopt;
    return entry;
}

const char* switch_word(const Document& apst, const char* key)
{
    const Document& value = member(apst, key);
    return value.is_boolean() ? (value.get<bool>() ? "on" : "off") : "unread";
}

std::string show_tables(const Document& show_document)
{
    Table table({"FROM", "PREDICTED", "DRIVE HOLDS", ""});
    const Document& apst = member(show_document, "apst");
    const Document& held = member(apst, "actual_table");
    const auto word = [](const std::optional<ApstEntry>& e) { return e ? entry_word(*e) : std::string("unread"); };
    for (std::size_t i = 0; i < member(apst, "predicted_table").size(); ++i) {
        const auto predicted = entry_at(member(apst, "predicted_table"), i);
        const auto actual = entry_at(held, i);
        table.add({fmt::format("PS{}", i), word(predicted), word(actual), actual && actual != predicted ? "differs" : ""});
    }
    return fmt::format("APST {} predicted, {} in the drive\n", switch_word(apst, "predicted_enabled"),
                       switch_word(apst, "enabled"))
           + table.text();
}

std::string show_leaves(const Document& leaves)
{
    Table table({"DISK", "CACHE MODE", "FUA", "ANA", "HOLDERS"});
    for (const Document& leaf : leaves) {
        const auto holders = texts_of(leaf, "holders");
        const Document& fua = member(leaf, "fua");
        table.add({text_of(leaf, "name", "-"), text_of(leaf, "mode", "unknown"),
                   fua.is_boolean() ? (fua.get<bool>() ? "yes" : "no") : "unknown", text_of(leaf, "ana_state", "-"),
                   holders.empty() ? "-" : fmt::format("{}", fmt::join(holders, " "))});
    }
    return table.text();
}

/// The part of `status` and `show` that they have in common.
std::string table_text(const Document& document, const std::vector<const Document*>& controllers, Style style)
{
    std::string text = heading(document);
    auto lines = texts_of(document, "complaints");
    if (controllers.empty() && lines.empty())
        return text + "no NVMe controllers\n";
    Table table({"NAME", "STATE", "MODEL", "TOLERANCE", "DEEPEST", "WAKES IN", "IDLE POWER", "CACHE MODE", "VERIFIED"});
    for (const Document* c : controllers) {
        const char* colour = is_true(*c, "in_order") ? "32" : is_true(*c, "gone") ? "33" : "31";
        table.add(status_row(*c), style == Style::coloured ? colour : "");
        for (std::string& line : remarks(*c))
            lines.push_back(std::move(line));
    }
    text += table.text();
    if (!lines.empty())
        text += "\n";
    for (const std::string& line : lines)
        text += line + "\n";
    return text;
}

} // namespace

Style style_of_stdout()
{
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    const bool forbidden = (no_color && *no_color) || !term || std::string(term) == "dumb";
    return !forbidden && ::isatty(STDOUT_FILENO) ? Style::coloured : Style::plain;
}

std::string status_text(const Document& status, Style style)
{
    std::vector<const Document*> controllers;
    for (const Document& c : member(status, "controllers"))
        controllers.push_back(&c);
    return table_text(status, controllers, style);
}

std::string show_text(const Document& show, Style style)
{
    std::string text = table_text(show, {&show}, style);
    if (!was_identified(show))
        return text;
    text += fmt::format("\nserial {}, firmware {}, {} {}\nsubsystem {}\n", text_of(show, "serial", "-"),
                        text_of(show, "firmware", "-"), text_of(show, "transport"), text_of(show, "address"),
                        text_of(show, "subsystem_nqn"));
    if (!member(show, "power_states").empty()) {
        text += "\n" + show_power_states(show);
        if (!member(member(show, "apst"), "predicted_table").is_null())
            text += "\n" + show_tables(show);
    }
    if (const Document& leaves = member(member(show, "write_cache"), "leaves"); !leaves.empty())
        text += "\n" + show_leaves(leaves);
    return text;
}

bool was_identified(const Document& show)
{
    return !member(show, "apst").is_null();
}

std::string explain_text(const Document& show)
{
    std::string text = fmt::format("{}{}: {}, firmware {}\n", is_true(show, "simulated") ? "SIMULATED " : "",
                                   text_of(show, "name"), text_of(show, "model"), text_of(show, "firmware"));
    for (const std::string& line : texts_of(show, "explanation"))
        text += line + "\n";
    return text;
}

std::string change_text(const Outcome& o, const ToleranceChange& c)
{
    return fmt::format("{}: latency tolerance {} -> {}{} ({}): {}; {}", o.name, c.from.kernel_text(),
                       c.through ? c.through->kernel_text() + " -> " : "", c.to.kernel_text(), c.origin, c.reason,
                       o.error ? o.error->text() : o.verdict.reason);
}

std::string changes_text(const Document& plan)
{
    Table table({"NAME", "ATTRIBUTE", "FROM", "TO", "ORIGIN", "REASON"});
    const Document& changes = member(plan, "changes");
    for (const Document& c : changes) {
        const std::string through = text_of(c, "through");
        table.add({text_of(c, "object"), text_of(c, "attribute"), text_of(c, "from"),
                   (through.empty() ? "" : through + ", ") + text_of(c, "to"), text_of(c, "origin"), text_of(c, "reason")});
    }
    return changes.empty() ? "nothing to change\n" : table.text();
}

std::string plan_text(const Document& plan)
{
    return heading(plan) + changes_text(plan);
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
