// SPDX-License-Identifier: LGPL-2.1-or-later
#include "breaker_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <sys/random.h>

#include "errno_refusal.h"
#include "wall_clock.h"

namespace nvmepolicy {
namespace {

constexpr std::size_t largest_record = std::size_t{4} * 1024 * 1024;

/// A token that lasts as long as /run does: one boot. The kernel's own boot id is out of sight in a sandbox.
Result<std::string> boot_token(const std::string& runtime_directory, Storage& storage)
{
    const std::string path = runtime_directory + "/boot";
    if (auto token = storage.read(path, 64); token && !token->empty())
        return token;
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        return errno_refusal("getrandom", "", errno);
    std::string token;
    for (const unsigned char byte : bytes)
        token += fmt::format("{:02x}", byte);
    if (const auto written = storage.replace(path, token); !written)
        return written.error();
    return token;
}

Result<BreakerRecord> read_record(const std::string& path, Storage& storage)
{
    const auto text = storage.read(path, largest_record);
    if (text)
        return parse_breaker(path, *text);
    return text.error().kind == RefusalKind::absent ? Result<BreakerRecord>(BreakerRecord{})
                                                    : Result<BreakerRecord>(text.error());
}

} // namespace

std::unique_ptr<BreakerStore> BreakerStore::read(const std::string& directory, std::optional<Refusal>& complaint)
{
    auto store = std::make_unique<BreakerStore>();
    auto record = read_record(directory + "/breaker.json", file_storage());
    if (record)
        store->record_ = *std::move(record);
    else {
        store->unreadable_ = record.error().text();
        complaint = record.error();
    }
    return store;
}

std::unique_ptr<BreakerStore> BreakerStore::open(const std::string& directory, const std::string& runtime_directory,
                                                 std::optional<Refusal>& complaint, Storage& storage)
{
    auto store = std::make_unique<BreakerStore>();
    store->storage_ = &storage;
    store->path_ = directory + "/breaker.json";
    const auto token = boot_token(runtime_directory, storage);
    if (const auto made = storage.make_directory(directory); !made)
        complaint = made.error();
    auto record = read_record(store->path_, storage);
    if (!record || !token) {
        Refusal refusal = record ? token.error() : record.error();
        store->unreadable_ = refusal.text();
        refusal.reason += ". Until that is mended, no drive is let into deeper sleep than at boot";
        complaint = refusal;
        return store;
    }
    store->boot_id_ = *token;
    store->record_ = after_boot(*std::move(record), store->boot_id_, seconds_since_1970());
    return store;
}

std::optional<std::string> BreakerStore::tripped(const ControllerId& controller) const
{
    const std::lock_guard lock(mutex_);
    if (unreadable_)
        return "the breaker's record cannot be read: " + *unreadable_;
    const BreakerRecord::Trip* trip = record_.trip_of(controller);
    return trip ? std::optional{trip->reason} : std::nullopt;
}

Result<void> BreakerStore::trip(const ControllerId& controller, const std::string& reason)
{
    const std::lock_guard lock(mutex_);
    // In force at once, also when the disk does not take it; then it is tried again when told again.
    if (!record_.trip_of(controller)) {
        record_.trips.push_back({controller, reason, seconds_since_1970()});
        saved_ = false;
    }
    return saved_ ? Result<void>{} : save();
}

Result<void> BreakerStore::clear(const ControllerId& controller)
{
    const std::lock_guard lock(mutex_);
    if (unreadable_)
        return Refusal{"breaker", "", "the record cannot be read: " + *unreadable_};
    const auto trip = std::ranges::find(record_.trips, controller, &BreakerRecord::Trip::controller);
    if (trip == record_.trips.end())
        return Refusal{"breaker", controller.serial, "has not tripped", RefusalKind::absent};
    const BreakerRecord::Trip kept = *trip;
    record_.trips.erase(trip);
    auto written = save();
    if (!written) // Else a restart would find it tripped again, and nobody would know why.
        record_.trips.push_back(kept);
    return written;
}

Result<void> BreakerStore::begin_trial(const ControllerId& controller)
{
    const std::lock_guard lock(mutex_);
    if (!record_.on_trial(controller, boot_id_)) {
        std::erase_if(record_.trials, [&](const BreakerRecord::Trial& t) { return t.controller == controller; });
        record_.trials.push_back({controller, boot_id_, false});
        saved_ = false;
    }
    return saved_ ? Result<void>{} : save();
}

Result<void> BreakerStore::end_trials(std::span<const ControllerId> still_deeper)
{
    const std::lock_guard lock(mutex_);
    if (record_.trials.empty() || unreadable_)
        return {};
    for (BreakerRecord::Trial& trial : record_.trials)
        if (!trial.clean && std::ranges::find(still_deeper, trial.controller) == still_deeper.end()) {
            trial.clean = true;
            saved_ = false;
        }
    return saved_ ? Result<void>{} : save();
}

Result<void> BreakerStore::save()
{
    auto written = path_.empty() || unreadable_ ? Result<void>{} : storage_->replace(path_, format_breaker(record_));
    saved_ = written.has_value();
    return written;
}

} // namespace nvmepolicy
