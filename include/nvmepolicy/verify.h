// SPDX-License-Identifier: LGPL-2.1-or-later
// Does the drive do what was asked? The file only repeats our wish; the table in the drive is the answer.
#pragma once

#include <optional>
#include <string>

#include "nvmepolicy/decide_apst.h"

namespace nvmepolicy {

/// What the comparison came to.
enum class Agreement {
    verified,          ///< The file holds the wanted value and the drive holds the predicted table.
    verified_by_quirk, ///< The same, once a quirk that the kernel does not show is assumed (or one we assumed is dropped).
    not_applicable,    ///< No APST here, by the drive or by a quirk; nothing to verify and no error.
    off_but_enabled,   ///< No tolerance file, yet the drive has APST on from its own defaults. Reported only.
    awaits_change,     ///< The file does not hold the wanted value: a plan says what to write.
    parameters_moved,  ///< Module parameters were changed; the table follows at the next programming. Nothing to write.
    table_differs,     ///< The file is right, the drive holds another table. One repair is worth trying.
    left_to_another,   ///< Somebody else has written since, and theirs stays.
    ignored,           ///< NPSS above 31: the kernel never programs this drive.
    unread,            ///< File, Identify or table could not be read.
};

struct Verdict {
    Agreement agreement = Agreement::unread;
    std::string reason;                        ///< why, in one sentence
    std::optional<std::string> inferred_quirk; ///< "no_deepest_ps", or "not no_deepest_ps"
    [[nodiscard]] bool verified() const
    {
        return agreement == Agreement::verified || agreement == Agreement::verified_by_quirk;
    }
    /// Nothing is wrong: verified, or there is nothing to verify.
    [[nodiscard]] bool in_order() const
    {
        return verified() || agreement == Agreement::not_applicable || agreement == Agreement::off_but_enabled
               || agreement == Agreement::parameters_moved;
    }
    friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// Compares what kernel and drive report with the decision.
[[nodiscard]] Verdict verify_apst(const ApstQuestion& question, const ApstDecision& decision);

/// What to write, if anything: the wanted value where the file holds another, or a repair through a neighbour value
/// where the drive does not follow the file. Nothing in mode `observe`.
[[nodiscard]] Plan plan_apst(const ApstQuestion& question, const ApstDecision& decision, const Verdict& verdict);

/// A value that differs from `wanted` in the kernel's eyes and admits no state that `wanted` does not; none when there
/// is none (0, where a state leaves its exit latency unreported or reports 1 us).
[[nodiscard]] std::optional<LatencyTolerance> neighbour(const LatencyTolerance& wanted, std::span<const PowerState> states);

} // namespace nvmepolicy
