// SPDX-License-Identifier: LGPL-2.1-or-later
// The breaker's record on disk. It must survive the crash of the machine, so it is on a real file system and synced.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "nvmepolicy/breaker.h"
#include "storage.h"

namespace nvmepolicy {

/// May be used from several threads. Writing may wait for a disk: never from the event loop.
class BreakerStore {
public:
    /// In memory only, for simulated controllers.
    BreakerStore() = default;
    /// Reads `directory`/breaker.json, and tells this boot from earlier ones by a token in `runtime_directory`, which is
    /// empty after a boot. A record that cannot be read does not stop anything, but until it can be, no drive is let deeper
    /// than at boot; `complaint` says so.
    [[nodiscard]] static std::unique_ptr<BreakerStore> open(const std::string& directory, const std::string& runtime_directory,
                                                            std::optional<Refusal>& complaint,
                                                            Storage& storage = file_storage());

    /// Only to ask it: nothing is written, and no boot is told from another.
    [[nodiscard]] static std::unique_ptr<BreakerStore> read(const std::string& directory, std::optional<Refusal>& complaint);

    /// Why this controller is kept at its boot value; none: it is not.
    [[nodiscard]] std::optional<std::string> tripped(const ControllerId& controller) const;
    [[nodiscard]] Result<void> trip(const ControllerId& controller, const std::string& reason);
    /// Refuses `absent` where it has not tripped.
    [[nodiscard]] Result<void> clear(const ControllerId& controller);
    /// To be called, and to succeed, before a drive is let deeper than at boot.
    [[nodiscard]] Result<void> begin_trial(const ControllerId& controller);
    /// A clean stop: what this boot tried did not bring the machine down. `still_deeper` are the controllers that could not be
    /// put back; they may still do so.
    [[nodiscard]] Result<void> end_trials(std::span<const ControllerId> still_deeper = {});

private:
    Result<void> save();

    mutable std::mutex mutex_;
    std::string path_;
    Storage* storage_ = nullptr;
    std::string boot_id_;
    std::optional<std::string> unreadable_;
    BreakerRecord record_;
    bool saved_ = true; ///< the record is on disk as it is here
};

} // namespace nvmepolicy
