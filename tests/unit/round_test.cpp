// SPDX-License-Identifier: LGPL-2.1-or-later
// All drives of a machine in one round.
#include "reconcile/round.h"

#include "watched_host.h"

namespace nvmepolicy {
namespace {

TEST(ARound, LooksAtEveryDriveAndWritesToEachOnce)
{
    SimulatedHost simulated;
    for (int i = 0; i < 40; ++i)
        static_cast<void>(simulated.add(i % 2 == 0 ? evo_plus() : bc501()));
    simulated.find("nvme3")->faults["identify"] = refusal_of(RefusalKind::try_later);
    simulated.find("nvme4")->state = ControllerState::dead;
    LedgerStore ledger;
    const Round round = run_round(simulated, {}, ledger, BreakerStore{}, Intent::reconcile);
    ASSERT_EQ(round.outcomes.size(), 40U);
    EXPECT_TRUE(round.complaints.empty());
    EXPECT_EQ(round.subsystems.size(), 40U);
    for (int i = 0; i < 40; ++i) {
        const std::string name = "nvme" + std::to_string(i);
        EXPECT_EQ(round.outcomes[static_cast<std::size_t>(i)].name, name) << "nvme2 before nvme10";
        const bool sick = i == 3 || i == 4;
        EXPECT_EQ(round.outcomes[static_cast<std::size_t>(i)].in_order(), !sick) << name;
        EXPECT_EQ(simulated.find(name)->set_features, sick ? 1 : 2) << name;
    }
    EXPECT_EQ(ledger.snapshot().entries.size(), 38U);
}

TEST(ARound, OfOneDriveLeavesTheOthersAlone)
{
    SimulatedHost simulated;
    static_cast<void>(simulated.add(evo_plus()));
    static_cast<void>(simulated.add(evo_plus()));
    LedgerStore ledger;
    const Round round = run_round(simulated, {}, ledger, BreakerStore{}, Intent::reconcile, "nvme1");
    EXPECT_EQ(round.outcomes.size(), 1U);
    EXPECT_EQ(simulated.find("nvme0")->tolerance, us(100000));
    EXPECT_EQ(simulated.find("nvme1")->tolerance, us(25000));
}

TEST(ARound, WithoutDrivesIsEmpty)
{
    SimulatedHost simulated;
    LedgerStore ledger;
    const Round round = run_round(simulated, {}, ledger, BreakerStore{}, Intent::reconcile);
    EXPECT_TRUE(round.outcomes.empty());
    EXPECT_TRUE(round.complaints.empty());
}

TEST(ARound, OnBatteryTakesTheBoundOnBattery)
{
    SimulatedHost simulated;
    simulated.machine.power_source = PowerSource::battery;
    SimulatedController& drive = simulated.add(evo_plus());
    LedgerStore ledger;
    Policy policy;
    policy.daemon.profile.value = "performance";
    const Round round = run_round(simulated, policy, ledger, BreakerStore{}, Intent::reconcile);
    EXPECT_EQ(round.circumstances.machine.power_source, PowerSource::battery);
    EXPECT_EQ(drive.tolerance, us(10000));
}

} // namespace
} // namespace nvmepolicy
