// SPDX-License-Identifier: LGPL-2.1-or-later
// The one table that says what an errno or an NVMe status means to us.
#pragma once

#include <cstdint>
#include <string>

#include "nvmepolicy/result.h"

namespace nvmepolicy {

/// A system call on an attribute, directory or node failed.
[[nodiscard]] Refusal errno_refusal(std::string where, std::string value, int error);

/// The drive answered a command with an error status (without the phase bit, as the kernel's passthrough returns it).
/// Source of the codes: NVMe 1.4c, section 4.6.1; path related ones come from the kernel itself.
[[nodiscard]] Refusal status_refusal(std::string where, std::uint32_t status);

} // namespace nvmepolicy
