// SPDX-License-Identifier: LGPL-2.1-or-later
// Policies are compared by their values: where these were written differs between a file and what `config show` makes of
// it. An origin that the list of keys does not reach stays, and the comparison fails.
#pragma once

#include <optional>

#include "../../src/core/policy_keys.h"
#include "nvmepolicy/policy.h"

namespace nvmepolicy {

template <class T>
void forget_origin(Setting<T>& setting)
{
    setting.origin = {};
}
template <class T>
void forget_origin(std::optional<Setting<T>>& setting)
{
    if (setting)
        setting->origin = {};
}

inline Policy without_origins(Policy policy)
{
    for_each(daemon_keys, [&](const auto& key) { forget_origin(policy.daemon.*key.held); });
    for (auto& [name, profile] : policy.profiles)
        for_each(profile_keys, [&, &held = profile](const auto& key) { forget_origin(held.*key.held); });
    for_each(sections, [&](const auto& section) {
        for_each(section.keys, [&](const auto& key) { forget_origin((policy.*section.in_policy).*key.held); });
    });
    for (Match& match : policy.matches) {
        match.origin = {};
        for (auto& [name, over] : match.profiles)
            for_each(profile_keys, [&, &held = over](const auto& key) { forget_origin(held.*key.override_with); });
        for_each(sections, [&](const auto& section) {
            for_each(section.keys, [&](const auto& key) { forget_origin(match.*key.override_with); });
        });
    }
    return policy;
}

} // namespace nvmepolicy
