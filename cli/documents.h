// SPDX-License-Identifier: LGPL-2.1-or-later
// The documents of the looking commands: from the service where it runs, else by looking; with --simulate and --config always
// by looking.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "look.h"

namespace nvmepolicy {

/// A document, or the exit code; what was wrong has been printed then.
struct Answered {
    std::optional<nlohmann::ordered_json> document;
    int code = 0;
};

[[nodiscard]] Answered status_document(const LookOptions& options);
[[nodiscard]] Answered show_document(const LookOptions& options, const std::string& name);
[[nodiscard]] Answered plan_document(const LookOptions& options);

} // namespace nvmepolicy
