// SPDX-License-Identifier: LGPL-2.1-or-later
// The drop-out breaker: a drive that falls off the bus while it may sleep deeper than it did at boot is put back to what it
// had at boot, and stays there until the administrator clears it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// True when `wanted` lets the drive into a sleep state that `first` kept it out of.
[[nodiscard]] bool goes_deeper(const LatencyTolerance& wanted, const LatencyTolerance& first,
                               std::span<const PowerState> states);

/// When a controller reset itself or left, in time since boot, while deeper states than at boot were allowed.
struct DropOuts {
    std::vector<Milliseconds> times;
    friend bool operator==(const DropOuts&, const DropOuts&) = default;
};
inline constexpr std::size_t drop_outs_that_trip = 3;
inline constexpr Milliseconds drop_out_window{std::int64_t{60} * 60 * 1000};

/// Notes one, forgets those older than the window; true when that makes three within it.
[[nodiscard]] bool note_drop_out(DropOuts& drop_outs, Milliseconds now);

/// What has to survive a crash of the machine, since the drop-out of a root drive is one.
struct BreakerRecord {
    /// Written before a drive is first let deeper than at boot. `clean`: that boot ended as it should.
    struct Trial {
        std::string boot_id;
        bool clean = false;
        friend bool operator==(const Trial&, const Trial&) = default;
    };
    struct Trip {
        std::string reason;
        std::int64_t at = 0; ///< seconds since 1970
        friend bool operator==(const Trip&, const Trip&) = default;
    };
    std::map<ControllerId, Trial> trials;
    std::map<ControllerId, Trip> trips;

    [[nodiscard]] const Trip* trip_of(const ControllerId& controller) const;
    [[nodiscard]] bool on_trial(const ControllerId& controller, std::string_view boot_id) const;
    friend bool operator==(const BreakerRecord&, const BreakerRecord&) = default;
};

/// Trials of an earlier boot that did not end cleanly become trips; clean ones are dropped. Those of this boot stay.
[[nodiscard]] BreakerRecord after_boot(BreakerRecord record, std::string_view boot_id, std::int64_t now);

/// The largest record that is read, in bytes; thousands of controllers fit.
inline constexpr std::size_t largest_breaker_record = std::size_t{16} * 1024 * 1024;

/// `/var/lib/nvmepolicyd/breaker.json`, schema 2: JSON lines, so that a change is recorded by one more of them. After a header,
/// each line is all that is known of a controller, in the place of any earlier one. A last line without its newline counts
/// where it is whole, since people edit this file; otherwise it is an append that was interrupted, and is left out: no drive
/// goes deeper before all of its line is there. Any other text is refused, never half read. Schema 1, one document, is still
/// read.
[[nodiscard]] Result<BreakerRecord> parse_breaker(const std::string& where, std::string_view text);
/// All of it, without a history.
[[nodiscard]] std::string format_breaker(const BreakerRecord& record);
/// One line, to be appended.
[[nodiscard]] std::string format_breaker_line(const BreakerRecord& record, const ControllerId& controller);

} // namespace nvmepolicy
