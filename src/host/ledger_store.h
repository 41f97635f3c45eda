// SPDX-License-Identifier: LGPL-2.1-or-later
// The ledger on disk. It is written before the machine is changed, so that a crash at any instant can be undone.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "nvmepolicy/ledger.h"
#include "nvmepolicy/plan.h"
#include "storage.h"
#include "unique_fd.h"

namespace nvmepolicy {

/// May be used from several threads.
class LedgerStore {
public:
    /// In memory only, for simulated controllers.
    LedgerStore() = default;
    /// Reads `path`; none there yet is an empty ledger. A damaged one is refused and left alone: it is the only record of
    /// what the drives had before.
    [[nodiscard]] static Result<std::unique_ptr<LedgerStore>> open(std::string path, Storage& storage = file_storage());

    [[nodiscard]] Ledger snapshot() const;
    [[nodiscard]] std::optional<LedgerEntry> find(const ControllerId& controller) const;

    /// Before a write: what may be found in the file from now on. The value found first is kept from the
    /// first time, unless somebody else has lowered it since or the controller object is a new one. Refuses `try_later` where
    /// the disk does not take it; then nothing is known that was not known before.
    [[nodiscard]] Result<void> intend(const ToleranceChange& change);
    /// After a write that the kernel took: the value is ours from now on, and programmed with these parameters. What is found
    /// in the file instead, if anything is, somebody else has written since.
    [[nodiscard]] Result<void> confirm(const ToleranceChange& change, const ApstParameters& parameters);
    /// Their originals are back, or the controllers have left for good. Where nothing remains, the file is removed: that needs
    /// no room on a full /run.
    [[nodiscard]] Result<void> forget(std::span<const ControllerId> controllers);

private:
    Result<void> save() const;

    mutable std::mutex mutex_;
    std::string path_;
    Storage* storage_ = nullptr;
    Ledger ledger_;
};

/// Holds /run/nvmepolicyd/lock for as long as it lives, so that two instances never write against each other. Makes the
/// directory if need be.
class InstanceLock {
public:
    [[nodiscard]] static Result<InstanceLock> take(const std::string& runtime_directory);

private:
    explicit InstanceLock(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
};

} // namespace nvmepolicy
