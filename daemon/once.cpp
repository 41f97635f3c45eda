// SPDX-License-Identifier: LGPL-2.1-or-later
#include "once.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

#include "command_line/usage.h"
#include "host/installation.h"
#include "host/linux_host.h"
#include "host/policy_store.h"
#include "reconcile/round.h"
#include "report/text.h"
#include "simulation/load_drives.h"

namespace nvmepolicy {
namespace {

/// What has to hold before anything is written.
struct Preparation {
    std::optional<InstanceLock> lock;
    std::unique_ptr<LedgerStore> ledger;
    std::optional<Refusal> refusal;
};

std::string ledger_path(const Installation& here)
{
    return here.runtime_directory + "/originals.json";
}

Preparation prepare(const Installation& here, bool to_write)
{
    Preparation p;
    if (to_write) {
        if (::geteuid() != 0) {
            p.refusal = Refusal{"nvmepolicyd", "", "must be root to change a drive; --dry-run looks only", RefusalKind::denied};
            return p;
        }
        if (const auto writable = check_sysfs_writable(); !writable) {
            p.refusal = writable.error();
            return p;
        }
        auto lock = InstanceLock::take(here.runtime_directory);
        if (!lock) {
            p.refusal = lock.error();
            return p;
        }
        p.lock.emplace(*std::move(lock));
    }
    auto ledger = LedgerStore::open(ledger_path(here));
    if (ledger)
        p.ledger = *std::move(ledger);
    else
        p.refusal = ledger.error();
    return p;
}

/// Where the controllers are, and where their history is kept.
struct Stage {
    std::unique_ptr<Host> host;
    Preparation preparation;
};

std::optional<Stage> set_stage(const Options& options, bool to_write, const Log& log)
{
    Stage stage;
    if (options.simulate) {
        LoadedDrives drives = load_drives(*options.simulate);
        for (const Refusal& error : drives.errors)
            log.say(LogLevel::error, error.text());
        if (!drives.host)
            return std::nullopt;
        stage.host = std::move(drives.host);
        stage.preparation.ledger = std::make_unique<LedgerStore>();
        return stage;
    }
    const Installation here = this_installation();
    stage.preparation = prepare(here, to_write);
    if (stage.preparation.refusal) {
        log.say(LogLevel::error, stage.preparation.refusal->text());
        return std::nullopt;
    }
    stage.host = std::make_unique<LinuxHost>(patience_beyond_the_kernel, here.device_program());
    return stage;
}

void log_outcome(const Outcome& o, const Log& log)
{
    for (const Change& change : o.plan.changes) {
        const auto& c = std::get<ToleranceChange>(change);
        log.say(LogLevel::info, fmt::format("{}: latency tolerance {} -> {}{} ({}): {}; {}", o.name, c.from.kernel_text(),
                                            c.through ? c.through->kernel_text() + " -> " : "", c.to.kernel_text(), c.origin,
                                            c.reason, o.applied ? o.verdict.reason : "not applied"));
    }
    for (const std::string& line : o.explanation)
        log.say(LogLevel::debug, o.name + ": " + line);
}

/// A look that found everything it asked for has not failed because it would change something.
bool looked_well(const Outcome& o)
{
    return !o.error && o.verdict.agreement != Agreement::unread;
}

const char* word(Restored::Result result)
{
    switch (result) {
    case Restored::Result::put_back: return "put back";
    case Restored::Result::already: return "was there already";
    case Restored::Result::left_to_another: return "not put back, somebody else has written since";
    case Restored::Result::gone: return "not put back, the controller has left";
    case Restored::Result::failed: break;
    }
    return "NOT put back";
}

} // namespace

int run_once(const Options& options, const Log& log)
{
    PolicyReading reading = load_policy({.vendor_directory = this_installation().vendor_directory}, options.config);
    for (const Refusal& error : reading.errors)
        log.say(LogLevel::error, error.text());
    if (!reading.errors.empty())
        return exit_usage;

    const bool dry_run = options.dry_run || reading.policy.daemon.dry_run.value;
    auto stage = set_stage(options, !dry_run, log);
    if (!stage)
        return exit_failed;

    const Round round =
        run_round(*stage->host, reading.policy, *stage->preparation.ledger, dry_run ? Intent::look : Intent::reconcile);
    const bool simulated = stage->host->simulated();
    if (!dry_run)
        for (const Outcome& o : round.outcomes)
            log_outcome(o, log);
    fmt::print("{}", status_text(round, simulated, style_of_stdout()));
    if (dry_run)
        fmt::print("\nDRY RUN, nothing was changed. A run would change:\n{}", plan_text(round, simulated));

    const bool well = std::ranges::all_of(
        round.outcomes, [&](const Outcome& o) { return o.gone() || (dry_run ? looked_well(o) : o.in_order()); });
    return well && round.complaints.empty() ? exit_done : exit_failed;
}

int run_restore(const Log& log)
{
    const Installation here = this_installation();
    Preparation preparation = prepare(here, true);
    if (preparation.refusal) {
        log.say(LogLevel::error, preparation.refusal->text());
        return exit_failed;
    }
    LinuxHost host(patience_beyond_the_kernel, here.device_program());
    int code = exit_done;
    for (const Restored& r : restore(host, *preparation.ledger)) {
        const bool failed = r.result == Restored::Result::failed;
        log.say(failed ? LogLevel::error : LogLevel::info,
                fmt::format("{}: original latency tolerance {} {}{}{}", r.name, r.first.kernel_text(), word(r.result),
                            r.found ? " (found " + r.found->kernel_text() + ")" : "", r.error ? ": " + r.error->text() : ""));
        if (failed)
            code = exit_failed;
    }
    return code;
}

} // namespace nvmepolicy
