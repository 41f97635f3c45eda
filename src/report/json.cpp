// SPDX-License-Identifier: LGPL-2.1-or-later
#include "json.h"

#include <algorithm>
#include <fmt/format.h>

#include "actual_table.h"
#include "nvmepolicy/wording.h"

namespace nvmepolicy {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schema = 1;
constexpr auto replace_broken = Json::error_handler_t::replace;

template <class T>
Json or_null(const std::optional<T>& value)
{
    return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text)
{
    return text.empty() ? Json(nullptr) : Json(text);
}

Json microseconds(const std::optional<Microseconds>& time)
{
    return time ? Json(time->count()) : Json(nullptr);
}

Json milliwatts(const std::optional<Microwatts>& power)
{
    return power ? Json(static_cast<double>(power->count) / 1000.0) : Json(nullptr);
}

Json to_json(const LatencyTolerance& tolerance)
{
    return tolerance.limit() ? Json(tolerance.limit()->count()) : Json(tolerance.kernel_text());
}

Json to_json(const LatencyBound& bound)
{
    return bound.limit ? Json(bound.limit->count()) : Json("any");
}

const char* word(WakeSource source)
{
    return source == WakeSource::measured ? "measured" : "advertised";
}

/// Stable words for what the comparison came to.
const char* word(Agreement agreement)
{
    switch (agreement) {
    case Agreement::verified: return "verified";
    case Agreement::verified_by_quirk: return "verified_by_quirk";
    case Agreement::not_applicable: return "not_applicable";
    case Agreement::off_but_enabled: return "off_but_enabled";
    case Agreement::awaits_change: return "awaits_change";
    case Agreement::parameters_moved: return "parameters_moved";
    case Agreement::table_differs: return "table_differs";
    case Agreement::left_to_another: return "left_to_another";
    case Agreement::ignored: return "ignored";
    case Agreement::unread: break;
    }
    return "unread";
}

/// `yes`, or in two or three words why not; the sentence is the reason.
const char* verdict_word(const Outcome& o)
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

Json entries_json(const ApstFeature& table, std::size_t states)
{
    Json entries = Json::array();
    for (std::size_t i = 0; i < states; ++i) {
        const ApstEntry entry = table.entries[i];
        const bool set = entry.raw != 0;
        entries.push_back({{"state", i},
                           {"target_state", set ? Json(entry.target()) : Json(nullptr)},
                           {"idle_ms", set ? Json(entry.idle_time().count()) : Json(nullptr)},
                           {"raw", fmt::format("0x{:016x}", entry.raw)}});
    }
    return entries;
}

std::size_t state_count(const Controller& c)
{
    return c.identify ? c.identify->power_states.size() : 0;
}

Json apst_json(const Outcome& o)
{
    const Controller& c = *o.controller;
    const ApstDecision& d = o.decision;
    const bool supported = d.support == ApstSupport::supported;
    const ApstFeature* actual = actual_table(c);
    const IdleOutlook outlook = actual_outlook(o);
    Json unwanted = Json::array();
    for (const UnwantedState& u : d.unwanted)
        unwanted.push_back(u.state);
    const bool has_tolerance = c.tolerance && c.tolerance->has_value();
    return {
        {"supported", c.identify ? Json(c.identify->apsta != 0) : Json(nullptr)},
        {"enabled", actual ? Json(actual->enabled) : Json(nullptr)},
        {"bound_us", to_json(d.bound)},
        {"ceiling_us", d.ceiling ? Json(d.ceiling->limit.count()) : Json(nullptr)},
        {"ceiling_source", d.ceiling ? Json(d.ceiling->source) : Json(nullptr)},
        {"ceiling_binds", d.ceiling ? Json(d.ceiling->binds && !d.ceiling->lifted) : Json(nullptr)},
        {"tolerance_us", has_tolerance ? to_json(**c.tolerance) : Json(nullptr)},
        {"wanted_tolerance_us", supported ? to_json(d.tolerance) : Json(nullptr)},
        {"unwanted_states", std::move(unwanted)},
        {"deepest_state", or_null(outlook.deepest_state)},
        {"wake_latency_us", microseconds(outlook.wake_latency)},
        {"wake_latency_source", outlook.wake_latency ? Json(word(outlook.wake_source)) : Json(nullptr)},
        {"round_trip_us", microseconds(outlook.round_trip)},
        {"idle_power_mw", milliwatts(outlook.idle_power)},
        {"idle_power_source",
         outlook.idle_power ? Json(outlook.idle_power_is_maximum ? "max_power" : "idle_power") : Json(nullptr)},
        {"verified", o.verdict.verified()},
        {"inferred_quirk", or_null(o.verdict.inferred_quirk)},
        {"breaker_tripped", d.breaker_tripped},
        {"agreement", word(o.verdict.agreement)},
        {"verdict", verdict_word(o)},
        {"reason", o.verdict.reason},
        {"predicted_enabled", supported ? Json(d.predicted.feature.enabled) : Json(nullptr)},
        {"predicted_table", supported ? entries_json(d.predicted.feature, state_count(c)) : Json(nullptr)},
        {"actual_table", actual ? entries_json(*actual, state_count(c)) : Json(nullptr)},
    };
}

Json write_cache_json(const Outcome& o)
{
    const Controller& c = *o.controller;
    Json leaves = Json::array();
    for (const Leaf& leaf : c.leaves)
        leaves.push_back({{"name", leaf.name},
                          {"mode", leaf.cache_mode ? Json(*leaf.cache_mode) : Json(nullptr)},
                          {"fua", or_null(leaf.fua)},
                          {"ana_state", text_or_null(leaf.ana_state)},
                          {"holders", leaf.holders}});
    return {{"present", c.identify ? Json((c.identify->vwc & 1) != 0) : Json(nullptr)},
            {"enabled", nullptr},
            {"default", nullptr},
            {"saved", nullptr},
            {"watch", nullptr},
            {"reason", nullptr},
            {"leaves", std::move(leaves)}};
}

Json controller_json(const Outcome& o)
{
    const std::string error = o.last_error();
    if (!o.controller)
        return {{"name", o.name},
                {"model", nullptr},
                {"serial", nullptr},
                {"firmware", nullptr},
                {"transport", nullptr},
                {"address", nullptr},
                {"subsystem_nqn", nullptr},
                {"state", o.gone() ? "gone" : "unknown"},
                {"apst", nullptr},
                {"write_cache", nullptr},
                {"multipath", nullptr},
                {"breaker_tripped", false},
                {"inferred_quirk", nullptr},
                {"in_order", o.in_order()},
                {"gone", o.gone()},
                {"last_error", text_or_null(error)}};
    const Controller& c = *o.controller;
    return {{"name", c.name},
            {"model", text_or_null(c.model)},
            {"serial", text_or_null(c.id.serial)},
            {"firmware", text_or_null(c.firmware)},
            {"transport", text_or_null(c.transport)},
            {"address", text_or_null(c.address)},
            {"subsystem_nqn", text_or_null(c.id.subsystem_nqn)},
            {"state", show(c.state)},
            {"apst", apst_json(o)},
            {"write_cache", write_cache_json(o)},
            {"multipath", {{"weight", nullptr}, {"throughput_bytes_per_second", nullptr}, {"throughput_source", nullptr}}},
            {"breaker_tripped", o.decision.breaker_tripped},
            {"inferred_quirk", or_null(o.verdict.inferred_quirk)},
            {"in_order", o.in_order()},
            {"gone", o.gone()},
            {"last_error", text_or_null(error)}};
}

Json subsystem_json(const Subsystem& s, const Round& round)
{
    Json paths = Json::array();
    for (const Outcome& o : round.outcomes) {
        if (!o.controller || std::ranges::find(s.controllers, o.name) == s.controllers.end())
            continue;
        for (const Leaf& leaf : o.controller->leaves)
            if (leaf.path)
                paths.push_back({{"name", leaf.name}, {"controller", o.name}, {"ana_state", text_or_null(leaf.ana_state)}});
    }
    return {{"name", s.name},
            {"nqn", text_or_null(s.nqn)},
            {"iopolicy", text_or_null(s.iopolicy)},
            {"supported_iopolicies", nullptr},
            {"controllers", s.controllers},
            {"heads", s.heads},
            {"paths", std::move(paths)}};
}

Json frame(const Round& round, bool simulated)
{
    Json complaints = Json::array();
    for (const Refusal& complaint : round.complaints)
        complaints.push_back(complaint.text());
    return {{"schema", schema},
            {"simulated", simulated},
            {"profile", round.circumstances.wish.profile},
            {"on_battery", round.circumstances.machine.power_source == PowerSource::battery},
            {"complaints", std::move(complaints)}};
}

} // namespace

