// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reconcile.h"

#include "host/apply.h"
#include "host/observe.h"

namespace nvmepolicy {
namespace {

std::span<const MeasuredWake> measured_of(const Circumstances& now, const ControllerId& id)
{
    const auto found = now.measured.find(id);
    return found == now.measured.end() ? std::span<const MeasuredWake>{} : found->second;
}

/// Decides and verifies from the facts in the outcome.
void judge(Outcome& outcome, const Circumstances& now, const LedgerStore& ledger)
{
    const Controller& controller = *outcome.controller;
    const auto entry = ledger.find(controller.id);
    outcome.policy = policy_for(now.policy, controller);
    const ApstQuestion question{
        controller, now.machine, outcome.policy, now.wish, measured_of(now, controller.id), entry ? &*entry : nullptr};
    outcome.decision = decide_apst(question);
    outcome.verdict = verify_apst(question, outcome.decision);
    outcome.plan = plan_apst(question, outcome.decision, outcome.verdict);
    outcome.explanation = explain_apst(question, outcome.decision, outcome.verdict);
}

Result<Sighting> observe_and_judge(Host& host, const Circumstances& now, const LedgerStore& ledger, Outcome& outcome)
{
    auto sighting = observe_controller(host, outcome.name);
    if (!sighting) {
        outcome.error = sighting.error();
        return sighting;
    }
    outcome.controller = sighting->controller;
    judge(outcome, now, ledger);
    return sighting;
}

/// Announces, writes, reads back, confirms. Nothing before the announcement has changed the machine.
Result<void> carry_out(const ToleranceChange& change, Sighting& sighting, const Circumstances& now, LedgerStore& ledger)
{
    if (auto announced = ledger.intend(change); !announced)
        return announced;
    auto written = apply(change, sighting);
    observe_apst(sighting);
    const auto& found = sighting.controller.tolerance;
    if (!found && found.error().kind == RefusalKind::gone)
        return found.error();
    if (!written)
        return written;
    if (!found)
        return found.error();
    if (!found->has_value())
        return Refusal{change.name + ": " + tolerance_attribute, "", "vanished after the write", RefusalKind::gone};
    return ledger.confirm(change, now.machine.apst);
}

} // namespace

bool Outcome::gone() const
{
    return (error && error->kind == RefusalKind::gone) || (!controller && error && error->kind == RefusalKind::absent)
           || (controller && controller->state == ControllerState::deleting);
}

bool Outcome::in_order() const
{
    if (error)
        return false;
    if (decision.mode == ManageMode::observe && decision.support == ApstSupport::supported)
        return true;
    return verdict.in_order();
}

Outcome look(Host& host, const std::string& name, const Circumstances& now, const LedgerStore& ledger)
{
    Outcome outcome;
    outcome.name = name;
    static_cast<void>(observe_and_judge(host, now, ledger, outcome));
    return outcome;
}

Outcome reconcile(Host& host, const std::string& name, const Circumstances& now, LedgerStore& ledger)
{
    Outcome outcome;
    outcome.name = name;
    auto sighting = observe_and_judge(host, now, ledger, outcome);
    if (!sighting)
        return outcome;

    // The first round writes what is wanted, the second repairs a table that did not follow; there is no third.
    Plan done;
    for (int round = 0; round < 2 && !outcome.plan.empty(); ++round) {
        for (const Change& change : outcome.plan.changes) {
            const auto result = carry_out(std::get<ToleranceChange>(change), *sighting, now, ledger);
            done.changes.push_back(change);
            if (!result)
                outcome.error = result.error();
        }
        outcome.applied = !outcome.error;
        outcome.controller = sighting->controller;
        judge(outcome, now, ledger);
        const bool was_repair = std::get<ToleranceChange>(done.changes.back()).through.has_value();
        if (outcome.error || was_repair || outcome.verdict.agreement != Agreement::table_differs)
            break;
    }
    outcome.plan = std::move(done);
    return outcome;
}

} // namespace nvmepolicy
