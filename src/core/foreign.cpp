// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/foreign.h"

namespace nvmepolicy {
namespace {

/// 0, 2 s, 8 s: time for somebody who writes once at each event to be done with it.
Milliseconds pause_before(int fight)
{
    return fight == 0 ? Milliseconds{0} : Milliseconds{500} * (1 << (2 * fight));
}

bool is_foreign(const ApstQuestion& q, const ApstDecision& d)
{
    if (d.mode == ManageMode::observe || d.support != ApstSupport::supported || !q.ledger || !q.ledger->ours)
        return false;
    const LatencyTolerance& found = **q.controller.tolerance;
    // The file comes back reading `auto` when a reset took APST support away and a later one brought it back.
    if (found.is_automatic())
        return false;
    return !found.same_effect(d.tolerance) && !q.ledger->is_ours(found);
}

/// What a restore puts back, in a session that has found nothing else there yet.
bool was_restored(const ApstQuestion& q, SessionMemory& memory)
{
    if (q.ledger && q.controller.tolerance && q.controller.tolerance->has_value()
        && **q.controller.tolerance != q.ledger->original())
        memory.may_be_restored = false;
    return memory.may_be_restored;
}

} // namespace

ForeignVerdict judge_foreign(const ApstQuestion& q, const ApstDecision& d, SessionMemory& memory, Milliseconds now)
{
    const bool restored = was_restored(q, memory);
    if (!is_foreign(q, d) || restored) {
        memory.theirs.reset();
        return {};
    }
    const LatencyTolerance& found = **q.controller.tolerance;
    ForeignVerdict verdict;
    verdict.news = memory.theirs != found;
    if (verdict.news)
        ++memory.foreign_writes;
    memory.theirs = found;

    // A quarrel that was given up stays so; one that ended with ours in the file is forgotten in time.
    const bool given_up = memory.fights >= most_fights;
    if (!given_up && now - memory.last_fight > forget_fights_after)
        memory.fights = 0;
    if (q.policy.apst.on_conflict.value == OnConflict::yield || given_up) {
        verdict.stand = ForeignStand::yield;
        return verdict;
    }
    const Milliseconds next = memory.last_fight + pause_before(memory.fights);
    if (memory.fights > 0 && now < next) {
        verdict.stand = ForeignStand::wait;
        verdict.pause = next - now;
        return verdict;
    }
    verdict.stand = ForeignStand::overwrite;
    return verdict;
}

void note_written(SessionMemory& memory, ForeignStand stand, Milliseconds now)
{
    memory.may_be_restored = false;
    if (stand != ForeignStand::overwrite)
        return;
    ++memory.fights;
    memory.last_fight = now;
}

void forget_stubborn_table(SessionMemory& memory)
{
    memory.stubborn_table.reset();
    memory.stubborn_at.reset();
}

void claim_back(SessionMemory& memory)
{
    memory.theirs.reset();
    memory.may_be_restored = false;
    memory.fights = 0;
    forget_stubborn_table(memory);
}

} // namespace nvmepolicy
