// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ledger_store.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "errno_refusal.h"
#include "wall_clock.h"

namespace nvmepolicy {
namespace {

/// Admits less than the other.
bool lower(const LatencyTolerance& a, const LatencyTolerance& b)
{
    return a.limit() && (!b.limit() || *a.limit() < *b.limit());
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
    const Ledger before = ledger_;
    const bool known = ledger_.find(change.controller) != nullptr;
    LedgerEntry& entry = ledger_.at(change.controller);
    if (!known || entry.object != change.object) { // A new controller object starts with the kernel's default.
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
    const auto add = [&](const LatencyTolerance& value) {
        if (std::ranges::find(entry.intended, value) == entry.intended.end())
            entry.intended.push_back(value);
    };
    if (change.through)
        add(*change.through);
    add(change.to);
    const auto saved = save();
    if (saved)
        return {};
    ledger_ = before;
    Refusal refusal = saved.error();
    refusal.reason += "; " + change.name + " is not written to before it is on record what it had";
    refusal.kind = RefusalKind::try_later;
    return refusal;
}

Result<void> LedgerStore::confirm(const ToleranceChange& change, const ApstParameters& parameters)
{
    const std::lock_guard lock(mutex_);
    if (!ledger_.find(change.controller))
        return {}; // restored and forgotten meanwhile
    LedgerEntry& entry = ledger_.at(change.controller);
    entry.intended.clear();
    entry.ours = change.to;
    entry.programmed_with = parameters;
    entry.written_at = seconds_since_1970();
    return save();
}

Result<void> LedgerStore::forget(std::span<const ControllerId> controllers)
{
    const std::lock_guard lock(mutex_);
    for (const ControllerId& controller : controllers)
        ledger_.erase(controller);
    return save();
}

Result<void> LedgerStore::save() const
{
    if (path_.empty())
        return {};
    return ledger_.entries.empty() ? storage_->remove(path_) : storage_->replace(path_, format_ledger(ledger_));
}

Result<InstanceLock> InstanceLock::take(const std::string& runtime_directory)
{
    // Others may look: the file mode must not depend on the umask of whoever calls.
    const bool made = ::mkdir(runtime_directory.c_str(), 0755) == 0;
    if ((!made && errno != EEXIST) || (made && ::chmod(runtime_directory.c_str(), 0755) < 0))
        return errno_refusal(runtime_directory, "", errno);
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
