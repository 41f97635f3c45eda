// SPDX-License-Identifier: LGPL-2.1-or-later
#include "round.h"

#include <atomic>
#include <thread>

#include "host/observe.h"

namespace nvmepolicy {
namespace {

/// Threads only wait for their drive, so it is the number of sick drives that counts, not of processors.
constexpr std::size_t most_workers = 16;

} // namespace

Round run_round(Host& host, const Policy& policy, LedgerStore& ledger, Intent intent, const std::optional<std::string>& only)
{
    Round round;
    round.circumstances.policy = policy;
    round.circumstances.wish.profile = policy.daemon.profile.value;
    round.circumstances.machine = observe_machine(host, round.complaints);

    std::vector<std::string> names;
    if (only)
        names.push_back(*only);
    else if (auto found = controller_names(host))
        names = *std::move(found);
    else
        round.complaints.push_back(found.error());

    round.outcomes.resize(names.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < names.size(); i = next++)
            round.outcomes[i] = intent == Intent::look ? look(host, names[i], round.circumstances, ledger)
                                                       : reconcile(host, names[i], round.circumstances, ledger);
    };
    {
        std::vector<std::jthread> workers;
        for (std::size_t i = 1; i < std::min(names.size(), most_workers); ++i)
            workers.emplace_back(work);
        work();
    }
    round.subsystems = observe_subsystems(host);
    return round;
}

} // namespace nvmepolicy
