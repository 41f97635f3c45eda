// SPDX-License-Identifier: LGPL-2.1-or-later
// The real look and reconcile on simulated drives that refuse, vanish and change places.
#include "reconcile_bench.h"
#include "temporary_directory.h"

namespace nvmepolicy {
namespace {

TEST(AReconcile, WritesOnceAndTheDriveFollows)
{
    Bench bench;
    const Outcome outcome = bench.reconcile();
    EXPECT_EQ(bench.host.writes, std::vector<std::string>{"nvme0 25000"});
    EXPECT_EQ(bench.drive.tolerance, us(25000));
    EXPECT_EQ(bench.drive.apst.deepest_state(), 3);
    EXPECT_EQ(bench.drive.set_features, 2) << "one by the probe, one by us";
    EXPECT_EQ(outcome.verdict.agreement, Agreement::verified);
    EXPECT_TRUE(outcome.applied);
    EXPECT_TRUE(outcome.in_order());
    EXPECT_FALSE(outcome.gone());
    EXPECT_EQ(outcome.error, std::nullopt);
    EXPECT_EQ(outcome.plan.changes.size(), 1U);
    EXPECT_EQ(change_of(outcome).from, us(100000));
    EXPECT_EQ(change_of(outcome).to, us(25000));
}

TEST(AReconcile, LeavesTheHistoryInTheLedger)
{
    Bench bench;
    bench.simulated.machine.apst.primary_timeout_ms = 50;
    static_cast<void>(bench.reconcile());
    EXPECT_EQ(bench.entry().first, us(100000));
    EXPECT_EQ(bench.entry().ours, us(25000));
    EXPECT_TRUE(bench.entry().intended.empty());
    EXPECT_EQ(bench.entry().origin, "profile balanced");
    EXPECT_EQ(bench.entry().programmed_with, bench.simulated.machine.apst);
    EXPECT_GT(bench.entry().written_at, 0);
}

TEST(AReconcile, OfADriveInOrderWritesNothing)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    const Ledger before = bench.ledger.snapshot();
    for (int i = 0; i < 3; ++i) {
        const Outcome outcome = bench.reconcile();
        EXPECT_TRUE(outcome.plan.empty());
        EXPECT_FALSE(outcome.applied);
        EXPECT_TRUE(outcome.in_order());
    }
    EXPECT_EQ(bench.host.writes.size(), 1U);
    EXPECT_EQ(bench.drive.set_features, 2);
    EXPECT_EQ(bench.ledger.snapshot(), before);
}

TEST(AReconcile, OfADriveThatAlreadyHasTheValueTouchesNothing)
{
    Bench bench;
    bench.simulated.write_tolerance(bench.drive, LatencyTolerance::automatic());
    const Outcome outcome = bench.reconcile("power-saver");
    EXPECT_EQ(outcome.decision.tolerance, LatencyTolerance::any());
    EXPECT_TRUE(bench.host.writes.empty());
    EXPECT_TRUE(bench.ledger.snapshot().entries.empty());
    EXPECT_EQ(bench.drive.tolerance, LatencyTolerance::automatic());
}

TEST(ALook, ChangesNothing)
{
    Bench bench;
    const Outcome outcome = bench.look();
    EXPECT_EQ(outcome.plan.changes.size(), 1U);
    EXPECT_EQ(outcome.verdict.agreement, Agreement::awaits_change);
    EXPECT_FALSE(outcome.applied);
    EXPECT_TRUE(bench.host.writes.empty());
    EXPECT_EQ(bench.drive.tolerance, us(100000));
    EXPECT_EQ(bench.drive.set_features, 1);
    EXPECT_TRUE(bench.ledger.snapshot().entries.empty());
}

TEST(ADry, RunOfAllProfilesChangesNothing)
{
    Bench bench;
    bench.drive.refuses_apst = true;
    bench.drive.apst = {};
    for (const char* profile : {"performance", "balanced", "power-saver", "turbo"})
        static_cast<void>(bench.look(profile));
    EXPECT_EQ(bench.drive.set_features, 1);
    EXPECT_TRUE(bench.host.writes.empty());
}

TEST(ModeObserve, WritesNothingAndIsInOrder)
{
    Bench bench;
    Circumstances now = circumstances(bench.simulated);
    now.policy.apst.mode.value = ManageMode::observe;
    const Outcome outcome = reconcile(bench.host, "nvme0", now, bench.ledger);
    EXPECT_TRUE(outcome.plan.empty());
    EXPECT_TRUE(outcome.in_order());
    EXPECT_EQ(outcome.decision.tolerance, us(25000));
    EXPECT_TRUE(bench.host.writes.empty());
    bench.drive.apst = {}; // somebody's own table
    EXPECT_EQ(reconcile(bench.host, "nvme0", now, bench.ledger).verdict.agreement, Agreement::table_differs);
    EXPECT_TRUE(bench.host.writes.empty());
}

TEST(ADriveThatRefusesTheTable, StaysUnverifiedWithoutALoop)
{
    Bench bench;
    bench.drive.refuses_apst = true; // from now on; the table of 100000 is in it
    const Outcome outcome = bench.reconcile();
    EXPECT_EQ(outcome.verdict.agreement, Agreement::table_differs);
    EXPECT_FALSE(outcome.in_order());
    EXPECT_EQ(bench.host.writes, (std::vector<std::string>{"nvme0 25000", "nvme0 24999", "nvme0 25000"}));
    EXPECT_EQ(bench.drive.set_features, 4) << "the probe, the wanted value, and one repair of two";
    EXPECT_EQ(outcome.error, std::nullopt);
    EXPECT_EQ(outcome.plan.changes.size(), 2U);

    static_cast<void>(bench.reconcile());
    EXPECT_EQ(bench.drive.set_features, 6) << "a round tries one repair and no more";
    EXPECT_EQ(bench.drive.tolerance, us(25000));
}

TEST(ALostUpdate, IsRepairedThroughTheNeighbour)
{
    // A write that meets a controller being initialised is stored and not sent; the same number again does nothing.
    Bench bench;
    bench.host.before = [&](const std::string& call, std::size_t) -> Answer {
        if (call == "write-tolerance 25000")
            bench.drive.state = ControllerState::connecting;
        return {};
    };
    const Outcome lost = bench.reconcile();
    EXPECT_FALSE(lost.in_order());
    EXPECT_EQ(bench.drive.tolerance, us(25000));
    EXPECT_EQ(bench.drive.apst.deepest_state(), 4) << "the drive still runs the old table";

    bench.host.before = nullptr;
    bench.host.writes.clear();
    bench.drive.state = ControllerState::live;
    const Outcome outcome = bench.reconcile();
    EXPECT_EQ(bench.host.writes, (std::vector<std::string>{"nvme0 24999", "nvme0 25000"}));
    EXPECT_EQ(outcome.verdict.agreement, Agreement::verified);
    EXPECT_EQ(bench.drive.apst.deepest_state(), 3);
    EXPECT_EQ(bench.drive.tolerance, us(25000));
}

TEST(ATableSetByAnotherTool, IsRepairedOnce)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.drive.apst = {}; // nvme set-feature -f 0x0c
    const Outcome outcome = bench.reconcile();
    EXPECT_EQ(bench.host.writes, (std::vector<std::string>{"nvme0 25000", "nvme0 24999", "nvme0 25000"}));
    EXPECT_TRUE(outcome.verdict.verified());
    EXPECT_EQ(change_of(outcome).through, us(24999));
    EXPECT_EQ(bench.entry().first, us(100000));
    EXPECT_EQ(bench.entry().ours, us(25000));
}

