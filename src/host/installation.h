// SPDX-License-Identifier: LGPL-2.1-or-later
// Where our own files are.
#pragma once

#include <string>

namespace nvmepolicy {

struct Installation {
    std::string vendor_directory;  ///< nvmepolicyd.toml, drives.toml, nvmepolicy-device
    std::string runtime_directory; ///< originals.json, lock, boot
    std::string state_directory;   ///< breaker.json
    [[nodiscard]] std::string device_program() const { return vendor_directory + "/nvmepolicy-device"; }
};

/// `vendor_directory` is ../lib/nvmepolicyd as seen from the running program, in the build tree as when installed.
/// `runtime_directory` is $RUNTIME_DIRECTORY, which systemd sets for RuntimeDirectory=, else /run/nvmepolicyd;
/// `state_directory` likewise $STATE_DIRECTORY, else /var/lib/nvmepolicyd.
[[nodiscard]] Installation this_installation();

} // namespace nvmepolicy
