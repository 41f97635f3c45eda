// SPDX-License-Identifier: LGPL-2.1-or-later
// A command in the foreground, as a shell would run it, while we look after something else.
#pragma once

#include <string>
#include <vector>

#include "service_client.h"

namespace nvmepolicy {

/// Exit codes for failures of our own, as env(1) has them.
inline constexpr int exit_run_failed = 125;
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;

/// Runs the command and serves the client meanwhile; the command goes on whatever becomes of the service or the bus. Signals
/// that another process sends to us are passed on; those of the terminal reach the command by themselves. Returns the
/// command's exit code; where a signal ended it, ends this process by the same.
[[nodiscard]] int run_in_foreground(const std::vector<std::string>& command, ServiceClient& client);

} // namespace nvmepolicy