TEST(ParametersThatWereMoved, AreFollowedAfterAReset)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.simulated.machine.apst.primary_latency_tol_us = 5000;
    EXPECT_EQ(bench.reconcile().verdict.agreement, Agreement::parameters_moved);
    EXPECT_EQ(bench.host.writes.size(), 1U);
    // A reset programs the value again, with the parameters as they are now.
    bench.drive.apst = predict_apst_table(bench.drive.drive.inputs(bench.simulated.machine.apst), us(25000)).feature;
    EXPECT_EQ(bench.reconcile().verdict.agreement, Agreement::verified);
    EXPECT_EQ(bench.host.writes.size(), 1U);
}

TEST(ACeilingOfZero, KeepsTheDriveAwake)
{
    SimulatedHost simulated;
    simulated.machine.default_ps_max_latency_us = 0;
    SimulatedController& drive = simulated.add(evo_plus());
    WatchedHost host(simulated);
    LedgerStore ledger;
    for (const char* profile : {"balanced", "power-saver", "performance"})
        EXPECT_TRUE(reconcile(host, "nvme0", circumstances(simulated, profile), ledger).in_order());
    EXPECT_TRUE(host.writes.empty());
    EXPECT_EQ(drive.tolerance, us(0));
    EXPECT_FALSE(drive.apst.enabled);
}

