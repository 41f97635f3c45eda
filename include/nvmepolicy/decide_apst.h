// SPDX-License-Identifier: LGPL-2.1-or-later
// Which power states a drive may sleep in, and the tolerance that makes the kernel see it the same way.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nvmepolicy/facts.h"
#include "nvmepolicy/ledger.h"
#include "nvmepolicy/plan.h"
#include "nvmepolicy/policy.h"

namespace nvmepolicy {

/// Whether the latency tolerance of a controller means anything.
enum class ApstSupport {
    supported,
    not_supported, ///< APSTA is 0: the drive has no APST and the kernel makes no tolerance file.
    off_by_quirk,  ///< APSTA is set, yet the kernel makes no file: quirk NO_APST.
    npss_invalid,  ///< NPSS is above 31: the file is there, the kernel never programs anything.
    unknown,       ///< Identify or the file could not be read.
};

enum class WakeSource { advertised, measured };

/// A state that the bound does not allow, and what spoke against it.
struct UnwantedState {
    int state = 0;
    std::optional<Microseconds> wake_latency; ///< none: unreported, so it may take any time
    WakeSource source = WakeSource::advertised;
    friend bool operator==(const UnwantedState&, const UnwantedState&) = default;
};

/// A limit that was there before us; never exceeded unless a [[match]] says allow_deeper.
struct Ceiling {
    Microseconds limit{0};
    std::string source;  ///< "nvme_core.default_ps_max_latency_us=0" or "value found at first sight"
    bool binds = false;  ///< the bound without it would be larger
    bool lifted = false; ///< allow_deeper = true applies: shown, not obeyed
    friend bool operator==(const Ceiling&, const Ceiling&) = default;
};

/// How the tolerance was chosen.
enum class ToleranceRule {
    bound,              ///< the bound itself
    no_constraint,      ///< the bound is `any`
    excludes_unwanted,  ///< one less than the smallest exit latency of an unwanted state
    reaches_calibrated, ///< the advertised exit latency of a state that was measured to be faster
    boot_value,         ///< the drop-out breaker has put it back to what it had at boot
};

/// The decision with everything that led to it.
struct ApstDecision {
    ApstSupport support = ApstSupport::unknown;
    ManageMode mode = ManageMode::manage;
    LatencyBound wished;    ///< profile and holds
    std::string wished_by;  ///< "profile balanced", "hold of …"
    LatencyBound bound;     ///< effective: with the ceiling
    std::string origin;     ///< who decides in the end: wished_by, or "ceiling …"
    std::string written_at; ///< where the wish stands in the configuration; empty for a hold
    std::optional<Ceiling> ceiling;
    std::vector<UnwantedState> unwanted;
    ToleranceRule rule = ToleranceRule::bound;
    LatencyTolerance tolerance;         ///< wanted; only with support == supported
    std::string reason;                 ///< one clause with the numbers used
    PredictedTable predicted;           ///< for the wanted tolerance
    std::vector<MeasuredWake> measured; ///< what was known about this drive
    bool deeper_than_at_boot = false;   ///< a sleep state is allowed that the value found first kept the drive out of
    bool breaker_tripped = false;
};

/// What an idle drive does under a table: where it ends up, how it wakes, what it draws.
struct IdleOutlook {
    std::optional<int> deepest_state;         ///< none: it stays where it is
    std::optional<Microseconds> wake_latency; ///< of the deepest state; none: unreported
    WakeSource wake_source = WakeSource::advertised;
    std::optional<Microseconds> round_trip; ///< of the deepest state
    std::optional<Microwatts> idle_power;   ///< IDLP of the deepest state where reported, else MP
    bool idle_power_is_maximum = false;     ///< MP stands in for IDLP
    friend bool operator==(const IdleOutlook&, const IdleOutlook&) = default;
};

/// Everything that the decision looks at.
struct ApstQuestion {
    const Controller& controller;
    const Machine& machine;
    const ControllerPolicy& policy;
    const Wish& wish;
    std::span<const MeasuredWake> measured;
    const LedgerEntry* ledger = nullptr;  ///< none: this controller object was never written to
    std::optional<std::string> breaker{}; ///< why the drop-out breaker keeps this drive at its boot value; none: it does not
    /// A value that somebody has lowered since counts as a ceiling. A running service has better: see foreign.h.
    bool obey_lower = true;
};

/// Pure. The wish's profile must exist in the policy; one that does not is treated as `balanced`.
[[nodiscard]] ApstDecision decide_apst(const ApstQuestion& question);

/// What a table means for an idle drive.
[[nodiscard]] IdleOutlook idle_outlook(const ApstFeature& table, std::span<const PowerState> states,
                                       std::span<const MeasuredWake> measured);

/// The kernel's view of a controller: quirks and parameters in force. Identify must have been read.
[[nodiscard]] ApstTableInputs kernel_inputs(const Controller& controller, const Machine& machine);

} // namespace nvmepolicy
