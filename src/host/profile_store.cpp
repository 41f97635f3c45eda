// SPDX-License-Identifier: LGPL-2.1-or-later
#include "profile_store.h"

namespace nvmepolicy {
namespace {

constexpr std::size_t largest_record = 4096;

}

std::optional<ChosenProfile> ProfileStore::read(std::optional<Refusal>& complaint)
{
    if (!storage_)
        return std::nullopt;
    const auto text = storage_->read(path(), largest_record);
    const auto chosen = text ? parse_chosen_profile(path(), *text) : Result<ChosenProfile>(text.error());
    if (chosen)
        return *chosen;
    if (chosen.error().kind != RefusalKind::absent)
        complaint = chosen.error();
    return std::nullopt;
}

void ProfileStore::choose(ChosenProfile chosen)
{
    const std::lock_guard lock(mutex_);
    chosen_ = std::move(chosen);
}

Result<void> ProfileStore::save()
{
    const std::lock_guard saving(saving_);
    std::optional<ChosenProfile> newest;
    {
        const std::lock_guard lock(mutex_);
        newest = chosen_;
    }
    if (!storage_ || !newest || newest == saved_)
        return {};
    if (auto made = storage_->make_directory(directory_); !made)
        return made;
    auto written = storage_->replace(path(), format_chosen_profile(*newest));
    if (written)
        saved_ = newest;
    return written;
}

} // namespace nvmepolicy