TEST(AValueFoundAtFirstSight, StaysACeilingAfterOurWrites)
{
    Bench bench;
    bench.simulated.write_tolerance(bench.drive, us(5500));
    static_cast<void>(bench.reconcile("performance"));
    EXPECT_EQ(bench.drive.tolerance, us(0));
    static_cast<void>(bench.reconcile("power-saver"));
    EXPECT_EQ(bench.drive.tolerance, us(5500));
    EXPECT_EQ(bench.entry().first, us(5500));
}

TEST(ASwappedDrive, IsNotWrittenTo)
{
    Bench bench;
    const Outcome before = bench.look();
    ASSERT_EQ(before.plan.changes.size(), 1U);
    // Between the decision and the write the directory says another serial number.
    bool decided = false;
    bench.host.before = [&](const std::string& call, std::size_t) -> Answer {
        if (call == "read-tolerance")
            decided = true;
        return decided && call == "serial" ? Answer{std::string("OTHER0001\n")} : Answer{};
    };
    const Outcome outcome = bench.reconcile();
    EXPECT_TRUE(bench.host.writes.empty());
    EXPECT_EQ(bench.drive.set_features, 1);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->text(), "nvme0: power/pm_qos_latency_tolerance_us: \"25000\": not written, another drive (serial "
                                     "OTHER0001) has this name now");
    EXPECT_TRUE(outcome.gone());
    EXPECT_FALSE(outcome.applied);
}

TEST(ASwappedDrive, WhoseNodeAnswersForAnotherIsNotWrittenToAndNotForgotten)
{
    Bench bench;
    bench.host.before = [&](const std::string& call, std::size_t) -> Answer {
        return call == "serial" ? Answer{std::string("OTHER0001\n")} : Answer{};
    };
    const Outcome outcome = bench.reconcile();
    EXPECT_TRUE(bench.host.writes.empty());
    EXPECT_EQ(outcome.verdict.reason,
              "nvme0: Identify Controller: \"SIMULATED0000\": another serial number than the kernel has: "
              "a swapped drive, or firmware that errs");
    EXPECT_FALSE(outcome.in_order());
    EXPECT_FALSE(outcome.gone());
}

TEST(ADriveWithStrangeBytesInItsSerialNumber, IsNotTakenForASwappedOne)
{
    for (const std::string& serial :
         {std::string("S\x01X"), std::string("\xff\xff\xff"), std::string("A\tB"), std::string("  ")}) {
        Bench bench;
        bench.drive.id.serial = serial;
        const Outcome outcome = bench.reconcile();
        EXPECT_EQ(outcome.error, std::nullopt) << outcome.error->text();
        EXPECT_EQ(bench.drive.tolerance, us(25000));
    }
}

