// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <sdbus-c++/sdbus-c++.h>

namespace nvmepolicy {

/// A value of a property as JSON; null for 18446744073709551615, which says "unknown" or "no constraint" in all of ours, and
/// for a type that this version does not know.
[[nodiscard]] nlohmann::ordered_json json_of(const sdbus::Variant& value);

} // namespace nvmepolicy
