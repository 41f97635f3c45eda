// SPDX-License-Identifier: LGPL-2.1-or-later
// The same for people: tables and sentences, made from the JSON documents, so that whoever has only those (a client of the
// service) prints exactly what the service would. Keys that are missing are not known; nothing here throws.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "nvmepolicy/drive_file.h"
#include "reconcile/round.h"

namespace nvmepolicy {

/// How to write: with colours or without.
enum class Style { plain, coloured };

/// Colours on a terminal that does not forbid them (NO_COLOR, TERM=dumb); see https://no-color.org.
[[nodiscard]] Style style_of_stdout();

/// From the document of `status`: a heading (profile, power source, simulated or not), one line a controller, then what needs
/// a word.
[[nodiscard]] std::string status_text(const nlohmann::ordered_json& status, Style style);
/// From the document of `show`: everything about one controller.
[[nodiscard]] std::string show_text(const nlohmann::ordered_json& show, Style style);
/// From the document of `show`: false where there is only an error to tell of.
[[nodiscard]] bool was_identified(const nlohmann::ordered_json& show);
/// From the document of `show`: why each value is what it is.
[[nodiscard]] std::string explain_text(const nlohmann::ordered_json& show);
/// From the document of `plan`: what would change, or has; without the heading.
[[nodiscard]] std::string changes_text(const nlohmann::ordered_json& plan);
/// The same, under the heading.
[[nodiscard]] std::string plan_text(const nlohmann::ordered_json& plan);
/// A change that was tried, and what came of it, in one line.
[[nodiscard]] std::string change_text(const Outcome& outcome, const ToleranceChange& change);
/// The table of a prediction.
[[nodiscard]] std::string predict_text(const DriveFile& drive, const LatencyTolerance& tolerance, const PredictedTable& table);

} // namespace nvmepolicy
