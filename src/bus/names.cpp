// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/names.h"

#include <algorithm>

namespace nvmepolicy::bus {
namespace {

constexpr std::string_view controllers = "/org/nvmepolicy1/controller/";
constexpr std::string_view subsystems = "/org/nvmepolicy1/subsystem/";

bool may_be_in_a_path(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string below(std::string_view parent, std::string_view name)
{
    std::string path(parent);
    std::ranges::transform(name, std::back_inserter(path), [](char c) { return may_be_in_a_path(c) ? c : '_'; });
    return path;
}

} // namespace

std::string controller_path(std::string_view name)
{
    return below(controllers, name);
}

std::string subsystem_path(std::string_view name)
{
    return below(subsystems, name);
}

std::string controller_of(std::string_view path)
{
    if (!path.starts_with(controllers))
        return {};
    const std::string_view name = path.substr(controllers.size());
    return std::ranges::all_of(name, may_be_in_a_path) ? std::string(name) : std::string{};
}

} // namespace nvmepolicy::bus
