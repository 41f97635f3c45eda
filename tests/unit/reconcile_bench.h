// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "reconcile/reconcile.h"
#include "watched_host.h"

namespace nvmepolicy {

/// One machine with one drive, watched.
struct Bench {
    SimulatedHost simulated;
    SimulatedController& drive;
    WatchedHost host{simulated};
    LedgerStore ledger;

    explicit Bench(const DriveFile& file = evo_plus()) : drive(simulated.add(file)) {}
    Outcome reconcile(const std::string& profile = "balanced")
    {
        return nvmepolicy::reconcile(host, "nvme0", circumstances(simulated, profile), ledger);
    }
    Outcome look(const std::string& profile = "balanced")
    {
        return nvmepolicy::look(host, "nvme0", circumstances(simulated, profile), ledger);
    }
    [[nodiscard]] LedgerEntry entry() const { return ledger.find(drive.id).value_or(LedgerEntry{}); }
};

inline ToleranceChange change_of(const Outcome& outcome, std::size_t index = 0)
{
    return outcome.plan.changes.size() > index ? std::get<ToleranceChange>(outcome.plan.changes[index]) : ToleranceChange{};
}

} // namespace nvmepolicy
