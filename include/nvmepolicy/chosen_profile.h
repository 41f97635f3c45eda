// SPDX-License-Identifier: LGPL-2.1-or-later
// The profile that somebody has chosen, and that is kept over a restart.
#pragma once

#include <string>
#include <string_view>

#include "nvmepolicy/result.h"

namespace nvmepolicy {

struct ChosenProfile {
    std::string profile;
    /// What daemon.profile was at that time. Once it is something else, the administrator has spoken later.
    std::string instead_of;
    friend bool operator==(const ChosenProfile&, const ChosenProfile&) = default;
};

/// JSON of `/var/lib/nvmepolicyd/profile.json`, schema 1. Refuses anything else, names that no profile can have included.
[[nodiscard]] Result<ChosenProfile> parse_chosen_profile(const std::string& where, std::string_view text);
[[nodiscard]] std::string format_chosen_profile(const ChosenProfile& chosen);

} // namespace nvmepolicy
