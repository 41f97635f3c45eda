// SPDX-License-Identifier: LGPL-2.1-or-later
// From configuration text to a Policy: parsed, checked, and merged from several files. Pure: the texts are read elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nvmepolicy/policy.h"
#include "nvmepolicy/result.h"

namespace nvmepolicy {

/// One configuration file as it was found.
struct PolicyText {
    enum class Role {
        drives, ///< drives.toml: only [[match]] entries, each with because and source, none with allow_deeper
        main,   ///< nvmepolicyd.toml
        drop_in ///< nvmepolicyd.toml.d/*.toml
    };
    Role role = Role::main;
    std::string file; ///< as named in messages
    std::string text;
    bool vendor = false; ///< comes with the program: drives.toml ranks above it
};

/// The largest configuration file that is read, in bytes.
inline constexpr std::size_t largest_policy_file = std::size_t{256} * 1024;

/// Either the merged policy, or everything that is wrong with it, in the order of files and lines.
struct PolicyReading {
    Policy policy;
    std::vector<Refusal> errors; ///< empty: the policy is good. `where` is `file:line:column: key`
};

/// Parses, checks and merges the files in rising rank (drives.toml, main file, drop-ins by name).
/// Keys given in a later file replace those of an earlier one; [[match]] entries are appended.
/// Every error of every file is reported; a syntax error ends the reading of its own file only.
[[nodiscard]] PolicyReading read_policy(const std::vector<PolicyText>& files);

/// The merged result, one `key = value   # origin` a line, as `config show` prints it. It is itself a valid configuration.
[[nodiscard]] std::string show_policy(const Policy& policy);

} // namespace nvmepolicy