nlohmann::ordered_json status_json(const Round& round, bool simulated)
{
    Json document = frame(round, simulated);
    document["controllers"] = Json::array();
    for (const Outcome& o : round.outcomes)
        document["controllers"].push_back(controller_json(o));
    document["subsystems"] = Json::array();
    for (const Subsystem& s : round.subsystems)
        document["subsystems"].push_back(subsystem_json(s, round));
    return document;
}

nlohmann::ordered_json show_json(const Round& round, const Outcome& outcome, bool simulated)
{
    Json document = frame(round, simulated);
    document.update(controller_json(outcome));
    document["explanation"] = outcome.explanation;
    Json states = Json::array();
    if (outcome.controller && outcome.controller->identify)
        for (const PowerState& s : outcome.controller->identify->power_states)
            states.push_back({{"state", s.index},
                              {"operational", s.operational},
                              {"max_power_mw", milliwatts(s.max_power)},
                              {"idle_power_mw", milliwatts(s.idle_power)},
                              {"entry_latency_us", microseconds(s.entry_latency)},
                              {"exit_latency_us", microseconds(s.exit_latency)}});
    document["power_states"] = std::move(states);
    document["changes"] = plan_json(Round{round.circumstances, {outcome}, {}, {}}, simulated)["changes"];
    return document;
}

