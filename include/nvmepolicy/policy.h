// SPDX-License-Identifier: LGPL-2.1-or-later
// What the administrator wants: profiles, areas and the exceptions for particular drives.
// Each value remembers where it was written, since "why" is the first question that people ask.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvmepolicy/facts.h"
#include "nvmepolicy/units.h"

namespace nvmepolicy {

/// Where a value was written.
struct Origin {
    std::string file; ///< empty: built in
    int line = 0;
    int column = 0;
    /// `built-in default` or `/etc/nvmepolicyd/nvmepolicyd.toml:14`.
    [[nodiscard]] std::string text() const;
    friend bool operator==(const Origin&, const Origin&) = default;
};

/// A value and where it came from.
template <class T>
struct Setting {
    T value{};
    Origin origin{};
    friend bool operator==(const Setting&, const Setting&) = default;
};

enum class ManageMode { manage, observe };
enum class CacheMode { reconcile, observe };
enum class OnConflict { yield, enforce };
enum class OnExit { restore, keep };
enum class Follow { none, power_profiles_daemon };
enum class CacheWatch { automatic, poll };
enum class WeightSource { measured, link_speed, fixed };

/// `[profiles.NAME]`
struct Profile {
    Setting<LatencyBound> max_wake_latency;            ///< on AC
    Setting<LatencyBound> max_wake_latency_on_battery; ///< on battery
    friend bool operator==(const Profile&, const Profile&) = default;
};

/// `[daemon]`
struct DaemonPolicy {
    Setting<std::string> profile{"balanced", {}};
    Setting<Follow> follow{Follow::none, {}};
    Setting<bool> dry_run{false, {}};
    Setting<OnExit> on_exit{OnExit::restore, {}};
    friend bool operator==(const DaemonPolicy&, const DaemonPolicy&) = default;
};

/// `[apst]`
struct ApstPolicy {
    Setting<ManageMode> mode{ManageMode::manage, {}};
    Setting<bool> allow_deeper{false, {}}; ///< true only in a [[match]]
    Setting<OnConflict> on_conflict{OnConflict::yield, {}};
    friend bool operator==(const ApstPolicy&, const ApstPolicy&) = default;
};

/// `[write_cache]`
struct WriteCachePolicy {
    Setting<CacheMode> mode{CacheMode::reconcile, {}};
    Setting<bool> trust_current{false, {}};
    Setting<bool> allow_stacked{false, {}};
    Setting<bool> shared{false, {}};
    Setting<CacheWatch> watch{CacheWatch::automatic, {}};
    Setting<Microseconds> poll_interval{Microseconds{10'000'000}, {}}; ///< 1 s … 1 h
    friend bool operator==(const WriteCachePolicy&, const WriteCachePolicy&) = default;
};

/// `[multipath]`
struct MultipathPolicy {
    Setting<ManageMode> mode{ManageMode::manage, {}};
    Setting<std::vector<std::string>> iopolicy; ///< preference list; empty: left alone
    Setting<WeightSource> weights{WeightSource::measured, {}};
    Setting<OnConflict> on_conflict{OnConflict::yield, {}};
    std::optional<Setting<int>> weight; ///< fixed, 0 … 100; only in a [[match]]
    friend bool operator==(const MultipathPolicy&, const MultipathPolicy&) = default;
};

/// Which facts a [[match]] can ask for. Each given glob (`*`, `?`, `[…]`, as fnmatch(3) without flags) must match.
enum class MatchKey { model, serial, firmware, transport, subsystem_nqn, address, controller, vendor_id };

/// A key of a [[match]] that does not count, since something of a higher rank sets it.
struct Overridden {
    std::string key; ///< profiles.balanced.max_wake_latency
    Origin by;
    friend bool operator==(const Overridden&, const Overridden&) = default;
};

/// `[[match]]`: only what is given overrides. Later matches win.
struct Match {
    Origin origin;
    std::map<MatchKey, std::string> keys; ///< at least one
    std::string because;                  ///< why, required in drives.toml
    std::string source;                   ///< where that is written, required in drives.toml

    struct ProfileOverride {
        std::optional<Setting<LatencyBound>> max_wake_latency, max_wake_latency_on_battery;
        friend bool operator==(const ProfileOverride&, const ProfileOverride&) = default;
    };
    std::map<std::string, ProfileOverride> profiles;
    std::optional<Setting<ManageMode>> apst_mode;
    std::optional<Setting<bool>> apst_allow_deeper;
    std::optional<Setting<OnConflict>> apst_on_conflict;
    std::optional<Setting<CacheMode>> write_cache_mode;
    std::optional<Setting<bool>> write_cache_trust_current, write_cache_allow_stacked, write_cache_shared;
    std::optional<Setting<CacheWatch>> write_cache_watch;
    std::optional<Setting<Microseconds>> write_cache_poll_interval;
    std::optional<Setting<ManageMode>> multipath_mode;
    std::optional<Setting<std::vector<std::string>>> multipath_iopolicy;
    std::optional<Setting<WeightSource>> multipath_weights;
    std::optional<Setting<OnConflict>> multipath_on_conflict;
    std::optional<Setting<int>> multipath_weight;

    std::vector<Overridden> overridden{}; ///< what it sets in vain, no longer among the above
    /// It sets nothing, or all of it in vain.
    [[nodiscard]] bool sets_nothing() const;
    friend bool operator==(const Match&, const Match&) = default;
};

/// `[a-z0-9-]{1,32}`
[[nodiscard]] bool is_profile_name(std::string_view name);

/// The built-in profiles; they can be changed, not removed.
[[nodiscard]] std::map<std::string, Profile> builtin_profiles();

/// Everything, merged.
struct Policy {
    DaemonPolicy daemon;
    std::map<std::string, Profile> profiles = builtin_profiles();
    ApstPolicy apst;
    WriteCachePolicy write_cache;
    MultipathPolicy multipath;
    std::vector<Match> matches; ///< in rising rank: drives.toml first
    friend bool operator==(const Policy&, const Policy&) = default;
};

/// What holds for one controller after its matches were laid over the policy.
struct ControllerPolicy {
    std::map<std::string, Profile> profiles;
    ApstPolicy apst;
    WriteCachePolicy write_cache;
    MultipathPolicy multipath;
    std::vector<Match> matched; ///< those that applied, in order
};

/// Lays every match that fits the controller over the policy.
[[nodiscard]] ControllerPolicy policy_for(const Policy& policy, const Controller& controller);

/// A running wish for a latency, by somebody who keeps it only for a while. The strictest wins.
struct LatencyHold {
    LatencyBound bound;
    std::string by; ///< who and why, for the explanation
    friend bool operator==(const LatencyHold&, const LatencyHold&) = default;
};

/// What is wanted at this moment: the profile in force, and the holds on the latency.
struct Wish {
    std::string profile = "balanced";
    std::string held_by{};                          ///< who holds that profile; empty: it was set
    std::vector<LatencyHold> holds{};               ///< on every drive
    std::map<ControllerId, LatencyHold> holds_on{}; ///< on one
    friend bool operator==(const Wish&, const Wish&) = default;
};

/// What the configuration by itself asks for.
[[nodiscard]] Wish wish_of(const Policy& policy);

[[nodiscard]] std::string show(MatchKey key);

} // namespace nvmepolicy
