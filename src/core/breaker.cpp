// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/breaker.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace nvmepolicy {
namespace {

using nlohmann::json;

constexpr int schema = 2;

/// The kernel's own comparison, see predict_apst_table().
bool admits(const LatencyTolerance& tolerance, const PowerState& state)
{
    const auto limit = tolerance.limit();
    return !limit || (*limit > Microseconds{0} && state.kernel_exit_latency() <= *limit);
}

json to_json(const ControllerId& id)
{
    return {{"subsystem_nqn", id.subsystem_nqn}, {"serial", id.serial}, {"cntlid", id.cntlid}, {"path", id.path}};
}

std::string text(const json& object, const char* key, bool& good)
{
    const auto found = object.find(key);
    if (found != object.end() && found->is_string())
        return found->get<std::string>();
    good = false;
    return {};
}

ControllerId read_id(const json& object, bool& good)
{
    ControllerId id{text(object, "subsystem_nqn", good), text(object, "serial", good), 0, text(object, "path", good)};
    const auto cntlid = object.find("cntlid");
    if (cntlid == object.end() || !cntlid->is_number_unsigned() || cntlid->get<std::uint64_t>() > UINT16_MAX)
        good = false;
    else
        id.cntlid = static_cast<std::uint16_t>(cntlid->get<std::uint64_t>());
    return id;
}

BreakerRecord::Trial read_trial(const json& object, bool& good)
{
    const auto clean = object.find("clean");
    if (clean != object.end() && clean->is_boolean())
        return {text(object, "boot_id", good), clean->get<bool>()};
    good = false;
    return {};
}

BreakerRecord::Trip read_trip(const json& object, bool& good)
{
    const auto at = object.find("at");
    if (at != object.end() && at->is_number_integer())
        return {text(object, "reason", good), at->get<std::int64_t>()};
    good = false;
    return {};
}

/// All that is known of one controller.
bool read_line(const json& object, BreakerRecord& record)
{
    const auto part = [&object](const char* key) {
        const auto found = object.find(key);
        return found != object.end() && (found->is_object() || found->is_null()) ? &*found : nullptr;
    };
    if (!object.is_object() || !part("trial") || !part("trip"))
        return false;
    bool good = true;
    const ControllerId controller = read_id(object, good);
    record.trials.erase(controller);
    record.trips.erase(controller);
    if (const json& trial = *part("trial"); trial.is_object())
        record.trials[controller] = read_trial(trial, good);
    if (const json& trip = *part("trip"); trip.is_object())
        record.trips[controller] = read_trip(trip, good);
    return good;
}

/// Schema 1: one document with two lists.
Result<BreakerRecord> parse_document(const std::string& where, std::string_view content)
{
    const Refusal damaged{where, "", "not a breaker record of schema 1 or 2", RefusalKind::invalid};
    const json document = json::parse(content, nullptr, false);
    if (!document.is_object() || !document.contains("schema") || document["schema"] != 1 || !document.contains("trials")
        || !document.contains("trips") || !document["trials"].is_array() || !document["trips"].is_array())
        return damaged;
    BreakerRecord record;
    bool good = true;
    for (const json& object : document["trials"]) {
        if (!object.is_object())
            return damaged;
        const ControllerId controller = read_id(object, good);
        record.trials[controller] = read_trial(object, good);
    }
    for (const json& object : document["trips"]) {
        if (!object.is_object())
            return damaged;
        const ControllerId controller = read_id(object, good);
        record.trips.try_emplace(controller, read_trip(object, good));
    }
    if (!good)
        return damaged;
    return record;
}

std::string line(const json& object)
{
    return object.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
}

} // namespace

bool goes_deeper(const LatencyTolerance& wanted, const LatencyTolerance& first, std::span<const PowerState> states)
{
    return std::ranges::any_of(states,
                               [&](const PowerState& s) { return !s.operational && admits(wanted, s) && !admits(first, s); });
}

bool note_drop_out(DropOuts& drop_outs, Milliseconds now)
{
    std::erase_if(drop_outs.times, [=](Milliseconds at) { return now - at > drop_out_window; });
    drop_outs.times.push_back(now);
    return drop_outs.times.size() >= drop_outs_that_trip;
}

const BreakerRecord::Trip* BreakerRecord::trip_of(const ControllerId& controller) const
{
    const auto found = trips.find(controller);
    return found == trips.end() ? nullptr : &found->second;
}

bool BreakerRecord::on_trial(const ControllerId& controller, std::string_view boot_id) const
{
    const auto found = trials.find(controller);
    return found != trials.end() && found->second.boot_id == boot_id && !found->second.clean;
}

BreakerRecord after_boot(BreakerRecord record, std::string_view boot_id, std::int64_t now)
{
    for (const auto& [controller, trial] : record.trials)
        if (trial.boot_id != boot_id && !trial.clean)
            record.trips.try_emplace(
                controller,
                BreakerRecord::Trip{"the machine went down without a clean stop while this drive was allowed into deeper sleep "
                                    "than at boot",
                                    now});
    std::erase_if(record.trials, [&](const auto& trial) { return trial.second.boot_id != boot_id; });
    return record;
}

Result<BreakerRecord> parse_breaker(const std::string& where, std::string_view content)
{
    if (content.size() > largest_breaker_record)
        return Refusal{where, std::to_string(content.size()) + " bytes", "larger than any breaker record",
                       RefusalKind::invalid};
    std::string_view rest = content;
    const auto next_line = [&rest] {
        const std::string_view next = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(next.size() + 1, rest.size()));
        return next;
    };
    const json header = json::parse(next_line(), nullptr, false);
    if (!header.is_object() || !header.contains("schema") || header["schema"] != schema)
        return parse_document(where, content);
    BreakerRecord record;
    for (int number = 2; !rest.empty(); ++number) {
        const std::string_view line = next_line();
        const json object = json::parse(line, nullptr, false);
        const bool interrupted = rest.empty() && content.back() != '\n' && object.is_discarded();
        if (interrupted || line.find_first_not_of(" \t\r") == std::string_view::npos)
            continue;
        if (!read_line(object, record))
            return Refusal{where, "", "line " + std::to_string(number) + " is not one of a breaker record",
                           RefusalKind::invalid};
    }
    return record;
}

std::string format_breaker(const BreakerRecord& record)
{
    std::string text = line({{"schema", schema}});
    std::set<ControllerId> controllers;
    for (const auto& [controller, trial] : record.trials)
        controllers.insert(controller);
    for (const auto& [controller, trip] : record.trips)
        controllers.insert(controller);
    for (const ControllerId& controller : controllers)
        text += format_breaker_line(record, controller);
    return text;
}

std::string format_breaker_line(const BreakerRecord& record, const ControllerId& controller)
{
    json one = to_json(controller);
    const auto trial = record.trials.find(controller);
    const auto trip = record.trips.find(controller);
    one["trial"] = trial == record.trials.end() ? json(nullptr)
                                                : json({{"boot_id", trial->second.boot_id}, {"clean", trial->second.clean}});
    one["trip"] = trip == record.trips.end() ? json(nullptr) : json({{"reason", trip->second.reason}, {"at", trip->second.at}});
    return line(one);
}

} // namespace nvmepolicy
