// SPDX-License-Identifier: LGPL-2.1-or-later
// What the properties of the objects on the bus are, as values that can be compared. See dbus/*.xml for what each means.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bus/connection.h"
#include "current_state.h"
#include "wishes.h"

namespace nvmepolicy::bus {

using Dictionary = std::map<std::string, sdbus::Variant>;

struct ControllerProperties {
    std::string name, model, serial, firmware, transport, address, subsystem_nqn, state;
    std::vector<PowerState> power_states;
    bool apst_supported = false, apst_enabled = false, apst_verified = false;
    std::uint64_t latency_tolerance = 0, wake_latency = 0;
    std::int32_t deepest_state = -1;
    bool write_cache_present = false;
    std::string write_cache_mode;
    bool breaker_tripped = false;
    std::vector<std::string> explanation;
    std::string last_error;
};
[[nodiscard]] ControllerProperties properties_of(const Outcome& outcome, bool stuck);
/// The names of those that differ.
[[nodiscard]] std::vector<std::string> differences(const ControllerProperties& a, const ControllerProperties& b);
[[nodiscard]] std::vector<Dictionary> dictionaries(const std::vector<PowerState>& states);

struct ManagerProperties {
    std::string active_profile, base_profile;
    std::map<std::string, Profile> profiles;
    std::map<Cookie, Hold> holds;
    bool on_battery = false, dry_run = false;
    std::string configuration_error;
};
[[nodiscard]] std::vector<std::string> differences(const ManagerProperties& a, const ManagerProperties& b);
[[nodiscard]] std::vector<Dictionary> dictionaries(const std::map<std::string, Profile>& profiles);
[[nodiscard]] std::vector<Dictionary> dictionaries(const std::map<Cookie, Hold>& holds);

struct SubsystemProperties {
    struct Path {
        std::string name, controller, ana_state;
        friend bool operator==(const Path&, const Path&) = default;
    };
    std::string name, nqn, iopolicy;
    std::vector<Path> paths;
    std::vector<std::string> controllers; ///< their names
};
[[nodiscard]] SubsystemProperties properties_of(const Subsystem& subsystem, const CurrentState& state);
[[nodiscard]] std::vector<std::string> differences(const SubsystemProperties& a, const SubsystemProperties& b);
[[nodiscard]] std::vector<Dictionary> dictionaries(const std::vector<SubsystemProperties::Path>& paths);
[[nodiscard]] std::vector<sdbus::ObjectPath> controller_paths(const std::vector<std::string>& names);

} // namespace nvmepolicy::bus
