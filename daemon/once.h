// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "log.h"
#include "options.h"

namespace nvmepolicy {

/// `--once`: observe, decide, apply, verify, print. Returns the exit code: 0 all applied and verified, 1 something failed
/// or did not verify, 2 the configuration is wrong.
[[nodiscard]] int run_once(const Options& options, const Log& log);

/// `--restore`: put back what an earlier run left behind. Returns 0 when nothing of ours is left, else 1.
[[nodiscard]] int run_restore(const Log& log);

} // namespace nvmepolicy
