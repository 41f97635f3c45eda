// SPDX-License-Identifier: LGPL-2.1-or-later
// The breaker's record on disk. It must survive the crash of the machine, so it is on a real file system and synced.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "nvmepolicy/breaker.h"
#include "storage.h"

namespace nvmepolicy {

/// A change costs one line, however many controllers there are, and those that wait for the disk at once share one write.
/// May be used from several threads; whoever only asks waits for no disk. Writing may: never from the event loop.
class BreakerStore {
public:
    /// In memory only, for simulated controllers.
    BreakerStore() = default;
    /// Reads `directory`/breaker.json, and tells this boot from earlier ones by a token in `runtime_directory`, which is
    /// empty after a boot. What cannot be read does not stop anything, but until recover() can, no drive is let deeper than at
    /// boot; `complaint` says so.
    [[nodiscard]] static std::unique_ptr<BreakerStore> open(const std::string& directory, const std::string& runtime_directory,
                                                            std::optional<Refusal>& complaint,
                                                            Storage& storage = file_storage());

    /// Only to ask it: nothing is written, and no boot is told from another.
    [[nodiscard]] static std::unique_ptr<BreakerStore> read(const std::string& directory, std::optional<Refusal>& complaint);

    /// Why this controller is kept at its boot value; none: it is not.
    [[nodiscard]] std::optional<std::string> tripped(const ControllerId& controller) const;
    /// In force at once. Where the disk does not take it, the next write and catch_up() try again.
    [[nodiscard]] Result<void> trip(const ControllerId& controller, const std::string& reason);
    /// Refuses `absent` where it has not tripped.
    [[nodiscard]] Result<void> clear(const ControllerId& controller);
    /// To be called, and to succeed, before a drive is let deeper than at boot.
    [[nodiscard]] Result<void> begin_trial(const ControllerId& controller);
    /// A clean stop: what this boot tried did not bring the machine down. `still_deeper` are the controllers that could not be
    /// put back; they may still do so.
    [[nodiscard]] Result<void> end_trials(std::span<const ControllerId> still_deeper = {});

    /// Reads what could not be read before.
    void recover();
    /// Trips that the disk has not taken are tried again. Refuses where that of this controller is still missing, or where
    /// nothing could be read for a reason that may pass.
    [[nodiscard]] Result<void> catch_up(const ControllerId& controller);

private:
    struct Found {
        std::string boot_id;
        BreakerRecord record;
    };
    using Lock = std::unique_lock<std::mutex>;
    [[nodiscard]] Result<Found> find() const;
    void recover(Lock& lock);
    Result<void> save(Lock& lock, const ControllerId& controller);
    Result<void> save_all(Lock& lock);
    Result<void> write(Lock& lock);
    Result<void> put(const std::string& lines, const std::string& everything);

    mutable std::mutex mutex_; ///< not held while a disk is waited for
    std::string path_;
    std::string runtime_directory_;
    Storage* storage_ = nullptr;
    std::string boot_id_;
    std::optional<Refusal> unreadable_;
    bool recovering_ = false;
    BreakerRecord record_;
    std::set<ControllerId> unsaved_; ///< of these the file says something else
    std::set<ControllerId> writing_; ///< of these it is just being told; empty: nobody writes
    std::condition_variable written_;

    // Of whoever writes.
    std::unique_ptr<AppendOnlyFile> file_; ///< none: it has to be written anew
    std::size_t size_ = 0;                 ///< of it, in bytes
};

} // namespace nvmepolicy
