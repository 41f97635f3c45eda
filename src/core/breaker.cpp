// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/breaker.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace nvmepolicy {
namespace {

using nlohmann::json;

constexpr int schema = 1;

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
    const auto found = std::ranges::find(trips, controller, &Trip::controller);
    return found == trips.end() ? nullptr : &*found;
}

bool BreakerRecord::on_trial(const ControllerId& controller, std::string_view boot_id) const
{
    return std::ranges::any_of(trials,
                               [&](const Trial& t) { return t.controller == controller && t.boot_id == boot_id && !t.clean; });
}

BreakerRecord after_boot(BreakerRecord record, std::string_view boot_id, std::int64_t now)
{
    for (const BreakerRecord::Trial& trial : record.trials)
        if (trial.boot_id != boot_id && !trial.clean && !record.trip_of(trial.controller))
            record.trips.push_back({trial.controller,
                                    "the machine went down without a clean stop while this drive was allowed into deeper sleep "
                                    "than at boot",
                                    now});
    std::erase_if(record.trials, [&](const BreakerRecord::Trial& trial) { return trial.boot_id != boot_id; });
    return record;
}

Result<BreakerRecord> parse_breaker(const std::string& where, std::string_view content)
{
    const Refusal damaged{where, "", "not a breaker record of schema 1", RefusalKind::invalid};
    const json document = json::parse(content, nullptr, false);
    if (!document.is_object() || !document.contains("schema") || document["schema"] != schema || !document.contains("trials")
        || !document.contains("trips"))
        return damaged;
    BreakerRecord record;
    bool good = document["trials"].is_array() && document["trips"].is_array();
    for (const json& object : document["trials"]) {
        if (!object.is_object())
            return damaged;
        const auto clean = object.find("clean");
        good = good && clean != object.end() && clean->is_boolean();
        record.trials.push_back({read_id(object, good), text(object, "boot_id", good), good && clean->get<bool>()});
    }
    for (const json& object : document["trips"]) {
        if (!object.is_object())
            return damaged;
        const auto at = object.find("at");
        good = good && at != object.end() && at->is_number_integer();
        record.trips.push_back(
            {read_id(object, good), text(object, "reason", good), good ? at->get<std::int64_t>() : std::int64_t{0}});
    }
    if (!good)
        return damaged;
    return record;
}

std::string format_breaker(const BreakerRecord& record)
{
    json trials = json::array();
    for (const BreakerRecord::Trial& t : record.trials) {
        json one = to_json(t.controller);
        one.update({{"boot_id", t.boot_id}, {"clean", t.clean}});
        trials.push_back(std::move(one));
    }
    json trips = json::array();
    for (const BreakerRecord::Trip& t : record.trips) {
        json one = to_json(t.controller);
        one.update({{"reason", t.reason}, {"at", t.at}});
        trips.push_back(std::move(one));
    }
    const json document = {{"schema", schema}, {"trials", std::move(trials)}, {"trips", std::move(trips)}};
    return document.dump(1, ' ', true, json::error_handler_t::replace) + "\n";
}

} // namespace nvmepolicy
