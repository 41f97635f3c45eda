// SPDX-License-Identifier: LGPL-2.1-or-later
// The same for people: tables and sentences.
#pragma once

#include <string>

#include "nvmepolicy/drive_file.h"
#include "reconcile/round.h"

namespace nvmepolicy {

/// How to write: with colours or without.
enum class Style { plain, coloured };

/// Colours on a terminal that does not forbid them (NO_COLOR, TERM=dumb); see https://no-color.org.
[[nodiscard]] Style style_of_stdout();

/// A heading (profile, power source, simulated or not), one line a controller, then what needs a word.
[[nodiscard]] std::string status_text(const Round& round, bool simulated, Style style);
/// Everything about one controller.
[[nodiscard]] std::string show_text(const Round& round, const Outcome& outcome, bool simulated, Style style);
/// A change that was tried, and what came of it, in one line.
[[nodiscard]] std::string change_text(const Outcome& outcome, const ToleranceChange& change);
/// What would change, or has; without the heading.
[[nodiscard]] std::string changes_text(const Round& round);
/// The same, under the heading.
[[nodiscard]] std::string plan_text(const Round& round, bool simulated);
/// The table of a prediction.
[[nodiscard]] std::string predict_text(const DriveFile& drive, const LatencyTolerance& tolerance, const PredictedTable& table);

} // namespace nvmepolicy
