// SPDX-License-Identifier: LGPL-2.1-or-later
// Decisions as sentences, for the person whose laptop was slow this morning.
#pragma once

#include <string>
#include <vector>

#include "nvmepolicy/verify.h"

namespace nvmepolicy {

/// Why the tolerance is what it is, a sentence or two a line: which states the drive has, which are allowed and why,
/// what the kernel makes of it, what the drive says, what limits it, and what another profile would change.
[[nodiscard]] std::vector<std::string> explain_apst(const ApstQuestion& question, const ApstDecision& decision,
                                                    const Verdict& verdict);

} // namespace nvmepolicy