nlohmann::ordered_json plan_json(const Round& round, bool simulated)
{
    Json document = frame(round, simulated);
    document.erase("complaints");
    document["changes"] = Json::array();
    for (const Outcome& o : round.outcomes)
        for (const Change& change : o.plan.changes) {
            const auto& c = std::get<ToleranceChange>(change);
            document["changes"].push_back({{"object", c.name},
                                           {"attribute", tolerance_attribute},
                                           {"from", c.from.kernel_text()},
                                           {"to", c.to.kernel_text()},
                                           {"through", c.through ? Json(c.through->kernel_text()) : Json(nullptr)},
                                           {"origin", c.origin},
                                           {"reason", c.reason}});
        }
    return document;
}

nlohmann::ordered_json predict_json(const DriveFile& drive, const LatencyTolerance& tolerance, const PredictedTable& table)
{
    return {{"schema", schema},
            {"tolerance_us", to_json(tolerance)},
            {"command_sent", table.command_sent},
            {"apste", table.feature.enabled ? 1 : 0},
            {"deepest_state", or_null(table.feature.deepest_state())},
            {"max_round_trip_us", microseconds(table.max_round_trip)},
            {"entries", table.command_sent ? entries_json(table.feature, drive.power_states.size()) : Json::array()}};
}

Result<nlohmann::ordered_json> read_document(const std::string& from, std::string_view text)
{
    Json document = Json::parse(text, nullptr, false);
    if (!document.is_object())
        return Refusal{from, "", "what it sent is no JSON document", RefusalKind::invalid};
    const auto found = document.find("schema");
    if (found == document.end() || *found != schema)
        return Refusal{
            from, "",
            fmt::format("its documents are of schema {}, this program reads schema {}: both should be of one version",
                        found == document.end() ? "-" : printable(found->dump(-1, ' ', false, replace_broken), 20), schema),
            RefusalKind::unsupported};
    return document;
}

std::string to_text(const nlohmann::ordered_json& document)
{
    return document.dump(2, ' ', false, replace_broken) + "\n";
}

} // namespace nvmepolicy
