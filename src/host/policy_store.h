// SPDX-License-Identifier: LGPL-2.1-or-later
// Finds and reads the configuration files in their order. Source of that order: UAPI group, Configuration Files
// Specification (etc over run over usr/lib, drop-ins by name, a link to /dev/null masks).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvmepolicy/policy_file.h"

namespace nvmepolicy {

/// The directories that are looked into, highest rank first, and the vendor's.
struct PolicyPlaces {
    std::vector<std::string> directories{"/etc/nvmepolicyd", "/run/nvmepolicyd"};
    std::string vendor_directory; ///< lowest rank, and the place of drives.toml; it must exist
};

/// Reads drives.toml, the main file of the highest rank, and all drop-ins. With `file` that file (which must exist) and
/// the drop-ins in `file`.d take the place of everything but drives.toml. Files that cannot be read are among the errors.
[[nodiscard]] PolicyReading load_policy(const PolicyPlaces& places, const std::optional<std::string>& file);

} // namespace nvmepolicy
