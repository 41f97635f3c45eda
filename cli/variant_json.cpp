// SPDX-License-Identifier: LGPL-2.1-or-later
#include "variant_json.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace nvmepolicy {
namespace {

using Json = nlohmann::ordered_json;
using Dictionary = std::map<std::string, sdbus::Variant>;

Json dictionary_json(const Dictionary& dictionary)
{
    Json object = Json::object();
    for (const auto& [key, value] : dictionary)
        object[key] = json_of(value);
    return object;
}

} // namespace

nlohmann::ordered_json json_of(const sdbus::Variant& value)
{
    if (value.containsValueOfType<std::string>())
        return value.get<std::string>();
    if (value.containsValueOfType<sdbus::ObjectPath>())
        return std::string(value.get<sdbus::ObjectPath>());
    if (value.containsValueOfType<bool>())
        return value.get<bool>();
    if (value.containsValueOfType<std::int32_t>())
        return value.get<std::int32_t>();
    if (value.containsValueOfType<std::uint32_t>())
        return value.get<std::uint32_t>();
    if (value.containsValueOfType<std::uint64_t>()) {
        const auto number = value.get<std::uint64_t>();
        return number == std::numeric_limits<std::uint64_t>::max() ? Json(nullptr) : Json(number);
    }
    if (value.containsValueOfType<std::vector<std::string>>())
        return value.get<std::vector<std::string>>();
    if (value.containsValueOfType<std::vector<sdbus::ObjectPath>>()) {
        Json paths = Json::array();
        for (const sdbus::ObjectPath& path : value.get<std::vector<sdbus::ObjectPath>>())
            paths.push_back(std::string(path));
        return paths;
    }
    if (value.containsValueOfType<std::vector<Dictionary>>()) {
        Json list = Json::array();
        for (const Dictionary& one : value.get<std::vector<Dictionary>>())
            list.push_back(dictionary_json(one));
        return list;
    }
    return nullptr;
}

} // namespace nvmepolicy
