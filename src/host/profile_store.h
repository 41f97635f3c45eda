// SPDX-License-Identifier: LGPL-2.1-or-later
// The chosen profile on disk.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "nvmepolicy/chosen_profile.h"
#include "storage.h"

namespace nvmepolicy {

/// May be used from several threads. Saving may wait for a disk: never from the event loop.
class ProfileStore {
public:
    /// In memory only.
    ProfileStore() = default;
    /// Keeps it in `directory`/profile.json.
    explicit ProfileStore(std::string directory, Storage& storage = file_storage())
        : directory_(std::move(directory))
        , storage_(&storage)
    {
    }

    /// None: nothing was chosen, or what is there cannot be used; then `complaint` says why.
    [[nodiscard]] std::optional<ChosenProfile> read(std::optional<Refusal>& complaint);
    /// What is to be on disk from now on. Sends nothing there by itself.
    void choose(ChosenProfile chosen);
    /// Brings to disk what was chosen last, whoever asks first.
    [[nodiscard]] Result<void> save();

private:
    [[nodiscard]] std::string path() const { return directory_ + "/profile.json"; }

    std::mutex mutex_;  ///< of chosen_
    std::mutex saving_; ///< one at a time
    std::string directory_;
    Storage* storage_ = nullptr;
    std::optional<ChosenProfile> chosen_;
    std::optional<ChosenProfile> saved_; ///< guarded by saving_
};

} // namespace nvmepolicy
