// SPDX-License-Identifier: LGPL-2.1-or-later
// Somebody else writes an attribute that we manage: whose value stays?
#pragma once

#include <cstdint>
#include <optional>

#include "nvmepolicy/decide_apst.h"

namespace nvmepolicy {

/// What a running service remembers of one controller between looks. A new controller object starts with an empty one.
struct SessionMemory {
    std::uint64_t object = 0;                 ///< the controller object that this is about
    std::optional<LatencyTolerance> theirs{}; ///< what somebody else left in the file, where it stays
    /// Only what a restore would put back was found so far, and it was not written over. That may be what an earlier process of
    /// ours put back without being able to record it, so it is nobody else's.
    bool may_be_restored = true;
    std::uint64_t foreign_writes = 0; ///< different foreign values found so far
    int fights = 0;                   ///< how often we wrote over theirs, see forget_fights_after
    Milliseconds last_fight{0};       ///< when, in time since boot

    /// The table that the drive kept although we had the kernel send another one twice. It is not tried again.
    std::optional<ApstFeature> stubborn_table{};
    std::optional<LatencyTolerance> stubborn_at{};
    friend bool operator==(const SessionMemory&, const SessionMemory&) = default;
};

inline constexpr int most_fights = 3; ///< then theirs stays until claim_back(), `enforce` or not
/// Fewer than that are forgotten after this time of peace, so that a writer of once a day is not taken for a quarrel.
inline constexpr Milliseconds forget_fights_after{std::int64_t{10} * 60 * 1000};

enum class ForeignStand {
    none,      ///< The file holds ours, or what we want anyway, or nothing of ours has been there yet.
    yield,     ///< Theirs stays.
    wait,      ///< Ours will be written again, but not yet.
    overwrite, ///< Ours is written again now.
};

struct ForeignVerdict {
    ForeignStand stand = ForeignStand::none;
    bool news = false;     ///< a foreign value that was not there at the last look
    Milliseconds pause{0}; ///< with `wait`: look again after that long
};

/// Judges what is in the file and updates the memory. `now` is time since boot.
/// A value found in a controller object that we have not written to yet is the kernel's, not somebody's; so is `auto`, which
/// the file reads when it came back with a reset.
[[nodiscard]] ForeignVerdict judge_foreign(const ApstQuestion& question, const ApstDecision& decision, SessionMemory& memory,
                                           Milliseconds now);

/// Ours was written. Over theirs, that was a fight; a try that wrote nothing is none.
void note_written(SessionMemory& memory, ForeignStand stand, Milliseconds now);

/// The controller was initialised anew, so a table that it kept before says nothing any more.
void forget_stubborn_table(SessionMemory& memory);

/// Somebody asked for our values (profile, configuration, reconcile): theirs no longer stays.
void claim_back(SessionMemory& memory);

} // namespace nvmepolicy
