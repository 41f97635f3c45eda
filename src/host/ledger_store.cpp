// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ledger_store.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "errno_refusal.h"
#include "wall_clock.h"

namespace nvmepolicy {
namespace {

/// Admits less than the other.
bool lower(const LatencyTolerance& a, const LatencyTolerance& b)
{
    return a.limit() && (!b.limit() || *a.limit() < *b.limit());
}

/// From now on these may be found in the file.
void announce(const ToleranceChange& change, LedgerEntry& entry)
{
    const auto add = [&](const LatencyTolerance& value) {
        if (std::ranges::find(entry.intended, value) == entry.intended.end())
            entry.intended.push_back(value);
    };
    if (change.through)
        add(*change.through);
    add(change.to);
}

/// With more, two of three lines are of no use any more. Writing it anew then costs less than those lines did.
std::size_t most_lines(std::size_t entries)
{
    return 64 + 3 * entries;
}

} // namespace

Result<std::unique_ptr<LedgerStore>> LedgerStore::open(std::string path, Storage& storage)
{
    auto store = std::make_unique<LedgerStore>();
    store->path_ = std::move(path);
    store->storage_ = &storage;
    const auto text = storage.read(store->path_, largest_ledger);
    if (!text && text.error().kind != RefusalKind::absent)
        return text.error();
    if (text) {
        auto ledger = parse_ledger(store->path_, *text);
        if (!ledger) {
            Refusal refusal = ledger.error();
            refusal.reason += ". It is the record of what the drives had before us, so nothing is written while it cannot be "
                              "read. Move it away to start anew from the present values";
            return refusal;
        }
        store->ledger_ = *std::move(ledger);
    }
    return store;
}

Ledger LedgerStore::snapshot() const
{
    const std::lock_guard lock(mutex_);
    return ledger_;
}

std::optional<LedgerEntry> LedgerStore::find(const ControllerId& controller) const
{
    const std::lock_guard lock(mutex_);
    const LedgerEntry* entry = ledger_.find(controller);
    return entry ? std::optional{*entry} : std::nullopt;
}

Result<void> LedgerStore::intend(const ToleranceChange& change)
{
    const std::lock_guard lock(mutex_);
    const LedgerEntry* const known = ledger_.find(change.controller);
    const std::optional<LedgerEntry> before = known ? std::optional{*known} : std::nullopt;
    // Whoever is late, and means an object that has left, must not take the record from the one that came after it.
    if (before && before->object > change.object)
        return Refusal{change.name, change.to.kernel_text(), "not written, the controller has left and come back meanwhile",
                       RefusalKind::gone};
    LedgerEntry& entry = ledger_.at(change.controller);
    if (!before || before->object != change.object) { // A new controller object starts with the kernel's default.
        entry = LedgerEntry{};
        entry.controller = change.controller;
        entry.object = change.object;
        entry.first = change.from;
    }
    // Where somebody else had lowered the value, theirs is as deep as we may leave the drive.
    if (!entry.is_ours(change.from) && lower(change.from, entry.original()))
        entry.lowered = change.from;
    entry.name = change.name;
    entry.origin = change.origin;
    announce(change, entry);
    const bool was_saved = unsaved_.insert(change.controller).second;
    const auto saved = save();
    if (saved) {
        open_.emplace(change.controller, change);
        return {};
    }
    if (was_saved)
        unsaved_.erase(change.controller);
    if (before)
        entry = *before;
    else
        ledger_.erase(change.controller);
    Refusal refusal = saved.error();
    refusal.reason += "; " + change.name + " is not written to before it is on record what it had";
    refusal.kind = RefusalKind::try_later;
    return refusal;
}

Result<void> LedgerStore::confirm(const ToleranceChange& change, const ApstParameters& parameters)
{
    const std::lock_guard lock(mutex_);
    close(change);
    const LedgerEntry* const known = ledger_.find(change.controller);
    if (!known || known->object != change.object)
        return {}; // restored and forgotten meanwhile, or about a later object by now
    LedgerEntry& entry = ledger_.at(change.controller);
    entry.intended.clear();
    const auto [first, last] = open_.equal_range(change.controller);
    for (auto other = first; other != last; ++other)
        announce(other->second, entry);
    entry.ours = change.to;
    entry.programmed_with = parameters;
    entry.written_at = seconds_since_1970();
    unsaved_.insert(change.controller);
    return save();
}

void LedgerStore::abandon(const ToleranceChange& change)
{
    const std::lock_guard lock(mutex_);
    close(change);
}

void LedgerStore::close(const ToleranceChange& change)
{
    const auto [first, last] = open_.equal_range(change.controller);
    const auto found = std::find_if(first, last, [&](const auto& open) { return open.second == change; });
    if (found != last)
        open_.erase(found);
}

Result<void> LedgerStore::forget(std::span<const ControllerId> controllers)
{
    const std::lock_guard lock(mutex_);
    for (const ControllerId& controller : controllers) {
        ledger_.erase(controller);
        unsaved_.insert(controller);
    }
    return save();
}

Result<void> LedgerStore::catch_up(const ControllerId& controller)
{
    const std::lock_guard lock(mutex_);
    return unsaved_.contains(controller) ? save() : Result<void>{};
}

/// Of every controller whose latest change is not in the file yet.
Result<void> LedgerStore::save()
{
    if (path_.empty()) {
        unsaved_.clear();
        return {};
    }
    if (ledger_.entries.empty()) {
        auto removed = storage_->remove(path_);
        if (removed) {
            file_.reset();
            unsaved_.clear();
        }
        return removed;
    }
    const std::string text = unsaved_lines();
    if (!file_ || size_ + text.size() > largest_ledger)
        return rewrite();
    auto appended = file_->append(text);
    if (!appended)
        return appended.error().kind == RefusalKind::gone ? rewrite() : appended;
    size_ += text.size();
    lines_ += unsaved_.size();
    unsaved_.clear();
    // It is recorded already, so a refusal does no harm.
    if (lines_ > most_lines(ledger_.entries.size()))
        static_cast<void>(rewrite());
    return {};
}

std::string LedgerStore::unsaved_lines() const
{
    std::string text;
    std::vector<ControllerId> forgotten;
    for (const ControllerId& controller : unsaved_) {
        if (const LedgerEntry* const entry = ledger_.find(controller))
            text += format_entry(*entry);
        else
            forgotten.push_back(controller);
    }
    return forgotten.empty() ? text : text + format_forgotten(forgotten);
}

Result<void> LedgerStore::rewrite()
{
    const std::string text = format_ledger(ledger_);
    if (text.size() > largest_ledger)
        return Refusal{path_, std::to_string(text.size()) + " bytes", "larger than any ledger that is read",
                       RefusalKind::try_later};
    auto begun = storage_->begin(path_, text);
    if (!begun)
        return begun.error();
    file_ = *std::move(begun);
    size_ = text.size();
    lines_ = ledger_.entries.size();
    unsaved_.clear();
    return {};
}

Result<InstanceLock> InstanceLock::take(const std::string& runtime_directory)
{
    if (const auto made = make_readable_directory(runtime_directory); !made)
        return made.error();
    const std::string path = runtime_directory + "/lock";
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd)
        return errno_refusal(path, "", errno);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
        return InstanceLock(std::move(fd));
    if (errno == EWOULDBLOCK)
        return Refusal{path, "", "another nvmepolicyd is running; only one may write at a time", RefusalKind::try_later};
    return errno_refusal(path, "", errno);
}

} // namespace nvmepolicy
