// SPDX-License-Identifier: LGPL-2.1-or-later
// Which exceptions fit a controller, and what holds for it then.
#include "nvmepolicy/policy.h"

#include <algorithm>

#include <fmt/format.h>
#include <fnmatch.h>

#include "nvmepolicy/wording.h"
#include "policy_keys.h"

namespace nvmepolicy {

namespace {

/// What the controller says to a key; nothing where it does not know.
std::string fact(const Controller& controller, MatchKey key)
{
    switch (key) {
    case MatchKey::model: return controller.model;
    case MatchKey::serial: return controller.id.serial;
    case MatchKey::firmware: return controller.firmware;
    case MatchKey::transport: return controller.transport;
    case MatchKey::subsystem_nqn: return controller.id.subsystem_nqn;
    case MatchKey::address: return controller.address;
    case MatchKey::controller: return controller.name;
    case MatchKey::vendor_id: {
        std::uint16_t id = controller.pci_vendor_id.value_or(0);
        if (id == 0 && controller.identify)
            id = controller.identify->vendor_id;
        // 0 is no vendor: software targets report it (nvmet_execute_identify_ctrl() of Linux).
        return id == 0 ? std::string{} : fmt::format("0x{:04x}", id);
    }
    }
    return {};
}

bool fits(const Match& match, const Controller& controller)
{
    // A [[match]] without keys is refused when it is read; here it must not become one for everything.
    return !match.keys.empty() && std::all_of(match.keys.begin(), match.keys.end(), [&](const auto& wanted) {
        const std::string known = fact(controller, wanted.first);
        return !known.empty() && fnmatch(wanted.second.c_str(), known.c_str(), 0) == 0;
    });
}

template <class Keys, class Override, class Target>
void lay_over(const Keys& keys, const Override& over, Target& target)
{
    for_each(keys, [&](const auto& key) {
        if (const auto& setting = over.*key.override_with)
            target.*key.held = *setting;
    });
}

/// Takes out of an earlier match what a later one sets too.
template <class Keys, class Override>
void take_out(const Keys& keys, const std::string& path, const Override& later, Override& earlier,
              std::vector<Overridden>& overridden)
{
    for_each(keys, [&](const auto& key) {
        const auto& above = later.*key.override_with;
        auto& below = earlier.*key.override_with;
        if (!above || !below)
            return;
        overridden.push_back({fmt::format("{}.{}", path, key.name), above->origin});
        below.reset();
    });
}

void take_out(const Match& later, Match& earlier)
{
    for_each(sections, [&](const auto& section) {
        take_out(section.keys, std::string(section.name), later, earlier, earlier.overridden);
    });
    for (const auto& [name, over] : later.profiles)
        if (const auto profile = earlier.profiles.find(name); profile != earlier.profiles.end())
            take_out(profile_keys, "profiles." + name, over, profile->second, earlier.overridden);
}

} // namespace

bool Match::sets_nothing() const
{
    const bool sets_profiles = std::ranges::any_of(profiles, [](const auto& over) { return over.second != ProfileOverride{}; });
    bool sets_keys = false;
    for_each(sections, [&](const auto& section) {
        for_each(section.keys, [&](const auto& key) { sets_keys = sets_keys || (this->*key.override_with).has_value(); });
    });
    return !sets_profiles && !sets_keys;
}

std::string Origin::text() const
{
    return file.empty() ? "built-in default" : fmt::format("{}:{}", printable(file, 4096), line);
}

std::map<std::string, Profile> builtin_profiles()
{
    using namespace std::chrono_literals;
    const auto profile = [](LatencyBound on_ac, LatencyBound on_battery) { return Profile{{on_ac, {}}, {on_battery, {}}}; };
    return {{"performance", profile({0us}, {10ms})}, {"balanced", profile({25ms}, {100ms})}, {"power-saver", profile({}, {})}};
}

ControllerPolicy policy_for(const Policy& policy, const Controller& controller)
{
    ControllerPolicy result{policy.profiles, policy.apst, policy.write_cache, policy.multipath, {}};
    for (const Match& match : policy.matches) {
        if (!fits(match, controller))
            continue;
        for_each(sections, [&](const auto& section) { lay_over(section.keys, match, result.*section.in_controller_policy); });
        for (const auto& [name, over] : match.profiles)
            if (const auto profile = result.profiles.find(name); profile != result.profiles.end())
                lay_over(profile_keys, over, profile->second);
        for (Match& earlier : result.matched)
            take_out(match, earlier);
        result.matched.push_back(match);
    }
    return result;
}

Wish wish_of(const Policy& policy)
{
    Wish wish;
    wish.profile = policy.daemon.profile.value;
    return wish;
}

std::string show(MatchKey key)
{
    return std::string(word_for(key));
}

} // namespace nvmepolicy
