// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads a JSON document that may come from a service of another version: what is missing, or is of another type, is not
// known. Nothing here throws.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nvmepolicy {

using Document = nlohmann::ordered_json;

/// null where there is no such key, or no object to look in.
[[nodiscard]] inline const Document& member(const Document& object, const char* key)
{
    static const Document nothing;
    if (!object.is_object())
        return nothing;
    const auto found = object.find(key);
    return found == object.end() ? nothing : *found;
}

/// What is no text is `otherwise`.
[[nodiscard]] inline std::string text_of(const Document& object, const char* key, const std::string& otherwise = "")
{
    const Document& value = member(object, key);
    return value.is_string() ? value.get<std::string>() : otherwise;
}

[[nodiscard]] inline bool is_true(const Document& object, const char* key)
{
    const Document& value = member(object, key);
    return value.is_boolean() && value.get<bool>();
}

/// Numbers beyond all that drives report are not known either, so that sums of them are safe.
[[nodiscard]] inline std::optional<std::int64_t> number_of(const Document& object, const char* key)
{
    constexpr double beyond = 1e15;
    const Document& value = member(object, key);
    const bool usable = value.is_number_integer() && value.get<double>() < beyond && value.get<double>() > -beyond;
    return usable ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

/// Those of a list that are texts.
[[nodiscard]] inline std::vector<std::string> texts_of(const Document& object, const char* key)
{
    std::vector<std::string> texts;
    for (const Document& value : member(object, key))
        if (value.is_string())
            texts.push_back(value.get<std::string>());
    return texts;
}

} // namespace nvmepolicy
