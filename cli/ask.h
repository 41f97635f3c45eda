// SPDX-License-Identifier: LGPL-2.1-or-later
// What the commands that need the service have in common.
#pragma once

#include <functional>
#include <string>

#include "service_client.h"

namespace nvmepolicy {

/// Prints what went wrong and returns the exit code for it: 3 where nothing runs, 4 where it was not allowed, else 1.
[[nodiscard]] int complain_about(const Refusal& refusal);

/// Connects, and asks; returns the exit code. `ask` prints what it has to say.
[[nodiscard]] int with_service(const std::string& bus, const std::function<Result<void>(ServiceClient&)>& ask);

} // namespace nvmepolicy
