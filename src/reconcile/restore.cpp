// SPDX-License-Identifier: LGPL-2.1-or-later
#include <map>

#include "host/apply.h"
#include "host/observe.h"
#include "reconcile.h"

namespace nvmepolicy {
namespace {

/// Is not there, as opposed to: could not be read just now.
bool absent(const Refusal& refusal)
{
    return refusal.kind == RefusalKind::gone || refusal.kind == RefusalKind::absent;
}

/// Who is there, under which name. Names are not identities.
struct Present {
    std::map<ControllerId, std::string> names;
    std::optional<Refusal> unknown; ///< somebody is there who could not be asked for the identity
};

Result<Present> who_is_there(Host& host)
{
    const auto names = controller_names(host);
    if (!names)
        return names.error();
    Present present;
    for (const std::string& name : *names) {
        const auto directory = host.open_directory("class/nvme/" + name);
        const auto identity = directory ? observe_identity(**directory) : Result<ControllerId>(directory.error());
        if (identity)
            present.names.try_emplace(*identity, name);
        else if (!absent(identity.error()))
            present.unknown = identity.error();
    }
    return present;
}

/// The controller of an entry. None only when every controller that is there is known to be another one.
Result<std::optional<Sighting>> find_controller(Host& host, const Present& present, const ControllerId& id)
{
    const auto found = present.names.find(id);
    if (found == present.names.end())
        return present.unknown ? Result<std::optional<Sighting>>(*present.unknown) : std::optional<Sighting>{};
    auto directory = host.open_directory("class/nvme/" + found->second);
    if (!directory)
        return directory.error();
    auto sighting = observe_tolerance(host, *std::move(directory), found->second);
    if (!sighting)
        return sighting.error();
    return std::optional<Sighting>(*std::move(sighting));
}

Restored restore_entry(Host& host, const Present& there, LedgerStore& ledger, const LedgerEntry& entry)
{
    Restored restored{entry.controller, entry.name, Restored::Result::failed, entry.original(), {}, {}};
    const auto ended = [&](const Refusal& refusal) {
        restored.error = refusal;
        if (absent(refusal))
            restored.result = Restored::Result::gone;
        return restored;
    };
    auto found = find_controller(host, there, entry.controller);
    if (!found)
        return ended(found.error());
    // A new controller object of that identity has never held anything of ours.
    if (!found->has_value() || (**found).controller.object != entry.object || (**found).controller.id != entry.controller) {
        restored.result = Restored::Result::gone;
        return restored;
    }
    Sighting& sighting = **found;
    Controller& controller = sighting.controller;
    restored.name = controller.name;
    if (!controller.tolerance)
        return ended(controller.tolerance.error());
    if (!controller.tolerance->has_value()) { // Firmware or quirk took the file away, and our value with it.
        restored.result = Restored::Result::gone;
        return restored;
    }
    const LatencyTolerance present = **controller.tolerance;
    restored.found = present;
    if (present == entry.original()) {
        restored.result = Restored::Result::already;
        return restored;
    }
    if (!entry.is_ours(present)) {
        restored.result = Restored::Result::left_to_another;
        return restored;
    }
    ToleranceChange change;
    change.controller = entry.controller;
    change.object = entry.object;
    change.name = controller.name;
    change.from = present;
    change.to = entry.original();
    change.origin = "restore";
    change.reason = "the value found before our first write";
    // A full disk does not keep a drive from its original. After a crash before the end, that is found there already.
    static_cast<void>(ledger.intend(change));
    const auto written = apply(change, sighting);
    ledger.abandon(change); // What is put back never becomes ours.
    controller.tolerance = read_tolerance(sighting);
    const auto& now = controller.tolerance;
    if (!now && absent(now.error()))
        return ended(now.error());
    if (!written)
        return ended(written.error());
    if (!now)
        return ended(now.error());
    if (now->has_value() && **now == entry.original()) {
        restored.result = Restored::Result::put_back;
        return restored;
    }
    return ended(Refusal{controller.name + ": " + tolerance_attribute, now->has_value() ? (**now).kernel_text() : std::string{},
                         "was written " + entry.original().kernel_text() + " and reads otherwise", RefusalKind::failed});
}

} // namespace

std::vector<Restored> restore(Host& host, LedgerStore& ledger, std::size_t threads)
{
    std::vector<LedgerEntry> entries;
    for (auto& [controller, entry] : ledger.snapshot().entries)
        entries.push_back(std::move(entry));
    const auto there = who_is_there(host);
    std::vector<Restored> all(entries.size());
    const auto restore_one = [&](std::size_t i) {
        const LedgerEntry& entry = entries[i];
        all[i] = there ? restore_entry(host, *there, ledger, entry)
                       : Restored{entry.controller, entry.name, Restored::Result::failed, entry.original(), {}, there.error()};
    };
    for_each_in_parallel(all.size(), restore_one, threads);
    std::vector<ControllerId> done;
    for (const Restored& one : all)
        if (one.result != Restored::Result::failed)
            done.push_back(one.controller);
    if (done.empty())
        return all;
    if (const auto forgotten = ledger.forget(done); !forgotten)
        for (Restored& one : all)
            if (one.result != Restored::Result::failed) {
                one.result = Restored::Result::not_forgotten;
                one.error = forgotten.error();
            }
    return all;
}

std::vector<ControllerId> not_put_back(const std::vector<Restored>& all)
{
    std::vector<ControllerId> controllers;
    for (const Restored& one : all)
        if (one.result == Restored::Result::failed)
            controllers.push_back(one.controller);
    return controllers;
}

} // namespace nvmepolicy
