// SPDX-License-Identifier: LGPL-2.1-or-later
#include "once.h"

#include <algorithm>
#include <fmt/format.h>

#include "command_line/usage.h"
#include "host/installation.h"
#include "host/policy_store.h"
#include "reconcile/round.h"
#include "report/json.h"
#include "report/text.h"
#include "stage.h"

namespace nvmepolicy {
namespace {

void log_outcome(const Outcome& o, const Log& log)
{
    for (const Change& change : o.plan.changes)
        log.say(LogLevel::info, change_text(o, std::get<ToleranceChange>(change)));
    for (const std::string& line : o.explanation)
        log.say(LogLevel::debug, o.name + ": " + line);
}

/// A look that found everything it asked for has not failed because it would change something.
bool looked_well(const Outcome& o)
{
    return !o.error && o.verdict.agreement != Agreement::unread;
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
        run_round(*stage->host, reading.policy, *stage->ledger, *stage->breaker, dry_run ? Intent::look : Intent::reconcile);
    const bool simulated = stage->host->simulated();
    if (!dry_run)
        for (const Outcome& o : round.outcomes)
            log_outcome(o, log);
    fmt::print("{}", status_text(status_json(round, simulated), style_of_stdout()));
    if (dry_run)
        fmt::print("\nDRY RUN, nothing was changed. A run would change:\n{}", changes_text(plan_json(round, simulated)));

    const bool well = std::ranges::all_of(
        round.outcomes, [&](const Outcome& o) { return o.gone() || (dry_run ? looked_well(o) : o.in_order()); });
    return well && round.complaints.empty() ? exit_done : exit_failed;
}

int run_restore(const Log& log)
{
    auto stage = set_stage({}, true, log);
    if (!stage)
        return exit_failed;
    const auto all = restore(*stage->host, *stage->ledger);
    if (all.empty())
        log.say(LogLevel::info, "there is nothing to put back");
    bool failed = false;
    for (const Restored& r : all) {
        log.say(r.in_order() ? LogLevel::info : LogLevel::error, restored_text(r));
        failed = failed || !r.in_order();
    }
    // A service that crashed left its trials open, and the machine has survived that.
    if (const auto ended = stage->breaker->end_trials(not_put_back(all)); !ended)
        log.say(LogLevel::error, ended.error().text());
    return failed ? exit_failed : exit_done;
}

} // namespace nvmepolicy
