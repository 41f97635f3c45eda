// SPDX-License-Identifier: LGPL-2.1-or-later
// Autonomous Power State Transitions: the table that the kernel sends to a controller, and how it comes about.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "nvmepolicy/units.h"

namespace nvmepolicy {

/// One power state, as the controller's Identify data describes it.
/// Source: NVMe Base Specification 1.4c, figure 248, Power State Descriptor (MP, MXPS, NOPS, ENLAT, EXLAT, IDLP, IPS).
struct PowerState {
    int index = 0;                             ///< n of "PSn"; higher numbers use less power.
    std::optional<Microwatts> max_power;       ///< MP in units of MXPS; none when the drive reports 0.
    std::optional<Microwatts> idle_power;      ///< IDLP in units of IPS; none when not reported.
    std::optional<Microwatts> active_power;    ///< ACTP in units of APS; none when not reported.
    std::optional<Microseconds> entry_latency; ///< ENLAT; none when the drive reports 0, "not reported".
    std::optional<Microseconds> exit_latency;  ///< EXLAT, the wake latency; none when the drive reports 0.
    bool operational = true;                   ///< false with NOPS set: no I/O is served in this state.

    /// ENLAT + EXLAT with unreported latencies as 0, which is what the kernel's tiers look at.
    [[nodiscard]] Microseconds round_trip() const
    {
        return entry_latency.value_or(Microseconds{0}) + exit_latency.value_or(Microseconds{0});
    }
    /// EXLAT as the kernel compares it with the tolerance: unreported counts as 0.
    [[nodiscard]] Microseconds kernel_exit_latency() const { return exit_latency.value_or(Microseconds{0}); }
    friend bool operator==(const PowerState&, const PowerState&) = default;
};

/// The module parameters of nvme_core that shape the table, all read by the kernel at the moment of programming.
/// Source: drivers/nvme/host/core.c; defaults are the compiled-in ones.
struct ApstParameters {
    std::uint64_t primary_timeout_ms = 100;          ///< apst_primary_timeout_ms; 0 turns the tiers off.
    std::uint64_t primary_latency_tol_us = 15000;    ///< apst_primary_latency_tol_us; 0 turns the tiers off.
    std::uint64_t secondary_timeout_ms = 2000;       ///< apst_secondary_timeout_ms; 0 turns the second tier off.
    std::uint64_t secondary_latency_tol_us = 100000; ///< apst_secondary_latency_tol_us.

    [[nodiscard]] bool tiers() const { return primary_timeout_ms != 0 && primary_latency_tol_us != 0; }
    friend bool operator==(const ApstParameters&, const ApstParameters&) = default;
};

/// The kernel quirks that decide about APST. Source: quirk tables in drivers/nvme/host/{core,pci}.c.
struct ApstQuirks {
    bool no_apst = false;       ///< NVME_QUIRK_NO_APST: no tolerance file, APST off.
    bool no_deepest_ps = false; ///< NVME_QUIRK_NO_DEEPEST_PS: state NPSS is never a target.
    friend bool operator==(const ApstQuirks&, const ApstQuirks&) = default;
};

/// One table entry: where to go from a state after that long without I/O.
/// Layout of the 64 bits: 7:3 target (ITPS), 31:8 idle time in ms (ITPT). Source: NVMe 1.4c, figure 281.
struct ApstEntry {
    std::uint64_t raw = 0;

    [[nodiscard]] constexpr int target() const { return static_cast<int>((raw >> 3) & 0x1f); }
    [[nodiscard]] constexpr Milliseconds idle_time() const
    {
        return Milliseconds{static_cast<std::int64_t>((raw >> 8) & 0xffffff)};
    }
    /// An idle time of 0 switches the transition off.
    [[nodiscard]] constexpr bool transitions() const { return ((raw >> 8) & 0xffffff) != 0; }
    friend constexpr bool operator==(const ApstEntry&, const ApstEntry&) = default;
};

/// What feature 0Ch holds: whether APST is on (APSTE), and an entry for each of the 32 possible states.
struct ApstFeature {
    static constexpr std::size_t states = 32;
    bool enabled = false;
    std::array<ApstEntry, states> entries{};

    /// The state that a drive without I/O ends up in, starting from state 0; none when it stays where it is.
    [[nodiscard]] std::optional<int> deepest_state() const;
    friend bool operator==(const ApstFeature&, const ApstFeature&) = default;
};

/// NPSS is a field of 8 bits, but only 32 descriptors exist; above this the kernel leaves APST alone.
inline constexpr int highest_npss = 31;

/// Everything the kernel's algorithm looks at.
struct ApstTableInputs {
    bool apst_supported = false;        ///< APSTA byte of Identify Controller is not zero.
    int npss = 0;                       ///< index of the last power state, 0 … 255.
    std::span<const PowerState> states; ///< descriptors 0 … min(npss, 31), in order.
    ApstQuirks quirks;                  ///< in force, that is after force_apst.
    ApstParameters parameters;
};

/// What the kernel sends for a tolerance.
struct PredictedTable {
    bool command_sent = false; ///< false: APST is not supported or NPSS is invalid, the kernel sends nothing.
    ApstFeature feature;
    std::optional<Microseconds> max_round_trip; ///< the largest of the states that became a target.
    friend bool operator==(const PredictedTable&, const PredictedTable&) = default;
};

/// Predicts the table bit for bit. Pure; there must be a descriptor for every state up to min(npss, 31).
/// Source: nvme_configure_apst() and nvme_apst_get_transition_time(), drivers/nvme/host/core.c of Linux 6.1 and 6.12.
[[nodiscard]] PredictedTable predict_apst_table(const ApstTableInputs& inputs, const LatencyTolerance& tolerance);

} // namespace nvmepolicy
