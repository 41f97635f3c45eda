// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "log.h"
#include "options.h"

namespace nvmepolicy {

/// The running service: follows the machine until SIGTERM or SIGINT. Returns the exit code: 0 after a clean stop, 1 when it
/// could not start, 2 when the configuration is wrong.
[[nodiscard]] int run_service(const Options& options, const Log& log);

} // namespace nvmepolicy
