// SPDX-License-Identifier: LGPL-2.1-or-later
// What each attribute held before we first touched it, and what we made of it. Restore lives on this, also after a crash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// The history of one controller's latency tolerance in this boot.
struct LedgerEntry {
    ControllerId controller;
    std::string name;       ///< nvme0 at the time, for people; never used to find the controller again
    LatencyTolerance first; ///< found before our first write
    /// Recorded before a write. The values that may be ours: every one announced and not yet confirmed.
    std::vector<LatencyTolerance> intended;
    std::optional<LatencyTolerance> ours;          ///< our last write that the kernel took
    std::optional<ApstParameters> programmed_with; ///< module parameters at our last write
    std::string origin;                            ///< whose wish the last write was
    std::int64_t written_at = 0;                   ///< seconds since 1970
    std::uint64_t object = 0; ///< the controller object that was written to; a new one starts with the kernel's default
    std::optional<LatencyTolerance> lowered{}; ///< the lowest value that somebody else had set and that we wrote over
    friend bool operator==(const LedgerEntry&, const LedgerEntry&) = default;

    /// What a restore puts back: the value found first, or what somebody else had lowered it to since.
    [[nodiscard]] LatencyTolerance original() const { return lowered.value_or(first); }
    /// True when a value found now was put there by us, as far as we can know.
    [[nodiscard]] bool is_ours(const LatencyTolerance& found) const;
};

struct Ledger {
    std::map<ControllerId, LedgerEntry> entries; ///< each by its own `controller`
    [[nodiscard]] const LedgerEntry* find(const ControllerId& controller) const;
    /// The entry of that controller, made when there is none.
    LedgerEntry& at(const ControllerId& controller);
    void erase(const ControllerId& controller);
    friend bool operator==(const Ledger&, const Ledger&) = default;
};

/// The largest ledger that is read, in bytes; thousands of controllers fit.
inline constexpr std::size_t largest_ledger = std::size_t{16} * 1024 * 1024;

/// `/run/nvmepolicyd/originals.json`, schema 2: JSON lines, so that a change is recorded by one more of them. A header says how
/// many entries were written together with it. Each further line is the entry of a controller, in the place of any earlier one,
/// or tells which controllers were forgotten. Lines end in a newline; what follows the last one is an append that was
/// interrupted, and is left out: nothing that a line announces is done before all of it is there. Any other text is refused,
/// never half read.
[[nodiscard]] Result<Ledger> parse_ledger(const std::string& where, std::string_view text);
/// All of it, without a history.
[[nodiscard]] std::string format_ledger(const Ledger& ledger);
/// One line, to be appended.
[[nodiscard]] std::string format_entry(const LedgerEntry& entry);
[[nodiscard]] std::string format_forgotten(std::span<const ControllerId> controllers);

} // namespace nvmepolicy
