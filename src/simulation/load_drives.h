// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulated_host.h"

namespace nvmepolicy {

/// A host with the drives of a drive file, or of all *.json in a directory in the order of their names. Everything that
/// is wrong with any of the files is reported; there is a host only when nothing is.
struct LoadedDrives {
    std::unique_ptr<SimulatedHost> host;
    std::vector<Refusal> errors;
};
[[nodiscard]] LoadedDrives load_drives(const std::string& file_or_directory);

} // namespace nvmepolicy
