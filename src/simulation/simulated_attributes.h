// SPDX-License-Identifier: LGPL-2.1-or-later
// What the simulated kernel shows in sysfs, and what it makes of a text that is written there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulated_controller.h"

namespace nvmepolicy {

/// The text of an attribute below a controller's directory; none: there is no such file.
[[nodiscard]] std::optional<std::string> attribute_text(const SimulatedController& c, const std::string& attribute);
/// The names in a controller's directory, or in one below it, sorted; empty: there is no such directory.
[[nodiscard]] std::vector<std::string> attribute_names(const SimulatedController& c, const std::string& below);

/// What a text means to a tolerance file; none: EINVAL. It reads more than it shows: octal and hexadecimal numbers, signs.
/// Source: pm_qos_latency_tolerance_us_store(), kstrtoint(), sysfs_streq().
[[nodiscard]] std::optional<LatencyTolerance> tolerance_of_text(std::string_view text);

/// Whole directories, by relative path.
[[nodiscard]] std::map<std::string, std::string> module_parameters(const Machine& machine);
[[nodiscard]] std::map<std::string, std::string> power_supplies(const Machine& machine);

/// The names directly below a directory of such a map.
[[nodiscard]] std::vector<std::string> children(const std::map<std::string, std::string>& all, const std::string& below);

} // namespace nvmepolicy
