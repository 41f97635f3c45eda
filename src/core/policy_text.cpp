// SPDX-License-Identifier: LGPL-2.1-or-later
// A policy as text that is itself a valid configuration, each line with the place that decided it.
#include <algorithm>

#include <fmt/format.h>

#include "nvmepolicy/policy_file.h"
#include "nvmepolicy/wording.h"
#include "policy_keys.h"

namespace nvmepolicy {

namespace {

std::string toml_string(std::string_view text)
{
    std::string escaped = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            escaped += {'\\', c};
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            escaped += c;
    }
    return escaped + '"';
}

std::string duration(Microseconds latency)
{
    if (latency == Microseconds{0})
        return "0";
    std::string text = show(latency);
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    return toml_string(text);
}

std::string toml(bool value)
{
    return value ? "true" : "false";
}
std::string toml(int value)
{
    return fmt::format("{}", value);
}
std::string toml(const std::string& value)
{
    return toml_string(value);
}
std::string toml(Microseconds value)
{
    return duration(value);
}
std::string toml(const LatencyBound& value)
{
    return value.limit ? duration(*value.limit) : toml_string("any");
}
std::string toml(const std::vector<std::string>& value)
{
    std::string list;
    for (const std::string& item : value)
        list += (list.empty() ? "" : ", ") + toml_string(item);
    return "[" + list + "]";
}
template <class T>
requires std::is_enum_v<T> std::string toml(T value)
{
    return toml_string(word_for(value));
}

class Writer {
public:
    void blank_line() { text_ += text_.empty() ? "" : "\n"; }
    void header(std::string_view name) { text_ += fmt::format("[{}]\n", name); }
    void match_header(const Origin& origin) { text_ += fmt::format("[[match]]   # {}\n", origin.text()); }
    void line(std::string_view key, const std::string& value) { text_ += fmt::format("{} = {}\n", key, toml_string(value)); }

    template <class T>
    void line(std::string_view key, const Setting<T>& setting)
    {
        text_ += fmt::format("{} = {}   # {}\n", key, toml(setting.value), setting.origin.text());
    }
    template <class T>
    void line(std::string_view key, const std::optional<Setting<T>>& setting)
    {
        if (setting)
            line(key, *setting);
    }

    template <class Keys, class Part>
    void section(const std::string& name, const Keys& keys, const Part& part)
    {
        blank_line();
        header(name);
        for_each(keys, [&](const auto& key) { line(key.name, part.*key.held); });
    }

    /// A table of a [[match]], unless it overrides nothing.
    template <class Keys, class Part>
    void overrides(const std::string& name, const Keys& keys, const Part& part)
    {
        bool any = false;
        for_each(keys, [&](const auto& key) { any = any || (part.*key.override_with).has_value(); });
        if (!any)
            return;
        header(name);
        for_each(keys, [&](const auto& key) { line(key.name, part.*key.override_with); });
    }

    [[nodiscard]] std::string text() && { return std::move(text_); }

private:
    std::string text_;
};

} // namespace

std::string show_policy(const Policy& policy)
{
    Writer writer;
    writer.section("daemon", daemon_keys, policy.daemon);
    for (const auto& [name, profile] : policy.profiles)
        writer.section("profiles." + name, profile_keys, profile);
    for_each(sections,
             [&](const auto& section) { writer.section(std::string(section.name), section.keys, policy.*section.in_policy); });
    for (const Match& match : policy.matches) {
        writer.blank_line();
        writer.match_header(match.origin);
        for (const auto& [key, glob] : match.keys)
            writer.line(show(key), glob);
        if (!match.because.empty())
            writer.line("because", match.because);
        if (!match.source.empty())
            writer.line("source", match.source);
        for (const auto& [name, over] : match.profiles)
            writer.overrides("match.profiles." + name, profile_keys, over);
        for_each(sections,
                 [&](const auto& section) { writer.overrides(fmt::format("match.{}", section.name), section.keys, match); });
    }
    return std::move(writer).text();
}

} // namespace nvmepolicy