TEST(AControllerThatIsNotLive, IsNotAskedAnything)
{
    for (const ControllerState state : {ControllerState::created, ControllerState::resetting, ControllerState::connecting,
                                        ControllerState::dead, ControllerState::unknown}) {
        Bench bench;
        bench.drive.state = state;
        const Outcome outcome = bench.reconcile();
        EXPECT_EQ(bench.host.count("identify") + bench.host.count("get-feature") + bench.host.count("read-tolerance"), 0U)
            << show(state);
        EXPECT_TRUE(bench.host.writes.empty()) << show(state);
        EXPECT_EQ(outcome.verdict.agreement, Agreement::unread) << show(state);
        EXPECT_EQ(outcome.verdict.reason, "nvme0: \"" + show(state) + "\": the controller is not live, so it is not asked");
        EXPECT_FALSE(outcome.in_order());
        EXPECT_FALSE(outcome.gone());
    }
}

TEST(AControllerThatIsBeingDeleted, IsGone)
{
    Bench bench;
    bench.drive.state = ControllerState::deleting;
    EXPECT_TRUE(bench.reconcile().gone());
    EXPECT_TRUE(bench.host.writes.empty());
}

TEST(AControllerThatIsNotThere, IsGone)
{
    Bench bench;
    const Outcome outcome = reconcile(bench.host, "nvme7", circumstances(bench.simulated), bench.ledger);
    EXPECT_TRUE(outcome.gone());
    EXPECT_FALSE(outcome.controller);
    EXPECT_EQ(outcome.error->text(), "/sys/class/nvme/nvme7: there is no such controller, or it has left");
}

TEST(ADriveThatDoesNotAnswer, KeepsUsOffTheToleranceFile)
{
    Bench bench;
    bench.drive.faults["get-feature"] = refusal_of(RefusalKind::timed_out);
    const Outcome outcome = bench.reconcile();
    EXPECT_EQ(bench.host.count("read-tolerance"), 0U);
    EXPECT_TRUE(bench.host.writes.empty());
    EXPECT_EQ(outcome.verdict.agreement, Agreement::unread);
    EXPECT_EQ(outcome.verdict.reason, "somewhere: a fault put here by the test");
    EXPECT_FALSE(outcome.in_order());
}

TEST(ADriveWhoseTableCannotBeReadJustNow, IsNotWrittenTo)
{
    // Only after a Get Features that has just succeeded may a drive be let near the lock that all drives share.
    for (const RefusalKind kind : {RefusalKind::try_later, RefusalKind::failed, RefusalKind::timed_out}) {
        Bench bench;
        bench.drive.faults["get-feature"] = refusal_of(kind);
        static_cast<void>(bench.reconcile());
        EXPECT_TRUE(bench.host.writes.empty()) << word(kind);
    }
}

TEST(AWriteThatFails, LeavesTheIntentAndTheOriginalInTheLedger)
{
    Bench bench;
    bench.drive.faults["write-tolerance"] = refusal_of(RefusalKind::try_later);
    const Outcome outcome = bench.reconcile();
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind, RefusalKind::try_later);
    EXPECT_EQ(outcome.error->value, "25000") << "what was to be written";
    EXPECT_FALSE(outcome.applied);
    EXPECT_FALSE(outcome.in_order());
    EXPECT_EQ(bench.entry().first, us(100000));
    EXPECT_EQ(bench.entry().intended, std::vector{us(25000)});
    EXPECT_EQ(bench.entry().ours, std::nullopt);
    EXPECT_EQ(bench.drive.tolerance, us(100000));

    bench.drive.faults.clear();
    EXPECT_TRUE(bench.reconcile().in_order());
    EXPECT_EQ(bench.entry().first, us(100000));
    EXPECT_TRUE(bench.entry().intended.empty());
}

TEST(AWriteThatFailsAThousandTimes, DoesNotMakeTheLedgerGrow)
{
    Bench bench;
    bench.drive.faults["write-tolerance"] = refusal_of(RefusalKind::try_later);
    for (int i = 0; i < 1000; ++i)
        static_cast<void>(bench.reconcile());
    EXPECT_LE(bench.entry().intended.size(), 2U);
}

