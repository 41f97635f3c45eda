// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>

#include "host/apply.h"
#include "host/observe.h"
#include "reconcile.h"

namespace nvmepolicy {
namespace {

/// The controller of an entry, wherever it is now. Names are not identities.
Result<std::optional<Sighting>> find_controller(Host& host, const ControllerId& id)
{
    const auto names = controller_names(host);
    if (!names)
        return names.error();
    for (const std::string& name : *names) {
        const auto directory = host.open_directory("class/nvme/" + name);
        if (!directory)
            continue;
        const auto identity = observe_identity(**directory);
        if (!identity || *identity != id)
            continue;
        auto sighting = observe_controller(host, name);
        if (sighting && sighting->controller.id == id)
            return std::optional<Sighting>(*std::move(sighting));
        if (!sighting && sighting.error().kind != RefusalKind::gone && sighting.error().kind != RefusalKind::absent)
            return sighting.error();
    }
    return std::optional<Sighting>{};
}

Restored restore_entry(Host& host, LedgerStore& ledger, const LedgerEntry& entry)
{
    Restored restored{entry.name, Restored::Result::failed, entry.first, {}, {}};
    auto sighting = find_controller(host, entry.controller);
    if (!sighting) {
        restored.error = sighting.error();
        return restored;
    }
    if (!sighting->has_value()) {
        restored.result = Restored::Result::gone;
        return restored;
    }
    Controller& controller = (*sighting)->controller;
    restored.name = controller.name;
    if (!controller.tolerance) {
        restored.error = controller.tolerance.error();
        restored.result = restored.error->kind == RefusalKind::gone ? Restored::Result::gone : Restored::Result::failed;
        return restored;
    }
    if (!controller.tolerance->has_value()) { // Firmware or quirk took the file away, and our value with it.
        restored.result = Restored::Result::gone;
        return restored;
    }
    const LatencyTolerance found = **controller.tolerance;
    restored.found = found;
    if (found == entry.first) {
        restored.result = Restored::Result::already;
        return restored;
    }
    if (!entry.is_ours(found)) {
        restored.result = Restored::Result::left_to_another;
        return restored;
    }
    const ToleranceChange change{
        entry.controller, controller.name, found, entry.first, {}, "restore", "the value found before our first write"};
    if (auto announced = ledger.intend(change); !announced) {
        restored.error = announced.error();
        return restored;
    }
    const auto written = apply(change, **sighting);
    observe_apst(**sighting);
    const auto& now = (*sighting)->controller.tolerance;
    if ((!written && written.error().kind == RefusalKind::gone) || (!now && now.error().kind == RefusalKind::gone)) {
        restored.result = Restored::Result::gone;
        return restored;
    }
    if (!written) {
        restored.error = written.error();
        return restored;
    }
    if (now && now->has_value() && **now == entry.first) {
        restored.result = Restored::Result::put_back;
        return restored;
    }
    restored.error =
        now ? Refusal{controller.name + ": " + tolerance_attribute, now->has_value() ? (**now).kernel_text() : std::string{},
                      "was written " + entry.first.kernel_text() + " and reads otherwise", RefusalKind::failed}
            : now.error();
    return restored;
}

} // namespace

std::vector<Restored> restore(Host& host, LedgerStore& ledger)
{
    std::vector<Restored> all;
    for (const LedgerEntry& entry : ledger.snapshot().entries) {
        Restored restored = restore_entry(host, ledger, entry);
        if (restored.result != Restored::Result::failed)
            if (const auto forgotten = ledger.forget(entry.controller); !forgotten) {
                restored.result = Restored::Result::failed;
                restored.error = forgotten.error();
            }
        all.push_back(std::move(restored));
    }
    return all;
}

} // namespace nvmepolicy
