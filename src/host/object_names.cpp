// SPDX-License-Identifier: LGPL-2.1-or-later
#include "object_names.h"

#include <cstring>

namespace nvmepolicy {
namespace {

/// Takes `word` and at least one digit off the front.
bool take(std::string_view& name, std::string_view word)
{
    if (!name.starts_with(word))
        return false;
    name.remove_prefix(word.size());
    const auto digits = name.find_first_not_of("0123456789");
    if (digits == 0 || name.empty())
        return false;
    name.remove_prefix(digits == std::string_view::npos ? name.size() : digits);
    return true;
}

} // namespace

bool is_controller(std::string_view name)
{
    return take(name, "nvme") && name.empty();
}

bool is_disk(std::string_view name)
{
    return take(name, "nvme") && take(name, "n") && name.empty();
}

bool is_path(std::string_view name)
{
    return take(name, "nvme") && take(name, "c") && take(name, "n") && name.empty();
}

bool is_subsystem(std::string_view name)
{
    return take(name, "nvme-subsys") && name.empty();
}

bool natural_order(const std::string& a, const std::string& b)
{
    return ::strverscmp(a.c_str(), b.c_str()) < 0;
}

} // namespace nvmepolicy
