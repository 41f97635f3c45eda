// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy_values.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "duration.h"
#include "nvmepolicy/wording.h"

namespace nvmepolicy {

namespace {

using Kind = TomlValue::Kind;

constexpr std::size_t longest_name = 32;
constexpr std::size_t longest_glob = 256; // Identify and sysfs texts are shorter, an NQN has at most 223 bytes
constexpr std::size_t longest_sentence = 1024;
constexpr std::size_t longest_file_name = 4096;

constexpr std::string_view lower_case_letters = "abcdefghijklmnopqrstuvwxyz";

bool consists_of(std::string_view text, std::string_view letters, std::string_view others)
{
    return std::all_of(text.begin(), text.end(), [&](char c) {
        return letters.find(c) != std::string_view::npos || others.find(c) != std::string_view::npos;
    });
}

std::string_view kind_name(Kind kind)
{
    switch (kind) {
    case Kind::text: return "is a text";
    case Kind::integer: return "is a whole number";
    case Kind::floating: return "is a decimal number";
    case Kind::boolean: return "is true or false";
    case Kind::date_or_time: return "is a date or time";
    case Kind::array: return "is a list";
    case Kind::table: return "is a table";
    }
    return {};
}

/// The text of a latency. A number without quotes is one too, so that `25` and `"25"` get the same answer: it has no unit.
std::optional<std::string> latency_text(Findings& findings, const TomlValue& value, const std::string& key,
                                        std::string_view allowed)
{
    if (value.kind == Kind::integer && value.integer == 0)
        return "0";
    if (value.kind == Kind::text || value.kind == Kind::integer || value.kind == Kind::floating)
        return value.text;
    findings.refuse_type(value, key, allowed);
    return std::nullopt;
}

std::optional<std::string> read_text(Findings& findings, const TomlValue& value, const std::string& key, std::size_t longest,
                                     std::string_view allowed)
{
    if (value.kind != Kind::text)
        findings.refuse_type(value, key, allowed);
    else if (value.text.empty())
        findings.refuse(value, key, {}, fmt::format("is empty; allowed: {}", allowed));
    else if (value.text.size() > longest)
        findings.refuse(value, key, value.text, fmt::format("too long; allowed: at most {} bytes", longest));
    else if (printable(value.text, value.text.size()) != value.text)
        findings.refuse(value, key, value.text, "has characters that cannot be seen; allowed: one line of printable text");
    else
        return value.text;
    return std::nullopt;
}

} // namespace

std::string in_quotes(const Names& names)
{
    return fmt::format("\"{}\"", fmt::join(names, "\", \""));
}

std::string key_path(const std::string& path, std::string_view key)
{
    const bool bare =
        !key.empty() && key.size() <= 64 && consists_of(key, lower_case_letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return (path.empty() ? "" : path + ".") + (bare ? std::string(key) : "\"" + printable(key, 64) + "\"");
}

bool is_profile_name(std::string_view name)
{
    return !name.empty() && name.size() <= longest_name && consists_of(name, lower_case_letters, "0123456789-");
}

void Findings::refuse(const Origin& at, const std::string& key, std::string_view value, std::string reason)
{
    std::string where = printable(at.file, longest_file_name);
    if (at.line != 0)
        where += fmt::format(":{}:{}", at.line, at.column);
    if (!key.empty())
        where += ": " + key;
    findings_.push_back({at, {std::move(where), printable(value), std::move(reason), RefusalKind::invalid}});
}

void Findings::refuse_type(const TomlValue& value, const std::string& key, std::string_view allowed)
{
    refuse(value, key, value.text, fmt::format("{}; allowed: {}", kind_name(value.kind), allowed));
}

void Findings::refuse_unknown_key(const TomlEntry& entry, const std::string& path, const Names& known)
{
    refuse(entry, key_path(path, entry.key), {},
           fmt::format("unknown key{}; allowed: {}", suggestion(entry.key, known), fmt::join(known, ", ")));
}

std::vector<Refusal> Findings::in_order() const
{
    std::vector<const Finding*> order;
    for (const Finding& finding : findings_)
        order.push_back(&finding);
    const auto rank = [&](const Finding* finding) {
        const Origin& at = finding->origin;
        return std::tuple(std::find(files_.begin(), files_.end(), at.file), at.line, at.column);
    };
    std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
    std::vector<Refusal> refusals;
    refusals.reserve(order.size());
    for (const Finding* finding : order)
        refusals.push_back(finding->refusal);
    return refusals;
}

std::optional<bool> read_value(Findings& findings, const TomlValue& value, const std::string& key, const bool*)
{
    if (value.kind == Kind::boolean)
        return value.boolean;
    findings.refuse_type(value, key, "true or false");
    return std::nullopt;
}

std::optional<LatencyBound> read_value(Findings& findings, const TomlValue& value, const std::string& key, const LatencyBound*)
{
    const std::string_view allowed = R"(a duration with its unit (us, ms or s), for example "25ms", "any", or 0)";
    const std::optional<std::string> text = latency_text(findings, value, key, allowed);
    if (!text)
        return std::nullopt;
    const BoundReading reading = read_bound(*text);
    if (!reading.bound)
        findings.refuse(value, key, value.text, fmt::format("{}; allowed: {}", reading.problem, allowed));
    return reading.bound;
}

std::optional<Microseconds> read_value(Findings& findings, const TomlValue& value, const std::string& key, const Microseconds*)
{
    const auto seconds = [](Microseconds time) { return std::chrono::duration_cast<std::chrono::seconds>(time).count(); };
    const std::string allowed =
        fmt::format(R"(a duration from "{}s" to "{}s")", seconds(shortest_poll_interval), seconds(longest_poll_interval));
    const std::optional<std::string> text = latency_text(findings, value, key, allowed);
    if (!text)
        return std::nullopt;
    DurationReading reading = read_duration(*text, longest_poll_interval);
    if (reading.duration && *reading.duration < shortest_poll_interval)
        reading = {{}, "too short"};
    if (!reading.duration)
        findings.refuse(value, key, value.text, fmt::format("{}; allowed: {}", reading.problem, allowed));
    return reading.duration;
}

std::optional<int> read_value(Findings& findings, const TomlValue& value, const std::string& key, const int*)
{
    const std::string allowed = fmt::format("a whole number from 0 to {}", heaviest_weight);
    if (value.kind != Kind::integer)
        findings.refuse_type(value, key, allowed);
    else if (value.integer < 0 || value.integer > heaviest_weight)
        findings.refuse(value, key, value.text, fmt::format("out of range; allowed: {}", allowed));
    else
        return static_cast<int>(value.integer);
    return std::nullopt;
}

std::optional<std::vector<std::string>> read_value(Findings& findings, const TomlValue& value, const std::string& key,
                                                   const std::vector<std::string>*)
{
    if (value.kind != Kind::array) {
        findings.refuse_type(value, key, R"(a list of I/O policies, for example ["service-time", "queue-depth"], or [])");
        return std::nullopt;
    }
    std::vector<std::string> list;
    for (std::size_t at = 0; at < value.items.size(); ++at) {
        const TomlValue& item = value.items[at];
        const std::string item_key = fmt::format("{}[{}]", key, at + 1);
        // Any name: kernels add policies, and only the running one can tell which it takes.
        const std::string_view allowed = "the name of an I/O policy, 1 to 32 characters of a-z and -";
        if (item.kind != Kind::text)
            findings.refuse_type(item, item_key, allowed);
        else if (item.text.empty() || item.text.size() > longest_name || !consists_of(item.text, lower_case_letters, "-"))
            findings.refuse(item, item_key, item.text,
                            fmt::format("{}; allowed: {}", item.text.empty() ? "is empty" : "not an I/O policy", allowed));
        else
            list.push_back(item.text);
    }
    return list.size() == value.items.size() ? std::optional{std::move(list)} : std::nullopt;
}

std::optional<std::string> read_value(Findings& findings, const TomlValue& value, const std::string& key, const std::string*)
{
    if (value.kind != Kind::text)
        findings.refuse_type(value, key, "the name of a profile, in quotes");
    else if (!is_profile_name(value.text))
        findings.refuse(value, key, value.text,
                        fmt::format("{}; {}", value.text.empty() ? "is empty" : "not a profile name", a_profile_name));
    else
        return value.text;
    return std::nullopt;
}

std::optional<std::size_t> read_word(Findings& findings, const TomlValue& value, const std::string& key, const Names& texts)
{
    if (value.kind != Kind::text) {
        findings.refuse_type(value, key, in_quotes(texts));
        return std::nullopt;
    }
    const auto found = std::find(texts.begin(), texts.end(), value.text);
    if (found != texts.end())
        return static_cast<std::size_t>(found - texts.begin());
    findings.refuse(value, key, value.text,
                    fmt::format("{}{}; allowed: {}", value.text.empty() ? "is empty" : "not a known word",
                                suggestion(value.text, texts), in_quotes(texts)));
    return std::nullopt;
}

std::optional<std::string> read_sentence(Findings& findings, const TomlValue& value, const std::string& key)
{
    return read_text(findings, value, key, longest_sentence, "one line of text, in quotes");
}

std::optional<std::string> read_glob(Findings& findings, const TomlValue& value, const std::string& key, MatchKey fact)
{
    const bool is_id = fact == MatchKey::vendor_id;
    std::optional<std::string> glob =
        read_text(findings, value, key, longest_glob,
                  is_id ? R"(a text such as "0x144d")" : "a text in quotes, in which * stands for any characters");
    // The id is compared as text: written in any other way it would silently match nothing.
    const bool other_notation =
        glob && is_id && glob->find_first_of("*?[") == std::string::npos
        && !(glob->size() == 6 && glob->starts_with("0x") && consists_of(glob->substr(2), "abcdef", "0123456789"));
    if (other_notation) {
        findings.refuse(value, key, *glob, R"(not a vendor id; allowed: four lower-case hexadecimal digits such as "0x144d")");
        glob.reset();
    }
    return glob;
}

} // namespace nvmepolicy
