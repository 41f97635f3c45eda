// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads configuration files into one Policy. Everything that is wrong is collected, not only the first: people correct a
// file once, and not error by error. Which keys there are is in policy_keys.h, what may be written for a value in
// policy_values.cpp; here is the structure: sections, profiles, [[match]] entries, and the rank of the files.
#include "nvmepolicy/policy_file.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nvmepolicy/wording.h"
#include "policy_keys.h"
#include "policy_values.h"
#include "toml_tree.h"

namespace nvmepolicy {

namespace {

using Kind = TomlValue::Kind;

/// Where a section stands; it decides which of its keys are allowed.
enum class Context { base, match_of_drives_file, match };

bool is_known_in(Context context, Place place)
{
    switch (place) {
    case Place::anywhere: return true;
    case Place::only_in_match: return context != Context::base;
    case Place::true_only_in_match: return context != Context::match_of_drives_file;
    }
    return false;
}

template <class Keys>
Names names_of(const Keys& keys, Context context)
{
    Names names;
    for_each(keys, [&](const auto& key) {
        if (is_known_in(context, key.place))
            names.push_back(key.name);
    });
    return names;
}

bool contains(const Names& names, std::string_view name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

Names match_keys()
{
    Names names;
    for (const Word<MatchKey>& word : words<MatchKey>)
        names.push_back(word.text);
    return names;
}

class Reader {
public:
    void read(const PolicyText& file)
    {
        findings_.begin_file(file.file);
        if (file.vendor)
            vendor_files_.push_back(file.file);
        if (file.text.size() > largest_policy_file) {
            a_file_is_unreadable_ = true;
            findings_.refuse(Origin{file.file, 0, 0}, {}, {},
                             fmt::format("has {} bytes; allowed: at most {}", file.text.size(), largest_policy_file));
            return;
        }
        const auto parsed = parse_toml(file.text);
        if (const auto* error = std::get_if<TomlSyntaxError>(&parsed)) {
            a_file_is_unreadable_ = true;
            findings_.refuse(*error, {}, {}, error->reason);
            return;
        }
        read_root(std::get<TomlValue>(parsed), file.role);
    }

    PolicyReading finish() &&
    {
        // The missing profile may be in the file that could not be parsed.
        if (!a_file_is_unreadable_)
            check_profile_names();
        rank_drives_file_below_administrator();
        return {std::move(policy_), findings_.in_order()};
    }

private:
    /// A profile that is named somewhere; whether it exists can only be judged when all files were read.
    struct ProfileUse {
        Origin origin;
        std::string key;
        std::string name;
    };

    void read_root(const TomlValue& root, PolicyText::Role role)
    {
        const bool only_matches = role == PolicyText::Role::drives;
        Names known{"daemon", "profiles"};
        for_each(sections, [&](const auto& section) { known.push_back(section.name); });
        known.push_back("match");

        for (const TomlEntry& entry : root.entries) {
            if (entry.key == "match")
                read_matches(entry.value, role);
            else if (!contains(known, entry.key))
                findings_.refuse_unknown_key(entry, {}, only_matches ? Names{"match"} : known);
            else if (only_matches)
                findings_.refuse(entry, entry.key, {}, "not for drives.toml; allowed: only [[match]] entries");
            else
                read_base(entry);
        }
    }

    // ---- Sections

    [[nodiscard]] bool is_table(const TomlValue& value, const std::string& path, std::string_view allowed)
    {
        if (value.kind == Kind::table)
            return true;
        findings_.refuse_type(value, path, allowed);
        return false;
    }

    /// Gives each good key of a section to `store(key, setting)`.
    template <class Keys, class Store>
    void read_section(const TomlValue& table, const std::string& path, const Keys& keys, Context context, Store store)
    {
        if (!is_table(table, path, "a table of keys"))
            return;
        for (const TomlEntry& entry : table.entries) {
            bool known = false;
            for_each(keys, [&](const auto& key) {
                if (key.name != entry.key)
                    return;
                known = true;
                read_key(key, entry, key_path(path, entry.key), context, store);
            });
            if (!known)
                findings_.refuse_unknown_key(entry, path, names_of(keys, context));
        }
    }

    template <class Key, class Store>
    void read_key(const Key& key, const TomlEntry& entry, const std::string& path, Context context, Store store)
    {
        using T = typename Key::Value;
        if (!is_known_in(context, key.place))
            return findings_.refuse(entry, path, entry.value.text,
                                    context == Context::base
                                        ? "allowed only in a [[match]], for the controllers that match"
                                        : "not for drives.toml; allowed only in a [[match]] of the administrator");
        std::optional<T> value = read_value(findings_, entry.value, path, static_cast<const T*>(nullptr));
        if (!value)
            return;
        if constexpr (std::is_same_v<T, bool>)
            if (key.place == Place::true_only_in_match && context == Context::base && *value)
                return findings_.refuse(entry.value, path, entry.value.text,
                                        "true is allowed only in a [[match]], for drives that are known to bear it");
        store(key, Setting<T>{std::move(*value), findings_.origin(entry.value)});
    }

    void read_base(const TomlEntry& entry)
    {
        const auto store_in = [](auto& part) {
            return [&part](const auto& key, auto setting) { part.*key.held = std::move(setting); };
        };
        if (entry.key == "daemon")
            read_section(entry.value, entry.key, daemon_keys, Context::base, store_in(policy_.daemon));
        else if (entry.key == "profiles")
            read_profiles(entry.value);
        for_each(sections, [&](const auto& section) {
            if (section.name == entry.key)
                read_section(entry.value, entry.key, section.keys, Context::base, store_in(policy_.*section.in_policy));
        });
    }

    // ---- Profiles

    [[nodiscard]] bool is_profile(const TomlEntry& entry, const std::string& path)
    {
        if (is_profile_name(entry.key))
            return is_table(entry.value, path, "a table of keys");
        findings_.refuse(entry, path, entry.key, fmt::format("not a profile name; {}", a_profile_name));
        return false;
    }

    void read_profiles(const TomlValue& table)
    {
        if (!is_table(table, "profiles", "a table for each profile, [profiles.NAME]"))
            return;
        for (const TomlEntry& entry : table.entries) {
            const std::string path = key_path("profiles", entry.key);
            if (!is_profile(entry, path))
                continue;
            const auto [found, is_new] = policy_.profiles.try_emplace(entry.key);
            const auto& keys = entry.value.entries;
            if (is_new && std::none_of(keys.begin(), keys.end(), [](const auto& k) { return k.key == "max_wake_latency"; }))
                findings_.refuse(entry, path, {}, "a new profile needs max_wake_latency, for example \"25ms\"");

            Profile& profile = found->second;
            const Origin before = profile.max_wake_latency_on_battery.origin;
            // The same origin: the bound on battery was never written, so it goes on following the one on AC.
            const bool follows = before == profile.max_wake_latency.origin && builtin_profiles().count(entry.key) == 0;
            read_section(entry.value, path, profile_keys, Context::base,
                         [&](const auto& key, auto setting) { profile.*key.held = std::move(setting); });
            if (follows && profile.max_wake_latency_on_battery.origin == before)
                profile.max_wake_latency_on_battery = profile.max_wake_latency;
        }
    }

    // ---- [[match]]

    void read_matches(const TomlValue& value, PolicyText::Role role)
    {
        if (value.kind != Kind::array) {
            findings_.refuse_type(value, "match", "a list of tables, each begins with [[match]]");
            return;
        }
        for (std::size_t at = 0; at < value.items.size(); ++at) {
            const std::string path = fmt::format("match[{}]", at + 1);
            if (is_table(value.items[at], path, "a table that begins with [[match]]"))
                read_match(value.items[at], path, role);
        }
    }

    void read_match(const TomlValue& table, const std::string& path, PolicyText::Role role)
    {
        const bool drives = role == PolicyText::Role::drives;
        const Context context = drives ? Context::match_of_drives_file : Context::match;
        Match match;
        match.origin = findings_.origin(table);
        Names given;
        for (const TomlEntry& entry : table.entries) {
            given.push_back(entry.key);
            read_match_entry(entry, path, context, match);
        }
        const Names keys = match_keys();
        if (std::none_of(given.begin(), given.end(), [&](std::string_view name) { return contains(keys, name); }))
            findings_.refuse(table, path, {}, fmt::format("matches nothing; needs at least one of: {}", fmt::join(keys, ", ")));
        if (drives && !contains(given, "because"))
            findings_.refuse(table, path, {}, "has no because; each entry of drives.toml says why it is there");
        if (drives && !contains(given, "source"))
            findings_.refuse(table, path, {}, "has no source; each entry of drives.toml says where its reason is written");
        if (drives)
            from_drives_file_.push_back(policy_.matches.size());
        policy_.matches.push_back(std::move(match));
    }

    void read_match_entry(const TomlEntry& entry, const std::string& match_path, Context context, Match& match)
    {
        const std::string path = key_path(match_path, entry.key);
        bool known = true;
        if (entry.key == "because")
            match.because = read_sentence(findings_, entry.value, path).value_or("");
        else if (entry.key == "source")
            match.source = read_sentence(findings_, entry.value, path).value_or("");
        else if (entry.key == "profiles")
            read_profile_overrides(entry.value, path, context, match);
        else
            known = false;
        for (const Word<MatchKey>& word : words<MatchKey>) {
            if (word.text != entry.key)
                continue;
            known = true;
            if (std::optional<std::string> glob = read_glob(findings_, entry.value, path, word.value))
                match.keys[word.value] = std::move(*glob);
        }
        for_each(sections, [&](const auto& section) {
            if (section.name != entry.key)
                return;
            known = true;
            read_section(entry.value, path, section.keys, context,
                         [&](const auto& key, auto setting) { match.*key.override_with = std::move(setting); });
        });
        if (known)
            return;
        Names allowed = match_keys();
        allowed.insert(allowed.end(), {"because", "source", "profiles"});
        for_each(sections, [&](const auto& section) { allowed.push_back(section.name); });
        findings_.refuse_unknown_key(entry, match_path, allowed);
    }

    void read_profile_overrides(const TomlValue& table, const std::string& match_path, Context context, Match& match)
    {
        if (!is_table(table, match_path, "a table for each profile, [match.profiles.NAME]"))
            return;
        for (const TomlEntry& entry : table.entries) {
            const std::string path = key_path(match_path, entry.key);
            if (!is_profile(entry, path))
                continue;
            profile_uses_.push_back({findings_.origin(entry), path, entry.key});
            Match::ProfileOverride over;
            read_section(entry.value, path, profile_keys, context,
                         [&](const auto& key, auto setting) { over.*key.override_with = std::move(setting); });
            if (over != Match::ProfileOverride{})
                match.profiles[entry.key] = std::move(over);
        }
    }

    // ---- When all files were read

    void check_profile_names()
    {
        const Setting<std::string>& base_profile = policy_.daemon.profile;
        profile_uses_.push_back({base_profile.origin, "daemon.profile", base_profile.value});
        Names names;
        for (const auto& [name, profile] : policy_.profiles)
            names.push_back(name);
        for (const ProfileUse& use : profile_uses_)
            if (!contains(names, use.name))
                findings_.refuse(use.origin, use.key, use.name,
                                 fmt::format("no such profile{}; allowed: {}", suggestion(use.name, names), in_quotes(names)));
    }

    /// drives.toml ranks below everything that the administrator wrote, but a [[match]] is laid over the base sections.
    /// So what the administrator decided there for all drives is taken out of its entries. A value left at its default
    /// is no decision: otherwise a copy of the vendor's file, where every key stands, would switch drives.toml off.
    void rank_drives_file_below_administrator()
    {
        const Policy built_in;
        for (const std::size_t at : from_drives_file_) {
            Match& match = policy_.matches[at];
            for_each(sections, [&](const auto& section) {
                drop_decided(section.keys, std::string(section.name), policy_.*section.in_policy, built_in.*section.in_policy,
                             match, match.overridden);
            });
            for (auto& [name, over] : match.profiles)
                if (const auto profile = built_in.profiles.find(name); profile != built_in.profiles.end())
                    drop_decided(profile_keys, "profiles." + name, policy_.profiles.at(name), profile->second, over,
                                 match.overridden);
            std::erase_if(match.profiles, [](const auto& over) { return over.second == Match::ProfileOverride{}; });
        }
    }

    template <class Keys, class Part, class Override>
    void drop_decided(const Keys& keys, const std::string& path, const Part& wanted, const Part& built_in, Override& over,
                      std::vector<Overridden>& overridden) const
    {
        for_each(keys, [&](const auto& key) {
            auto& setting = over.*key.override_with;
            const auto by = decided(wanted.*key.held, built_in.*key.held);
            if (!setting || !by)
                return;
            overridden.push_back({key_path(path, key.name), *by});
            setting.reset();
        });
    }
    /// Where the administrator decided it; none: nowhere.
    template <class T>
    [[nodiscard]] std::optional<Origin> decided(const Setting<T>& wanted, const Setting<T>& built_in) const
    {
        const bool by_vendor =
            wanted.origin.file.empty() || std::ranges::find(vendor_files_, wanted.origin.file) != vendor_files_.end();
        return by_vendor || wanted.value == built_in.value ? std::nullopt : std::optional{wanted.origin};
    }
    template <class T>
    [[nodiscard]] static std::optional<Origin> decided(const std::optional<Setting<T>>&, const std::optional<Setting<T>>&)
    {
        return std::nullopt; // has no base value to begin with
    }

    Policy policy_;
    Findings findings_;
    std::vector<std::size_t> from_drives_file_;
    std::vector<std::string> vendor_files_;
    std::vector<ProfileUse> profile_uses_;
    bool a_file_is_unreadable_ = false;
};

} // namespace

PolicyReading read_policy(const std::vector<PolicyText>& files)
{
    Reader reader;
    for (const PolicyText& file : files)
        reader.read(file);
    return std::move(reader).finish();
}

} // namespace nvmepolicy
