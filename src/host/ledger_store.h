// SPDX-License-Identifier: LGPL-2.1-or-later
// The ledger on disk. It is written before the machine is changed, so that a crash at any instant can be undone.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "nvmepolicy/ledger.h"
#include "nvmepolicy/plan.h"
#include "storage.h"
#include "unique_fd.h"

namespace nvmepolicy {

/// A change costs one line, however many controllers there are. May be used from several threads.
class LedgerStore {
public:
    /// In memory only, for simulated controllers.
    LedgerStore() = default;
    /// Reads `path`; none there yet is an empty ledger. A damaged one is refused and left alone: it is the only record of
    /// what the drives had before. The file is not touched before the first change, which writes all of it anew and so clears
    /// away what an earlier process has left behind; whoever only looks may be another process than the one that writes.
    [[nodiscard]] static Result<std::unique_ptr<LedgerStore>> open(std::string path, Storage& storage = file_storage());

    [[nodiscard]] Ledger snapshot() const;
    [[nodiscard]] std::optional<LedgerEntry> find(const ControllerId& controller) const;

    /// Before a write: what may be found in the file from now on. The value found first is kept from the
    /// first time, unless somebody else has lowered it since or the controller object is a new one. Refuses `try_later` where
    /// the disk does not take it; then nothing is known that was not known before.
    [[nodiscard]] Result<void> intend(const ToleranceChange& change);
    /// After a write that the kernel took: the value is ours from now on, and programmed with these parameters. What is found
    /// in the file instead, if anything is, somebody else has written since, or another job that has announced it too: one
    /// that was begun for a controller of the same name may have come to this one.
    [[nodiscard]] Result<void> confirm(const ToleranceChange& change, const ApstParameters& parameters);
    /// After a write that failed, or that nobody waits for any longer: it may be found until the next one is confirmed.
    void abandon(const ToleranceChange& change);
    /// What the disk has not taken of that controller is tried again; each change does so for all of them.
    [[nodiscard]] Result<void> catch_up(const ControllerId& controller);
    /// Their originals are back, or the controllers have left for good. Where nothing remains, the file is removed: that needs
    /// no room on a full /run.
    [[nodiscard]] Result<void> forget(std::span<const ControllerId> controllers);

private:
    Result<void> save();
    Result<void> rewrite();
    [[nodiscard]] std::string unsaved_lines() const;
    void close(const ToleranceChange& change);

    mutable std::mutex mutex_;
    std::string path_;
    Storage* storage_ = nullptr;
    Ledger ledger_;
    std::multimap<ControllerId, ToleranceChange> open_; ///< announced, and neither confirmed nor abandoned
    std::set<ControllerId> unsaved_;                    ///< of these the file may say something else
    std::unique_ptr<AppendOnlyFile> file_;              ///< none: it has to be written anew
    std::size_t size_ = 0;                              ///< of it, in bytes
    std::size_t lines_ = 0;                             ///< in it, at most, the header aside
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
