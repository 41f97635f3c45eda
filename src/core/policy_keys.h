// SPDX-License-Identifier: LGPL-2.1-or-later
// The one list of configuration keys: what they are called, and which member of the base policy and of a [[match]] they
// fill. Reading, merging, laying a [[match]] over the policy and showing all walk over it, so that none can forget a key.
// A new key is one line here, its members in policy.h, and its paragraph in the manual page.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "nvmepolicy/policy.h"

namespace nvmepolicy {

/// A word of the configuration and what it means.
template <class T>
struct Word {
    std::string_view text;
    T value;
};

template <class T>
inline constexpr std::array<Word<T>, 0> words{};
template <>
inline constexpr std::array words<ManageMode>{Word<ManageMode>{"manage", ManageMode::manage},
                                              Word<ManageMode>{"observe", ManageMode::observe}};
template <>
inline constexpr std::array words<CacheMode>{Word<CacheMode>{"reconcile", CacheMode::reconcile},
                                             Word<CacheMode>{"observe", CacheMode::observe}};
template <>
inline constexpr std::array words<OnConflict>{Word<OnConflict>{"yield", OnConflict::yield},
                                              Word<OnConflict>{"enforce", OnConflict::enforce}};
template <>
inline constexpr std::array words<OnExit>{Word<OnExit>{"restore", OnExit::restore}, Word<OnExit>{"keep", OnExit::keep}};
template <>
inline constexpr std::array words<Follow>{Word<Follow>{"none", Follow::none},
                                          Word<Follow>{"power-profiles-daemon", Follow::power_profiles_daemon}};
template <>
inline constexpr std::array words<CacheWatch>{Word<CacheWatch>{"auto", CacheWatch::automatic},
                                              Word<CacheWatch>{"poll", CacheWatch::poll}};
template <>
inline constexpr std::array words<WeightSource>{Word<WeightSource>{"measured", WeightSource::measured},
                                                Word<WeightSource>{"link-speed", WeightSource::link_speed},
                                                Word<WeightSource>{"fixed", WeightSource::fixed}};
template <>
inline constexpr std::array words<MatchKey>{Word<MatchKey>{"model", MatchKey::model},
                                            Word<MatchKey>{"serial", MatchKey::serial},
                                            Word<MatchKey>{"firmware", MatchKey::firmware},
                                            Word<MatchKey>{"transport", MatchKey::transport},
                                            Word<MatchKey>{"subsystem_nqn", MatchKey::subsystem_nqn},
                                            Word<MatchKey>{"address", MatchKey::address},
                                            Word<MatchKey>{"controller", MatchKey::controller},
                                            Word<MatchKey>{"vendor_id", MatchKey::vendor_id}};

template <class T>
constexpr std::string_view word_for(T value)
{
    for (const Word<T>& word : words<T>)
        if (word.value == value)
            return word.text;
    return {};
}

/// Where a key may stand.
enum class Place {
    anywhere,
    only_in_match,
    true_only_in_match, ///< a key whose `true` is a decision about particular drives
};

/// A key of a section, with the member that holds it in the section and the one in a [[match]].
template <class Section, class Held, class Override, class T>
struct Key {
    using Value = T;
    std::string_view name;
    Held Section::*held; ///< Setting<T>, or std::optional<Setting<T>> for what has no default
    std::optional<Setting<T>> Override::*override_with;
    Place place = Place::anywhere;
};
// Debian 12's clang has no deduction for aggregates.
template <class Section, class Held, class Override, class T>
Key(std::string_view, Held Section::*, std::optional<Setting<T>> Override::*) -> Key<Section, Held, Override, T>;
template <class Section, class Held, class Override, class T>
Key(std::string_view, Held Section::*, std::optional<Setting<T>> Override::*, Place) -> Key<Section, Held, Override, T>;

/// A key that no [[match]] can change.
template <class T>
constexpr Key<DaemonPolicy, Setting<T>, Match, T> daemon_key(std::string_view name, Setting<T> DaemonPolicy::*held)
{
    return {name, held, nullptr, Place::anywhere};
}

inline constexpr std::tuple daemon_keys{
    daemon_key("profile", &DaemonPolicy::profile),
    daemon_key("follow", &DaemonPolicy::follow),
    daemon_key("dry_run", &DaemonPolicy::dry_run),
    daemon_key("on_exit", &DaemonPolicy::on_exit),
};

inline constexpr std::tuple profile_keys{
    Key{"max_wake_latency", &Profile::max_wake_latency, &Match::ProfileOverride::max_wake_latency},
    Key{"max_wake_latency_on_battery", &Profile::max_wake_latency_on_battery,
        &Match::ProfileOverride::max_wake_latency_on_battery},
};

/// A section that is there once, and once in each [[match]].
template <class Part, class Keys>
struct Section {
    std::string_view name;
    Part Policy::*in_policy;
    Part ControllerPolicy::*in_controller_policy;
    Keys keys;
};
template <class Part, class Keys>
Section(std::string_view, Part Policy::*, Part ControllerPolicy::*, Keys) -> Section<Part, Keys>;

inline constexpr std::tuple sections{
    Section{"apst", &Policy::apst, &ControllerPolicy::apst,
            std::tuple{
                Key{"mode", &ApstPolicy::mode, &Match::apst_mode},
                Key{"allow_deeper", &ApstPolicy::allow_deeper, &Match::apst_allow_deeper, Place::true_only_in_match},
                Key{"on_conflict", &ApstPolicy::on_conflict, &Match::apst_on_conflict},
            }},
    Section{"write_cache", &Policy::write_cache, &ControllerPolicy::write_cache,
            std::tuple{
                Key{"mode", &WriteCachePolicy::mode, &Match::write_cache_mode},
                Key{"trust_current", &WriteCachePolicy::trust_current, &Match::write_cache_trust_current},
                Key{"allow_stacked", &WriteCachePolicy::allow_stacked, &Match::write_cache_allow_stacked},
                Key{"shared", &WriteCachePolicy::shared, &Match::write_cache_shared},
                Key{"watch", &WriteCachePolicy::watch, &Match::write_cache_watch},
                Key{"poll_interval", &WriteCachePolicy::poll_interval, &Match::write_cache_poll_interval},
            }},
    Section{"multipath", &Policy::multipath, &ControllerPolicy::multipath,
            std::tuple{
                Key{"mode", &MultipathPolicy::mode, &Match::multipath_mode},
                Key{"iopolicy", &MultipathPolicy::iopolicy, &Match::multipath_iopolicy},
                Key{"weights", &MultipathPolicy::weights, &Match::multipath_weights},
                Key{"on_conflict", &MultipathPolicy::on_conflict, &Match::multipath_on_conflict},
                Key{"weight", &MultipathPolicy::weight, &Match::multipath_weight, Place::only_in_match},
            }},
};

/// Calls `visit` with each element of one of the lists above.
template <class List, class Visit>
constexpr void for_each(const List& list, Visit visit)
{
    std::apply([&](const auto&... element) { (visit(element), ...); }, list);
}

inline constexpr Microseconds shortest_poll_interval{1'000'000};
inline constexpr Microseconds longest_poll_interval{3'600'000'000};
inline constexpr int heaviest_weight = 100;

} // namespace nvmepolicy
