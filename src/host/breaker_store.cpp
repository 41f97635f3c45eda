// SPDX-License-Identifier: LGPL-2.1-or-later
#include "breaker_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <sys/random.h>
#include <utility>

#include "errno_refusal.h"
#include "wall_clock.h"

namespace nvmepolicy {
namespace {

/// A token that lasts as long as /run does: one boot. The kernel's own boot id is out of sight in a sandbox. Only where there
/// is none it is another boot; with any other answer it may be this one, and its trials must not be taken for those of a crash.
Result<std::string> boot_token(const std::string& runtime_directory, Storage& storage)
{
    const std::string path = runtime_directory + "/boot";
    auto known = storage.read(path, 64);
    if (known && known->empty())
        return Refusal{path, "", "is empty", RefusalKind::invalid};
    if (known || known.error().kind != RefusalKind::absent)
        return known;
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
    const auto text = storage.read(path, largest_breaker_record);
    if (text)
        return parse_breaker(path, *text);
    return text.error().kind == RefusalKind::absent ? Result<BreakerRecord>(BreakerRecord{})
                                                    : Result<BreakerRecord>(text.error());
}

bool may_pass(const Refusal& refusal)
{
    return refusal.kind == RefusalKind::try_later || refusal.kind == RefusalKind::timed_out;
}

} // namespace

std::unique_ptr<BreakerStore> BreakerStore::read(const std::string& directory, std::optional<Refusal>& complaint)
{
    auto store = std::make_unique<BreakerStore>();
    auto record = read_record(directory + "/breaker.json", file_storage());
    if (record)
        store->record_ = *std::move(record);
    else {
        store->unreadable_ = record.error();
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
    store->runtime_directory_ = runtime_directory;
    if (const auto made = storage.make_directory(directory); !made)
        complaint = made.error();
    if (auto found = store->find()) {
        store->boot_id_ = std::move(found->boot_id);
        store->record_ = std::move(found->record);
    } else {
        store->unreadable_ = found.error();
        Refusal refusal = found.error();
        refusal.reason += ". Until that is mended, no drive is let into deeper sleep than at boot";
        complaint = refusal;
    }
    return store;
}

Result<BreakerStore::Found> BreakerStore::find() const
{
    auto record = read_record(path_, *storage_);
    if (!record)
        return record.error();
    auto token = boot_token(runtime_directory_, *storage_);
    if (!token)
        return token.error();
    return Found{*token, after_boot(*std::move(record), *token, seconds_since_1970())};
}

void BreakerStore::recover()
{
    Lock lock(mutex_);
    recover(lock);
}

void BreakerStore::recover(Lock& lock)
{
    if (!unreadable_ || path_.empty() || std::exchange(recovering_, true))
        return;
    lock.unlock();
    auto found = find();
    lock.lock();
    recovering_ = false;
    if (!found) {
        unreadable_ = found.error();
        return;
    }
    boot_id_ = std::move(found->boot_id);
    // What has tripped meanwhile is not on disk yet; an earlier reason is the better one.
    found->record.trips.merge(record_.trips);
    record_ = std::move(found->record);
    unreadable_.reset();
}

std::optional<std::string> BreakerStore::tripped(const ControllerId& controller) const
{
    const Lock lock(mutex_);
    if (unreadable_)
        return "the breaker's record cannot be read: " + unreadable_->text();
    const BreakerRecord::Trip* trip = record_.trip_of(controller);
    return trip ? std::optional{trip->reason} : std::nullopt;
}

Result<void> BreakerStore::trip(const ControllerId& controller, const std::string& reason)
{
    Lock lock(mutex_);
    recover(lock);
    if (record_.trips.try_emplace(controller, BreakerRecord::Trip{reason, seconds_since_1970()}).second)
        unsaved_.insert(controller);
    return save(lock, controller);
}

Result<void> BreakerStore::clear(const ControllerId& controller)
{
    Lock lock(mutex_);
    recover(lock);
    if (unreadable_)
        return *unreadable_;
    auto trip = record_.trips.extract(controller);
    if (!trip)
        return Refusal{"breaker", controller.serial, "has not tripped", RefusalKind::absent};
    unsaved_.insert(controller);
    auto saved = save(lock, controller);
    if (!saved) // Else a restart would find it tripped again, and nobody would know why.
        record_.trips.insert(std::move(trip));
    return saved;
}

Result<void> BreakerStore::begin_trial(const ControllerId& controller)
{
    Lock lock(mutex_);
    if (unreadable_)
        return *unreadable_;
    if (!record_.on_trial(controller, boot_id_)) {
        record_.trials[controller] = {boot_id_, false};
        unsaved_.insert(controller);
    }
    return save(lock, controller);
}

Result<void> BreakerStore::end_trials(std::span<const ControllerId> still_deeper)
{
    Lock lock(mutex_);
    recover(lock);
    if (unreadable_)
        return {};
    for (auto& [controller, trial] : record_.trials)
        if (!trial.clean && std::ranges::find(still_deeper, controller) == still_deeper.end()) {
            trial.clean = true;
            unsaved_.insert(controller);
        }
    return save_all(lock);
}

Result<void> BreakerStore::catch_up(const ControllerId& controller)
{
    Lock lock(mutex_);
    if (unreadable_)
        return may_pass(*unreadable_) ? Result<void>(*unreadable_) : Result<void>{};
    if (record_.trip_of(controller))
        if (auto saved = save(lock, controller); !saved)
            return saved;
    // One that has left has no looks of its own. Nobody else waits for its line.
    if (writing_.empty() && std::ranges::any_of(unsaved_, [this](const auto& id) { return record_.trip_of(id) != nullptr; }))
        static_cast<void>(write(lock));
    return {};
}

/// Whoever comes while somebody writes shares the next write.
Result<void> BreakerStore::save(Lock& lock, const ControllerId& controller)
{
    while (unsaved_.contains(controller) || writing_.contains(controller)) {
        if (writing_.empty())
            return write(lock);
        written_.wait(lock);
    }
    return {};
}

Result<void> BreakerStore::save_all(Lock& lock)
{
    while (!unsaved_.empty() || !writing_.empty()) {
        if (writing_.empty())
            return write(lock);
        written_.wait(lock);
    }
    return {};
}

/// Of every controller of which the file says something else.
Result<void> BreakerStore::write(Lock& lock)
{
    if (path_.empty() || unreadable_) {
        // Without a file nothing is ever missing from it; a damaged one is evidence, and stays as it is.
        if (path_.empty())
            unsaved_.clear();
        return {};
    }
    writing_ = std::exchange(unsaved_, {});
    std::string lines;
    for (const ControllerId& controller : writing_)
        lines += format_breaker_line(record_, controller);
    const bool anew = !file_ || size_ + lines.size() > largest_breaker_record;
    const std::string everything = anew ? format_breaker(record_) : std::string{};
    lock.unlock();
    auto written = put(lines, everything);
    lock.lock();
    if (!written)
        unsaved_.merge(writing_);
    writing_.clear();
    written_.notify_all();
    const bool replaced = !written && !anew && written.error().kind == RefusalKind::gone;
    return replaced ? write(lock) : written; // anew, in the place of what somebody else has put there
}

/// Appends the lines, or puts everything in the place of what there is, and has it on disk.
Result<void> BreakerStore::put(const std::string& lines, const std::string& everything)
{
    if (everything.empty()) {
        auto appended = file_->append(lines);
        if (appended)
            appended = file_->sync();
        if (appended) {
            size_ += lines.size();
            return {};
        }
        // What a failed fsync leaves behind is not written by a later one.
        file_.reset();
        return appended;
    }
    if (everything.size() > largest_breaker_record)
        return Refusal{path_, std::to_string(everything.size()) + " bytes", "larger than any record that is read",
                       RefusalKind::failed};
    auto begun = storage_->begin(path_, everything);
    if (!begun)
        return begun.error();
    file_ = *std::move(begun);
    size_ = everything.size();
    return {};
}

} // namespace nvmepolicy
