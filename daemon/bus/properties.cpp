// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/properties.h"

#include <algorithm>
#include <limits>

#include "bus/names.h"
#include "report/actual_table.h"

namespace nvmepolicy::bus {
namespace {

/// No constraint, or not known.
constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

std::uint64_t or_none(const std::optional<Microseconds>& time)
{
    return time ? static_cast<std::uint64_t>(time->count()) : none;
}

std::string cache_mode(const Controller& c)
{
    std::string mode;
    for (const Leaf& leaf : c.leaves) {
        if (!leaf.cache_mode)
            continue;
        if (!mode.empty() && mode != *leaf.cache_mode)
            return "mixed";
        mode = *leaf.cache_mode;
    }
    return mode;
}

template <class Properties>
struct Member {
    const char* name;
    bool (*same)(const Properties&, const Properties&);
};

template <auto Pointer, class Properties>
bool same(const Properties& a, const Properties& b)
{
    return a.*Pointer == b.*Pointer;
}

template <class Properties, std::size_t N>
std::vector<std::string> names_of_differences(const Member<Properties> (&members)[N], const Properties& a, const Properties& b)
{
    std::vector<std::string> names;
    for (const auto& member : members)
        if (!member.same(a, b))
            names.emplace_back(member.name);
    return names;
}

using C = ControllerProperties;
constexpr Member<C> controller_members[] = {
    {"Name", same<&C::name, C>},
    {"Model", same<&C::model, C>},
    {"Serial", same<&C::serial, C>},
    {"Firmware", same<&C::firmware, C>},
    {"Transport", same<&C::transport, C>},
    {"Address", same<&C::address, C>},
    {"SubsystemNqn", same<&C::subsystem_nqn, C>},
    {"State", same<&C::state, C>},
    {"PowerStates", same<&C::power_states, C>},
    {"ApstSupported", same<&C::apst_supported, C>},
    {"ApstEnabled", same<&C::apst_enabled, C>},
    {"ApstVerified", same<&C::apst_verified, C>},
    {"LatencyToleranceMicroseconds", same<&C::latency_tolerance, C>},
    {"DeepestState", same<&C::deepest_state, C>},
    {"WakeLatencyMicroseconds", same<&C::wake_latency, C>},
    {"WriteCachePresent", same<&C::write_cache_present, C>},
    {"WriteCacheMode", same<&C::write_cache_mode, C>},
    {"BreakerTripped", same<&C::breaker_tripped, C>},
    {"Explanation", same<&C::explanation, C>},
    {"LastError", same<&C::last_error, C>},
};

using M = ManagerProperties;
constexpr Member<M> manager_members[] = {
    {"ActiveProfile", same<&M::active_profile, M>},
    {"BaseProfile", same<&M::base_profile, M>},
    {"Profiles", same<&M::profiles, M>},
    {"ActiveHolds", same<&M::holds, M>},
    {"OnBattery", same<&M::on_battery, M>},
    {"DryRun", same<&M::dry_run, M>},
    {"ConfigurationError", same<&M::configuration_error, M>},
};

using S = SubsystemProperties;
constexpr Member<S> subsystem_members[] = {
    {"Name", same<&S::name, S>},
    {"Nqn", same<&S::nqn, S>},
    {"IoPolicy", same<&S::iopolicy, S>},
    {"Paths", same<&S::paths, S>},
    {"Controllers", same<&S::controllers, S>},
};

} // namespace

ControllerProperties properties_of(const Outcome& o, bool stuck)
{
    ControllerProperties p;
    p.name = o.name;
    p.latency_tolerance = p.wake_latency = none;
    p.state = stuck ? "stuck" : "unknown";
    p.last_error = o.last_error();
    p.explanation = o.explanation;
    if (!o.controller)
        return p;
    const Controller& c = *o.controller;
    p.model = c.model;
    p.serial = c.id.serial;
    p.firmware = c.firmware;
    p.transport = c.transport;
    p.address = c.address;
    p.subsystem_nqn = c.id.subsystem_nqn;
    if (!stuck)
        p.state = show(c.state);
    if (c.identify) {
        p.power_states = c.identify->power_states;
        p.apst_supported = c.identify->apsta != 0;
        p.write_cache_present = (c.identify->vwc & 1) != 0;
    }
    if (const ApstFeature* table = actual_table(c)) {
        const IdleOutlook outlook = actual_outlook(o);
        p.apst_enabled = table->enabled;
        p.deepest_state = outlook.deepest_state.value_or(-1);
        p.wake_latency = or_none(outlook.wake_latency);
    }
    p.apst_verified = o.verdict.verified();
    if (c.tolerance && c.tolerance->has_value())
        p.latency_tolerance = or_none((*c.tolerance)->limit());
    p.write_cache_mode = cache_mode(c);
    p.breaker_tripped = o.decision.breaker_tripped;
    return p;
}

std::vector<std::string> differences(const ControllerProperties& a, const ControllerProperties& b)
{
    return names_of_differences(controller_members, a, b);
}

std::vector<std::string> differences(const ManagerProperties& a, const ManagerProperties& b)
{
    return names_of_differences(manager_members, a, b);
}

std::vector<std::string> differences(const SubsystemProperties& a, const SubsystemProperties& b)
{
    return names_of_differences(subsystem_members, a, b);
}

std::vector<Dictionary> dictionaries(const std::vector<PowerState>& states)
{
    std::vector<Dictionary> all;
    all.reserve(states.size());
    for (const PowerState& s : states) {
        Dictionary one{{"State", sdbus::Variant{std::int32_t{s.index}}}, {"Operational", sdbus::Variant{s.operational}}};
        const auto add = [&one](const char* key, std::int64_t value) {
            one.emplace(key, sdbus::Variant{static_cast<std::uint64_t>(value)});
        };
        if (s.max_power)
            add("MaxPowerMicrowatts", s.max_power->count);
        if (s.idle_power)
            add("IdlePowerMicrowatts", s.idle_power->count);
        if (s.entry_latency)
            add("EntryLatencyMicroseconds", s.entry_latency->count());
        if (s.exit_latency)
            add("ExitLatencyMicroseconds", s.exit_latency->count());
        all.push_back(std::move(one));
    }
    return all;
}

std::vector<Dictionary> dictionaries(const std::map<std::string, Profile>& profiles)
{
    std::vector<Dictionary> all;
    all.reserve(profiles.size());
    for (const auto& [name, profile] : profiles)
        all.push_back({{"Profile", sdbus::Variant{name}},
                       {"MaxWakeLatencyMicroseconds", sdbus::Variant{or_none(profile.max_wake_latency.value.limit)}},
                       {"MaxWakeLatencyOnBatteryMicroseconds",
                        sdbus::Variant{or_none(profile.max_wake_latency_on_battery.value.limit)}}});
    return all;
}

std::vector<Dictionary> dictionaries(const std::map<Cookie, Hold>& holds)
{
    std::vector<Dictionary> all;
    all.reserve(holds.size());
    for (const auto& [cookie, hold] : holds) {
        Dictionary one{{"Cookie", sdbus::Variant{cookie}},
                       {"Reason", sdbus::Variant{hold.reason}},
                       {"ApplicationId", sdbus::Variant{hold.application_id}},
                       {"Sender", sdbus::Variant{hold.sender}}};
        if (const auto* profile = std::get_if<std::string>(&hold.wish))
            one.emplace("Profile", sdbus::Variant{*profile});
        else {
            const auto& latency = std::get<LatencyWish>(hold.wish);
            one.emplace("MaxWakeLatencyMicroseconds",
                        sdbus::Variant{static_cast<std::uint64_t>(latency.max_wake_latency.count())});
            if (latency.only)
                one.emplace("Controller", sdbus::Variant{latency.only->name});
        }
        all.push_back(std::move(one));
    }
    return all;
}

SubsystemProperties properties_of(const Subsystem& s, const CurrentState& state)
{
    SubsystemProperties p{s.name, s.nqn, s.iopolicy, {}, {}};
    for (const std::string& controller : s.controllers) {
        const auto found = state.outcomes().find(controller);
        if (found == state.outcomes().end())
            continue;
        p.controllers.push_back(controller);
        if (found->second->controller)
            for (const Leaf& leaf : found->second->controller->leaves)
                if (leaf.path)
                    p.paths.push_back({leaf.name, controller, leaf.ana_state});
    }
    return p;
}

std::vector<Dictionary> dictionaries(const std::vector<SubsystemProperties::Path>& paths)
{
    std::vector<Dictionary> all;
    all.reserve(paths.size());
    for (const SubsystemProperties::Path& path : paths)
        all.push_back({{"Name", sdbus::Variant{path.name}},
                       {"Controller", sdbus::Variant{sdbus::ObjectPath{controller_path(path.controller)}}},
                       {"AnaState", sdbus::Variant{path.ana_state}}});
    return all;
}

std::vector<sdbus::ObjectPath> controller_paths(const std::vector<std::string>& names)
{
    std::vector<sdbus::ObjectPath> paths;
    paths.reserve(names.size());
    for (const std::string& name : names)
        paths.emplace_back(controller_path(name));
    return paths;
}

} // namespace nvmepolicy::bus
