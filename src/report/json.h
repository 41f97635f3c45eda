// SPDX-License-Identifier: LGPL-2.1-or-later
// The JSON documents, schema 1. Keys may be added, never renamed; what is not known is null, never 0.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "nvmepolicy/drive_file.h"
#include "reconcile/round.h"

namespace nvmepolicy {

/// `status --json`
[[nodiscard]] nlohmann::ordered_json status_json(const Round& round, bool simulated);
/// `show NAME --json`: the controller's part of the status, and more of it.
[[nodiscard]] nlohmann::ordered_json show_json(const Round& round, const Outcome& outcome, bool simulated);
/// `plan --json`
[[nodiscard]] nlohmann::ordered_json plan_json(const Round& round, bool simulated);
/// `predict --json`
[[nodiscard]] nlohmann::ordered_json predict_json(const DriveFile& drive, const LatencyTolerance& tolerance,
                                                  const PredictedTable& table);

/// Reads a document that another program made, perhaps one of another version. Refuses what is no JSON object and what is of
/// another schema; keys may be missing all the same. `from`: who sent it.
[[nodiscard]] Result<nlohmann::ordered_json> read_document(const std::string& from, std::string_view text);

/// Two spaces, one line at the end; foreign bytes that are no UTF-8 are replaced, never thrown about.
[[nodiscard]] std::string to_text(const nlohmann::ordered_json& document);

} // namespace nvmepolicy
