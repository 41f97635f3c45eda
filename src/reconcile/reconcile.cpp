// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reconcile.h"

#include <fmt/format.h>

#include "host/apply.h"
#include "host/observe.h"

namespace nvmepolicy {
namespace {

std::span<const MeasuredWake> measured_of(const Circumstances& now, const ControllerId& id)
{
    const auto found = now.measured.find(id);
    return found == now.measured.end() ? std::span<const MeasuredWake>{} : found->second;
}

/// Lets a running service have its say: what it has seen before, and what somebody else has left in the file.
void consider_session(const ApstQuestion& question, Outcome& o, Session& session)
{
    SessionMemory& memory = session.memory;
    if (memory.object != question.controller.object)
        memory = SessionMemory{.object = question.controller.object};
    if (session.claim)
        claim_back(memory);
    const ForeignVerdict foreign = session.claim ? ForeignVerdict{} : judge_foreign(question, o.decision, memory, session.now);
    if (foreign.stand != ForeignStand::none) {
        o.foreign = foreign;
        o.foreign_value = **question.controller.tolerance;
    }
    if (foreign.stand == ForeignStand::yield || foreign.stand == ForeignStand::wait) {
        o.verdict = {Agreement::left_to_another,
                     fmt::format("somebody else set the tolerance to {}, ours was {}", show(o.foreign_value),
                                 show(o.decision.tolerance)),
                     {}};
        o.plan = {};
    }
    const bool tried_before = memory.stubborn_table && memory.stubborn_at == o.decision.tolerance && question.controller.apst
                              && *question.controller.apst == memory.stubborn_table;
    if (o.verdict.agreement == Agreement::table_differs && tried_before)
        o.plan = {};
}

/// Decides and verifies from the facts in the outcome.
void judge(Outcome& outcome, const Circumstances& now, const LedgerStore& ledger, Session* session)
{
    const Controller& controller = *outcome.controller;
    const auto entry = ledger.find(controller.id);
    const bool about_this_object = entry && entry->object == controller.object;
    outcome.policy = policy_for(now.policy, controller);
    ApstQuestion question{controller,
                          outcome.machine,
                          outcome.policy,
                          now.wish,
                          measured_of(now, controller.id),
                          about_this_object ? &*entry : nullptr};
    if (now.breaker)
        question.breaker = now.breaker->tripped(controller.id);
    question.obey_lower = session == nullptr;
    outcome.decision = decide_apst(question);
    if (controller.identify && controller.tolerance && controller.tolerance->has_value())
        outcome.deeper_than_at_boot =
            question.ledger && question.ledger->is_ours(**controller.tolerance)
            && goes_deeper(**controller.tolerance, question.ledger->first, controller.identify->power_states);
    outcome.verdict = verify_apst(question, outcome.decision);
    outcome.plan = plan_apst(question, outcome.decision, outcome.verdict);
    if (session)
        consider_session(question, outcome, *session);
    outcome.explanation = explain_apst(question, outcome.decision, outcome.verdict);
}

Result<Sighting> observe_and_judge(Host& host, const Circumstances& now, const LedgerStore& ledger, Session* session,
                                   Outcome& outcome)
{
    outcome.machine = now.machine;
    std::vector<Refusal> complaints; // said by whoever looks at the machine as a whole
    observe_parameters(host, outcome.machine, complaints);
    auto sighting = observe_controller(host, outcome.name);
    if (!sighting) {
        outcome.error = sighting.error();
        return sighting;
    }
    outcome.controller = sighting->controller;
    judge(outcome, now, ledger, session);
    return sighting;
}

/// The drop-out of a root drive ends the machine, so the marker has to be on disk before it is deeper than at boot, and while
/// it is.
Result<void> announce_trial(const Outcome& outcome, const Session* session)
{
    if (!session || !session->breaker || !outcome.decision.deeper_than_at_boot)
        return {};
    return session->breaker->begin_trial(outcome.controller->id);
}

bool superseded(const Session* session)
{
    return session && session->wishes && *session->wishes != session->begun_under;
}

/// For people to see; nothing is decided by it yet, so a service does without.
void add_leaves(Sighting& sighting, Outcome& outcome)
{
    observe_leaves(sighting);
    outcome.controller->leaves = std::move(sighting.controller.leaves);
}

/// Writes what has been announced, and reads back.
Result<void> carry_out(const ToleranceChange& change, Sighting& sighting, const Session* session)
{
    auto written = apply(change, sighting, [session] { return !superseded(session); });
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
    return {};
}

} // namespace

bool Outcome::refused(RefusalKind kind) const
{
    if (error && error->kind == kind)
        return true;
    if (!controller)
        return false;
    const auto is = [kind](const auto& fact) { return !fact && fact.error().kind == kind; };
    return is(controller->identify) || is(controller->apst) || is(controller->tolerance);
}

bool Outcome::gone() const
{
    return (error && error->kind == RefusalKind::gone) || (!controller && error && error->kind == RefusalKind::absent)
           || (controller && controller->state == ControllerState::deleting);
}

std::string Outcome::last_error() const
{
    return error ? error->text() : verdict.agreement == Agreement::unread ? verdict.reason : "";
}

bool Outcome::in_order() const
{
    if (error)
        return false;
    if (decision.mode == ManageMode::observe && decision.support == ApstSupport::supported)
        return true;
    return verdict.in_order();
}

Outcome look(Host& host, const std::string& name, const Circumstances& now, const LedgerStore& ledger, Session* session)
{
    Outcome outcome;
    outcome.name = name;
    auto sighting = observe_and_judge(host, now, ledger, session, outcome);
    if (sighting && (!session || session->leaves))
        add_leaves(*sighting, outcome);
    return outcome;
}

Outcome reconcile(Host& host, const std::string& name, const Circumstances& now, LedgerStore& ledger, Session* session)
{
    Outcome outcome;
    outcome.name = name;
    if (session && session->breaker)
        session->breaker->recover();
    auto sighting = observe_and_judge(host, now, ledger, session, outcome);
    if (!sighting)
        return outcome;

    if (const auto recorded = ledger.catch_up(outcome.controller->id); !recorded) {
        outcome.error = recorded.error();
        return outcome;
    }
    if (const auto announced = announce_trial(outcome, session); !announced) {
        outcome.error = announced.error();
        return outcome;
    }

    // The first round writes what is wanted, the second repairs a table that did not follow; there is no third.
    Plan done;
    for (int round = 0; round < 2 && !outcome.plan.empty(); ++round) {
        if (superseded(session)) {
            outcome.superseded = done.empty();
            break;
        }
        const auto change = std::get<ToleranceChange>(outcome.plan.changes.front());
        auto result = ledger.intend(change);
        const bool announced = result.has_value(); // Nothing before that has changed the machine.
        if (announced) {
            result = carry_out(change, *sighting, session);
            if (result && session && round == 0)
                note_written(session->memory, outcome.foreign.stand, session->now);
            if (result)
                result = ledger.confirm(change, outcome.machine.apst);
            else
                ledger.abandon(change);
        }
        if (!result && superseded(session) && done.empty()) {
            outcome.superseded = true;
            break;
        }
        done.changes.emplace_back(change);
        if (!result)
            outcome.error = result.error();
        outcome.applied = !outcome.error;
        outcome.controller = sighting->controller;
        if (session && announced)
            session->claim = false; // From here on the file is ours.
        judge(outcome, now, ledger, session);
        const bool differs = outcome.verdict.agreement == Agreement::table_differs;
        if (session && announced && differs && change.through) {
            session->memory.stubborn_table = *outcome.controller->apst;
            session->memory.stubborn_at = outcome.decision.tolerance;
        }
        if (outcome.error || change.through || !differs)
            break;
    }
    outcome.plan = std::move(done);
    // Last, since the drive must not wait for the disk.
    if (session && session->breaker && !outcome.error)
        if (const auto recorded = session->breaker->catch_up(outcome.controller->id); !recorded)
            outcome.error = recorded.error();
    if (!session || session->leaves)
        add_leaves(*sighting, outcome);
    return outcome;
}

Plan plan_by(const Outcome& seen, const Circumstances& now, const LedgerStore& ledger)
{
    if (!seen.controller)
        return {};
    Outcome outcome = seen;
    Session session;
    session.claim = true;
    judge(outcome, now, ledger, &session);
    return outcome.plan;
}

} // namespace nvmepolicy