TEST(ARepairThatFailsHalfWay, IsFinishedNextTime)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.drive.apst = {};
    bench.host.before = [&](const std::string& call, std::size_t) -> Answer {
        return call == "write-tolerance 25000" ? Answer{refusal_of(RefusalKind::try_later)} : Answer{};
    };
    EXPECT_FALSE(bench.reconcile().in_order());
    EXPECT_EQ(bench.drive.tolerance, us(24999));
    EXPECT_TRUE(bench.entry().is_ours(us(24999)));
    bench.host.before = nullptr;
    EXPECT_TRUE(bench.reconcile().in_order());
    EXPECT_EQ(bench.drive.tolerance, us(25000));
    EXPECT_EQ(bench.entry().first, us(100000));
}

TEST(ALedgerThatCannotBeWritten, KeepsTheDriveAsItIs)
{
    const TemporaryDirectory place;
    auto ledger = LedgerStore::open(place / "run/originals.json"); // there is no such directory
    ASSERT_TRUE(ledger);
    Bench bench;
    const Outcome outcome = reconcile(bench.host, "nvme0", circumstances(bench.simulated), **ledger);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->text(),
              place / "run/originals.json.new"
                  + ": there is no such file (ENOENT); nvme0 is not written to before it is on record what it "
                    "had");
    EXPECT_FALSE(outcome.gone()) << "the drive has not left, our own directory has";
    EXPECT_TRUE(bench.host.writes.empty());
    EXPECT_EQ(bench.drive.set_features, 1);
}

TEST(SomebodyWhoWritesRightAfterUs, IsNotTakenForOurselves)
{
    Bench bench;
    bench.host.after_write = [&] { bench.simulated.write_tolerance(bench.drive, us(7000)); };
    static_cast<void>(bench.reconcile());
    EXPECT_EQ(bench.drive.tolerance, us(7000));
    EXPECT_FALSE(bench.entry().is_ours(us(7000)));
    bench.host.after_write = nullptr;
    const auto restored = restore(bench.host, bench.ledger);
    ASSERT_EQ(restored.size(), 1U);
    EXPECT_EQ(restored[0].result, Restored::Result::left_to_another);
    EXPECT_EQ(bench.drive.tolerance, us(7000));
}

TEST(ADriveWithoutToleranceFile, IsInOrder)
{
    DriveFile no_apst = evo_plus();
    no_apst.apsta = 0;
    Bench without(no_apst);
    EXPECT_EQ(without.reconcile().verdict.agreement, Agreement::not_applicable);
    EXPECT_TRUE(without.reconcile().in_order());
    EXPECT_EQ(without.host.count("get-feature"), 0U);
    EXPECT_EQ(without.host.count("read-tolerance"), 0U);

    DriveFile quirked = evo_plus();
    quirked.quirks.no_apst = true;
    Bench off(quirked);
    const Outcome outcome = off.reconcile();
    EXPECT_EQ(outcome.decision.support, ApstSupport::off_by_quirk);
    EXPECT_TRUE(outcome.in_order());
    EXPECT_EQ(off.host.count("read-tolerance"), 0U);
    EXPECT_TRUE(off.host.writes.empty());
}

TEST(ADriveWithNpss40, IsNotWrittenTo)
{
    DriveFile drive = evo_plus();
    drive.power_states.clear();
    for (int i = 0; i < 32; ++i)
        drive.power_states.push_back(state_of(i, 100, 100, i == 0));
    drive.npss = 40;
    Bench bench(drive);
    const Outcome outcome = bench.reconcile();
    EXPECT_EQ(outcome.verdict.agreement, Agreement::ignored);
    EXPECT_FALSE(outcome.in_order());
    EXPECT_TRUE(bench.host.writes.empty());
}

TEST(TheA2000, IsKnownByItsPciId)
{
    DriveFile drive = evo_plus();
    drive.pci_vendor_id = 0x2646;
    drive.pci_device_id = 0x2263;
    drive.quirks.no_deepest_ps = true;
    Bench bench(drive);
    const Outcome outcome = bench.reconcile("power-saver");
    EXPECT_EQ(outcome.verdict.agreement, Agreement::verified);
    EXPECT_EQ(outcome.decision.predicted.feature.deepest_state(), 3);
    EXPECT_EQ(outcome.controller->quirks.source, QuirkKnowledge::Source::device_table);
}

} // namespace
} // namespace nvmepolicy
