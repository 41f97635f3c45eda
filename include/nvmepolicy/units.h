// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers that cannot be mixed up, and the words the kernel and the configuration use for them.
// Everything from outside is converted to these types once, where a text or a page of bytes becomes facts.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nvmepolicy/result.h"

namespace nvmepolicy {

using Microseconds = std::chrono::microseconds;
using Milliseconds = std::chrono::milliseconds;

/// A count of one unit. Distinct units are distinct types and do not convert.
template <class Unit>
struct Quantity {
    std::int64_t count = 0;
    constexpr Quantity() = default;
    constexpr explicit Quantity(std::int64_t n) : count(n) {}
    friend constexpr auto operator<=>(Quantity, Quantity) = default;
};
using Microwatts = Quantity<struct MicrowattUnit>;

/// The largest number of microseconds that the PM QoS core keeps as a number; one more is its word `any`.
/// Source: PM_QOS_LATENCY_ANY = S32_MAX, include/linux/pm_qos.h.
inline constexpr Microseconds largest_tolerance{2147483646};

/// What `power/pm_qos_latency_tolerance_us` can hold: no request (`auto`), no constraint (`any`), or microseconds
/// from 0 to `largest_tolerance`. For the NVMe driver `auto` and `any` mean the same, no limit; they are kept apart
/// because restore puts back what was found.
/// Source: pm_qos_latency_tolerance_us_show() and _store(), drivers/base/power/sysfs.c.
class LatencyTolerance {
public:
    /// No request is held ("auto").
    constexpr LatencyTolerance() = default;
    static constexpr LatencyTolerance automatic() { return {}; }
    static constexpr LatencyTolerance any() { return LatencyTolerance(Kind::any, Microseconds{0}); }
    /// Clamps into 0 … largest_tolerance, so that no other part can produce what the kernel would reject or rename.
    static constexpr LatencyTolerance of(Microseconds limit)
    {
        if (limit < Microseconds{0})
            limit = Microseconds{0};
        return LatencyTolerance(Kind::limited, limit > largest_tolerance ? largest_tolerance : limit);
    }

    /// The limit in microseconds; none when nothing limits (`auto`, `any`).
    [[nodiscard]] constexpr std::optional<Microseconds> limit() const
    {
        return kind_ == Kind::limited ? std::optional{limit_} : std::nullopt;
    }
    [[nodiscard]] constexpr bool is_automatic() const { return kind_ == Kind::automatic; }

    /// Equal in effect: the NVMe driver does not tell `auto` from `any` (nvme_set_latency_tolerance()).
    [[nodiscard]] constexpr bool same_effect(const LatencyTolerance& other) const { return limit() == other.limit(); }

    /// The text that the kernel's file takes and shows: `auto`, `any`, or plain decimal digits.
    [[nodiscard]] std::string kernel_text() const;

    friend constexpr bool operator==(const LatencyTolerance&, const LatencyTolerance&) = default;

private:
    enum class Kind { automatic, any, limited };
    constexpr LatencyTolerance(Kind kind, Microseconds limit) : kind_(kind), limit_(limit) {}
    Kind kind_ = Kind::automatic;
    Microseconds limit_{0};
};

/// How long a wake-up may take, as a profile or a hold asks for it: a duration, or no bound at all ("any").
struct LatencyBound {
    std::optional<Microseconds> limit; ///< none: any wake latency will do. 0: the drive must not sleep.
    friend constexpr bool operator==(const LatencyBound&, const LatencyBound&) = default;
};

/// The stricter of two bounds.
[[nodiscard]] LatencyBound stricter(const LatencyBound& a, const LatencyBound& b);

/// Reads a duration with its unit (`us`, `ms`, `s`; a decimal fraction is allowed as long as whole microseconds come
/// out), or `0`. Range 0 … 2147483646 us. `where` names the place in the Refusal.
[[nodiscard]] Result<Microseconds> parse_duration(const std::string& where, std::string_view text);

/// Reads a bound: a duration as above, or `any`.
[[nodiscard]] Result<LatencyBound> parse_bound(const std::string& where, std::string_view text);

/// Reads a tolerance as people write it on a command line: a duration, a bare number of microseconds as in the kernel's
/// file (decimal), `any`, or `auto`.
[[nodiscard]] Result<LatencyTolerance> parse_tolerance(const std::string& where, std::string_view text);

/// For people: `0`, `900 us`, `4.6 ms`, `25 ms`, `1.15 s`.
[[nodiscard]] std::string show(Microseconds latency);
/// For people: `80 mW`, `2.5 mW`, `5.93 W`.
[[nodiscard]] std::string show(Microwatts power);
/// For people: `25 ms`, `any`, or `auto`.
[[nodiscard]] std::string show(const LatencyTolerance& tolerance);
/// For people: `25 ms` or `any`.
[[nodiscard]] std::string show(const LatencyBound& bound);

} // namespace nvmepolicy
