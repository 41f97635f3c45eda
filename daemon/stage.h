// SPDX-License-Identifier: LGPL-2.1-or-later
// What a task works on: the controllers, real or simulated, and the records about them.
#pragma once

#include <memory>
#include <optional>

#include "host/breaker_store.h"
#include "host/host.h"
#include "host/ledger_store.h"
#include "host/left_behind.h"
#include "host/profile_store.h"
#include "log.h"
#include "options.h"
#include "reconcile/reconcile.h"
#include "simulation/simulated_host.h"

namespace nvmepolicy {

struct Stage {
    std::optional<InstanceLock> lock; ///< none where nothing is to be written
    std::unique_ptr<Host> host;
    std::unique_ptr<LedgerStore> ledger;
    std::unique_ptr<BreakerStore> breaker;
    std::unique_ptr<ProfileStore> profile;
    std::optional<Cast> cast; ///< of the story that was asked for; none: none was

    /// The same controllers, for somebody in a hurry: after `time` nothing more is waited for.
    [[nodiscard]] std::unique_ptr<Host> hurried(std::chrono::milliseconds time) const;
    /// Children that hang with their drive; none where the controllers are simulated.
    [[nodiscard]] LeftBehind* left_behind() const;
    /// None where the controllers are real.
    [[nodiscard]] SimulatedHost* simulated() const;
};

/// None: it is not possible, and the reason has been said. Before anything may be written: root, a writable /sys, no other
/// instance, and a record of earlier runs that can be read.
[[nodiscard]] std::optional<Stage> set_stage(const Options& options, bool to_write, const Log& log);

/// One entry of a restore, as a line.
[[nodiscard]] std::string restored_text(const Restored& restored);

} // namespace nvmepolicy
