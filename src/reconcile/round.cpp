// SPDX-License-Identifier: LGPL-2.1-or-later
#include "round.h"

#include "host/observe.h"
#include "parallel.h"

namespace nvmepolicy {
Round run_round(Host& host, const Policy& policy, LedgerStore& ledger, const BreakerStore& breaker, Intent intent,
                const std::optional<std::string>& only)
{
    Round round;
    round.circumstances.policy = policy;
    round.circumstances.breaker = &breaker;
    round.circumstances.wish = wish_of(policy);
    round.circumstances.machine = observe_machine(host, round.complaints);

    std::vector<std::string> names;
    if (only)
        names.push_back(*only);
    else if (auto found = controller_names(host))
        names = *std::move(found);
    else
        round.complaints.push_back(found.error());

    round.outcomes.resize(names.size());
    for_each_in_parallel(names.size(), [&](std::size_t i) {
        round.outcomes[i] = intent == Intent::look ? look(host, names[i], round.circumstances, ledger)
                                                   : reconcile(host, names[i], round.circumstances, ledger);
    });
    round.subsystems = observe_subsystems(host);
    return round;
}

} // namespace nvmepolicy
