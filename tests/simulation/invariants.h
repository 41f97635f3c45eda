// SPDX-License-Identifier: LGPL-2.1-or-later
// What must hold whatever happens in whatever order. It is checked against what the kernel saw, not against what the service
// thinks: by the requests that reach the kernel, the values that its files hold, and the records on disk at that moment.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "memory_storage.h"
#include "nvmepolicy/policy.h"
#include "reconcile/reconcile.h"
#include "simulation/simulated_kernel.h"

namespace nvmepolicy::simulation {

struct Violation {
    std::string invariant;
    std::string text;
};

class Invariants {
public:
    /// Who makes requests now.
    struct Caller {
        std::uint64_t process = 0; ///< another number for each
        bool restores = false;     ///< it puts back values, and does nothing else any more
        const Policy* policy = nullptr;
        Milliseconds claims_until{0}; ///< until then somebody else's value may be written over
        Milliseconds started_at{0};
    };
    Invariants(SimulatedKernel& kernel, const MemoryStorage& storage) : kernel_(kernel), storage_(storage) {}

    [[nodiscard]] const std::optional<Violation>& broken() const { return broken_; }
    void break_with(std::string invariant, std::string text);

    // What happens.
    void started(const Caller& caller) { caller_ = caller; }
    void configured(const Policy& policy, Milliseconds now);
    void restores() { caller_.restores = true; }
    void ended() { caller_ = {}; }
    void requested(const SimulatedController& c, const std::string& request, const std::shared_ptr<PendingCall>& call);
    void stored(const SimulatedController& c, const LatencyTolerance& before, bool by_us);
    void announced(const Uevent& event);
    void power_changes();
    void falls_sick(const SimulatedController& c) { histories_[c.object].sick = true; }
    void will_refuse(const SimulatedController& c) { histories_[c.object].refused = true; }
    void gets_firmware(const SimulatedController& c);

    /// Nobody else has written since we did.
    [[nodiscard]] bool holds_ours(const SimulatedController& c) { return histories_[c.object].last_by_us; }

    // When it is checked.
    void time_passes();
    /// Nothing more happens; `outcome` is a look from outside.
    void at_rest(const Outcome& outcome);
    /// A restore has come back without a failure.
    void restored();

private:
    /// Of one controller object.
    struct History {
        std::vector<LatencyTolerance> before_us; ///< what its file held before we first wrote it
        std::vector<LatencyTolerance> foreign;   ///< what somebody else wrote since
        std::set<std::string> ours;
        bool last_by_us = false;
        std::uint64_t asked_by = 0;   ///< the process that last asked for a write
        std::uint64_t written_by = 0; ///< the process that we last wrote it from
        Milliseconds foreign_at{0};
        bool foreign_seen = false; ///< we have read that value
        bool sick = false;
        bool refused = false;
        Milliseconds firmware_at{-1};
        Milliseconds asked_at{-1};     ///< when we last asked for Identify
        Milliseconds connected_at{-1}; ///< when that was last announced
        Milliseconds not_live_at{-1'000'000};
    };
    struct Request {
        std::uint64_t process;
        bool in_lane;
        std::string text;
        std::weak_ptr<PendingCall> call;
    };
    void check_write(const SimulatedController& c, const LatencyTolerance& value);
    void check_bound(const SimulatedController& c, const LatencyTolerance& value);
    void check_trial(const SimulatedController& c, const LedgerEntry& entry, const LatencyTolerance& value);
    [[nodiscard]] bool is_another_drive(const SimulatedController& c);
    void check_restoring(const SimulatedController& c, const LatencyTolerance& value);
    [[nodiscard]] bool may_be_put_back(const History& history, const LatencyTolerance& value) const;

    SimulatedKernel& kernel_;
    const MemoryStorage& storage_;
    Caller caller_;
    std::map<std::uint64_t, History> histories_;
    std::vector<Request> requests_;
    Milliseconds power_changed_at_{-1'000'000};
    Milliseconds lane_blocked_at_{0};
    std::optional<Violation> broken_;
};

} // namespace nvmepolicy::simulation
