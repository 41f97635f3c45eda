// SPDX-License-Identifier: LGPL-2.1-or-later
// What may be written for a configuration value of each type, and the collection of everything that was written wrongly.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvmepolicy/policy.h"
#include "policy_keys.h"
#include "toml_tree.h"

namespace nvmepolicy {

using Names = std::vector<std::string_view>;

/// `"manage", "observe"`
[[nodiscard]] std::string in_quotes(const Names& names);

/// `apst.mode` from `apst` and `mode`; a part that TOML would want in quotes is shown in quotes.
[[nodiscard]] std::string key_path(const std::string& path, std::string_view key);
inline constexpr std::string_view a_profile_name = "allowed: 1 to 32 characters of a-z, 0-9 and -";

/// The errors of all files.
class Findings {
public:
    void begin_file(const std::string& name) { files_.push_back(name); }
    /// Line and column in the file that was begun last.
    template <class Positioned>
    [[nodiscard]] Origin origin(const Positioned& at) const
    {
        return {files_.back(), at.line, at.column};
    }

    void refuse(const Origin& at, const std::string& key, std::string_view value, std::string reason);
    template <class Positioned>
    void refuse(const Positioned& at, const std::string& key, std::string_view value, std::string reason)
    {
        refuse(origin(at), key, value, std::move(reason));
    }
    void refuse_type(const TomlValue& value, const std::string& key, std::string_view allowed);
    void refuse_unknown_key(const TomlEntry& entry, const std::string& path, const Names& known);

    /// In the order of files and lines.
    [[nodiscard]] std::vector<Refusal> in_order() const;

private:
    struct Finding {
        Origin origin;
        Refusal refusal;
    };
    std::vector<std::string> files_;
    std::vector<Finding> findings_;
};

/// Reads a value of the type that the last argument points to. Nothing: it was refused.
std::optional<bool> read_value(Findings& findings, const TomlValue& value, const std::string& key, const bool*);
std::optional<LatencyBound> read_value(Findings& findings, const TomlValue& value, const std::string& key, const LatencyBound*);
/// The only duration that is not a bound is the poll interval, so this knows its range.
std::optional<Microseconds> read_value(Findings& findings, const TomlValue& value, const std::string& key, const Microseconds*);
/// The only number is the weight.
std::optional<int> read_value(Findings& findings, const TomlValue& value, const std::string& key, const int*);
/// The only list is that of I/O policies.
std::optional<std::vector<std::string>> read_value(Findings& findings, const TomlValue& value, const std::string& key,
                                                   const std::vector<std::string>*);
/// The only text that is not one of a few words is the name of a profile. Whether it exists is not known here.
std::optional<std::string> read_value(Findings& findings, const TomlValue& value, const std::string& key, const std::string*);

/// The place of `text` in `texts`.
std::optional<std::size_t> read_word(Findings& findings, const TomlValue& value, const std::string& key, const Names& texts);
template <class T>
requires std::is_enum_v<T> std::optional<T> read_value(Findings& findings, const TomlValue& value, const std::string& key,
                                                       const T*)
{
    Names texts;
    for (const Word<T>& word : words<T>)
        texts.push_back(word.text);
    const std::optional<std::size_t> at = read_word(findings, value, key, texts);
    return at ? std::optional{words<T>[*at].value} : std::nullopt;
}

/// One line that shows as what it is, for people.
std::optional<std::string> read_sentence(Findings& findings, const TomlValue& value, const std::string& key);
/// The pattern that a [[match]] has for a fact.
std::optional<std::string> read_glob(Findings& findings, const TomlValue& value, const std::string& key, MatchKey fact);

} // namespace nvmepolicy
