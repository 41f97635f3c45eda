// SPDX-License-Identifier: LGPL-2.1-or-later
// The real look and reconcile on simulated drives that refuse, vanish, change places and answer nonsense, at every step.
#include "reconcile/reconcile.h"

#include <set>

#include "host/apply.h"
#include "host/observe.h"
#include "temporary_directory.h"
#include "watched_host.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

/// One machine with one drive, watched.
struct Bench {
    SimulatedHost simulated;
    SimulatedController& drive;
    WatchedHost host{simulated};
    LedgerStore ledger;

    explicit Bench(const DriveFile& file = evo_plus()) : drive(simulated.add(file)) {}
    Outcome reconcile(const std::string& profile = "balanced")
    {
        return nvmepolicy::reconcile(host, "nvme0", circumstances(simulated, profile), ledger);
    }
    Outcome look(const std::string& profile = "balanced")
    {
        return nvmepolicy::look(host, "nvme0", circumstances(simulated, profile), ledger);
    }
    [[nodiscard]] LedgerEntry entry() const { return ledger.find(drive.id).value_or(LedgerEntry{}); }
};

ToleranceChange change_of(const Outcome& outcome, std::size_t index = 0)
{
    return outcome.plan.changes.size() > index ? std::get<ToleranceChange>(outcome.plan.changes[index]) : ToleranceChange{};
}

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

// ---------------------------------------------------------------------------------------------------------------------
// At every step.

/// The calls of a reconcile that goes well.
std::vector<std::string> calls_of_a_reconcile()
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    return bench.host.calls;
}

TEST(ADriveThatLeaves, AtAnyStepIsGoneAndNeverWrittenToAfterwards)
{
    const auto steps = calls_of_a_reconcile();
    ASSERT_GT(steps.size(), 20U);
    for (std::size_t at = 0; at < steps.size(); ++at) {
        SCOPED_TRACE("before call " + std::to_string(at) + ", " + steps[at]);
        Bench bench;
        std::size_t tried_after = 0;
        bench.host.before = [&](const std::string& call, std::size_t number) -> Answer {
            if (number == at)
                bench.simulated.remove("nvme0");
            tried_after += number > at && call.starts_with("write-tolerance") ? 1 : 0;
            return {};
        };
        const ControllerId id = bench.drive.id;
        const Outcome outcome = bench.reconcile();
        EXPECT_EQ(tried_after, 0U);
        const bool last_look_done = outcome.in_order(); // Unplugged after everything had been read.
        EXPECT_TRUE(outcome.gone() || last_look_done);
        for (const Restored& restored : restore(bench.host, bench.ledger))
            EXPECT_EQ(restored.result, Restored::Result::gone);
        EXPECT_EQ(bench.ledger.find(id), std::nullopt);
    }
}

TEST(AnyRefusal, AtAnyStepLeavesAMachineThatCanBeMendedAndRestored)
{
    const auto steps = calls_of_a_reconcile();
    for (const RefusalKind kind : every_kind)
        for (std::size_t at = 0; at < steps.size(); ++at) {
            SCOPED_TRACE(std::string(word(kind)) + " at call " + std::to_string(at) + ", " + steps[at]);
            Bench bench;
            bench.host.before = [&](const std::string&, std::size_t number) -> Answer {
                return number == at ? Answer{refusal_of(kind)} : Answer{};
            };
            const Outcome outcome = bench.reconcile();
            EXPECT_LE(bench.drive.set_features, 4);
            if (bench.drive.tolerance != us(100000)) {
                EXPECT_EQ(bench.entry().first, us(100000)) << "written without a record";
                EXPECT_TRUE(bench.entry().is_ours(bench.drive.tolerance));
            }
            bench.host.before = nullptr;
            const Outcome next = bench.reconcile();
            EXPECT_TRUE(next.in_order());
            EXPECT_EQ(bench.drive.tolerance, us(25000));
            EXPECT_EQ(bench.drive.apst.deepest_state(), 3);
            const auto restored = restore(bench.host, bench.ledger);
            ASSERT_EQ(restored.size(), 1U);
            EXPECT_EQ(restored[0].result, Restored::Result::put_back);
            EXPECT_EQ(bench.drive.tolerance, us(100000));
            EXPECT_EQ(bench.drive.apst.deepest_state(), 4);
        }
}

TEST(ATransientRefusal, IsNeverTakenForADeparture)
{
    // "Gone" is no failure and makes restore forget the original, so it must be true.
    const auto steps = calls_of_a_reconcile();
    for (const RefusalKind kind : {RefusalKind::try_later, RefusalKind::denied, RefusalKind::timed_out, RefusalKind::failed})
        for (std::size_t at = 0; at < steps.size(); ++at) {
            Bench bench;
            bench.host.before = [&](const std::string&, std::size_t number) -> Answer {
                return number == at ? Answer{refusal_of(kind)} : Answer{};
            };
            EXPECT_FALSE(bench.reconcile().gone()) << word(kind) << " at call " << at << ", " << steps[at];
        }
}

TEST(Garbage, AtAnyStepNeverMakesUsGoDeeperThanTheBound)
{
    const std::string texts[] = {"",
                                 "\n",
                                 "(efault)\n",
                                 std::string("\0\0\0\0", 4),
                                 std::string(4096, '\0'),
                                 std::string(4096, '\xff'),
                                 std::string(256, '\xff'),
                                 std::string(100'000, 'A'),
                                 "-1\n",
                                 "99999999999999999999\n",
                                 "\x1b[2J\n",
                                 "live\n",
                                 "auto\n",
                                 "0x64\n",
                                 "pm_qos_latency_tolerance_us"};
    const auto steps = calls_of_a_reconcile();
    for (const std::string& text : texts)
        for (std::size_t at = 0; at < steps.size(); ++at) {
            SCOPED_TRACE("\"" + text.substr(0, 20) + "\" at call " + std::to_string(at) + ", " + steps[at]);
            Bench bench;
            bench.host.before = [&](const std::string&, std::size_t number) -> Answer {
                return number == at ? Answer{text} : Answer{};
            };
            static_cast<void>(bench.reconcile());
            EXPECT_LE(bench.drive.set_features, 4);
            for (const std::string& write : bench.host.writes)
                EXPECT_TRUE(write == "nvme0 25000" || write == "nvme0 24999") << write;
            bench.host.before = nullptr;
            EXPECT_TRUE(bench.reconcile().in_order());
            EXPECT_EQ(bench.drive.tolerance, us(25000));
        }
}

TEST(GarbageThatStays, InAnyAttributeIsReportedAndNeverFatal)
{
    std::set<std::string> names;
    for (const std::string& call : calls_of_a_reconcile())
        names.insert(call);
    for (const std::string& text :
         {std::string("(efault)\n"), std::string(), std::string(4096, '\xff'), std::string("\x1b[31m\n")})
        for (const std::string& name : names) {
            if (name.starts_with("open ") || name.starts_with("write-"))
                continue;
            SCOPED_TRACE(name);
            Bench bench;
            bench.host.before = [&](const std::string& call, std::size_t) -> Answer {
                return call == name ? Answer{text} : Answer{};
            };
            const Outcome outcome = bench.reconcile();
            for (const std::string& write : bench.host.writes)
                EXPECT_TRUE(write == "nvme0 25000" || write == "nvme0 24999") << write;
            if (outcome.error) {
                for (const char c : outcome.error->text())
                    EXPECT_TRUE(c >= ' ' && c <= '~') << outcome.error->text();
            }
            for (const char c : outcome.verdict.reason)
                EXPECT_TRUE(c >= ' ' && c <= '~') << outcome.verdict.reason;
        }
}

TEST(Efault, IsReadAgainLater)
{
    for (const char* attribute : {"serial", "subsysnqn"}) {
        Bench bench;
        bench.host.before = [&](const std::string& call, std::size_t) -> Answer {
            return call == attribute ? Answer{std::string("(efault)\n")} : Answer{};
        };
        const Outcome outcome = bench.reconcile();
        ASSERT_TRUE(outcome.error);
        EXPECT_EQ(outcome.error->text(), std::string("/sys/class/nvme/nvme0/") + attribute
                                             + ": \"(efault)\": the kernel has not identified this controller yet");
        EXPECT_EQ(outcome.error->kind, RefusalKind::try_later);
        EXPECT_FALSE(outcome.gone());
    }
}

// ---------------------------------------------------------------------------------------------------------------------

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

// ---------------------------------------------------------------------------------------------------------------------
// The machine.

/// Directories by path, with attributes by name.
class PaperHost : public Host {
public:
    std::map<std::string, std::map<std::string, Result<std::string>>> directories;
    [[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override
    {
        const auto found = directories.find(path);
        if (found == directories.end())
            return Refusal{"/sys/" + path, "", "there is no such file (ENOENT)", RefusalKind::absent};
        return std::unique_ptr<Directory>(std::make_unique<Paper>("/sys/" + path, found->second));
    }
    [[nodiscard]] std::unique_ptr<ControllerDevice> open_device(const Directory&, const std::string&) override { return {}; }
    [[nodiscard]] bool simulated() const override { return true; }

private:
    class Paper : public Directory {
    public:
        Paper(std::string path, std::map<std::string, Result<std::string>> texts)
            : path_(std::move(path))
            , texts_(std::move(texts))
        {
        }
        [[nodiscard]] const std::string& path() const override { return path_; }
        [[nodiscard]] std::uint64_t object() const override { return 0; }
        [[nodiscard]] Result<std::string> read(const std::string& attribute) const override
        {
            const auto found = texts_.find(attribute);
            return found == texts_.end() ? Result<std::string>(Refusal{attribute, "", "absent", RefusalKind::absent})
                                         : found->second;
        }
        [[nodiscard]] Result<std::vector<std::string>> list(const std::string&) const override
        {
            std::set<std::string> names;
            for (const auto& [name, text] : texts_)
                names.insert(name.substr(0, name.find('/')));
            return std::vector<std::string>(names.begin(), names.end());
        }

    private:
        std::string path_;
        std::map<std::string, Result<std::string>> texts_;
    };
};

struct SupplyRow {
    std::string name;
    std::map<std::string, Result<std::string>> supplies;
    PowerSource source;
};
void PrintTo(const SupplyRow& row, std::ostream* out)
{
    *out << row.name;
}
Result<std::string> text(const char* value)
{
    return std::string(value) + "\n";
}

class PowerSupplies : public testing::TestWithParam<SupplyRow> {};
TEST_P(PowerSupplies, TellWhetherTheMachineRunsOnBattery)
{
    PaperHost host;
    host.directories["class/power_supply"] = GetParam().supplies;
    std::vector<Refusal> complaints;
    EXPECT_EQ(observe_machine(host, complaints).power_source, GetParam().source);
}
INSTANTIATE_TEST_SUITE_P(
    With, PowerSupplies,
    testing::Values(SupplyRow{"nothing", {}, PowerSource::ac},
                    SupplyRow{"mains_online",
                              {{"AC/type", text("Mains")}, {"AC/online", text("1")}, {"BAT0/type", text("Battery")}},
                              PowerSource::ac},
                    SupplyRow{"mains_offline",
                              {{"AC/type", text("Mains")}, {"AC/online", text("0")}, {"BAT0/type", text("Battery")}},
                              PowerSource::battery},
                    SupplyRow{"battery_alone", {{"BAT0/type", text("Battery")}}, PowerSource::battery},
                    SupplyRow{"usb_c_charger",
                              {{"ucsi/type", text("USB")}, {"ucsi/online", text("1")}, {"BAT0/type", text("Battery")}},
                              PowerSource::ac},
                    SupplyRow{"usb_pd_unplugged",
                              {{"ucsi/type", text("USB_PD")}, {"ucsi/online", text("0")}, {"BAT0/type", text("Battery")}},
                              PowerSource::battery},
                    SupplyRow{"mouse", {{"hid/type", text("Battery")}, {"hid/scope", text("Device")}}, PowerSource::ac},
                    SupplyRow{"mouse_and_laptop",
                              {{"hid/type", text("Battery")}, {"hid/scope", text("Device")}, {"BAT0/type", text("Battery")}},
                              PowerSource::battery},
                    SupplyRow{"empty_bay", {{"BAT1/type", text("Battery")}, {"BAT1/present", text("0")}}, PowerSource::ac},
                    SupplyRow{"ups", {{"ups/type", text("UPS")}, {"ups/online", text("1")}}, PowerSource::ac},
                    SupplyRow{
                        "garbage",
                        {{"AC/type", text("\x1b")}, {"AC/online", text("1")}, {"BAT0/type", Result<std::string>(Refusal{})}},
                        PowerSource::ac}),
    [](const auto& row) { return row.param.name; });

TEST(ModuleParameters, AreReadAsNumbersOrComplainedAbout)
{
    PaperHost host;
    host.directories["module/nvme_core/parameters"] = {{"default_ps_max_latency_us", text("5500")},
                                                       {"apst_primary_timeout_ms", text("0")},
                                                       {"apst_primary_latency_tol_us", text("18446744073709551615")},
                                                       {"apst_secondary_timeout_ms", text("-1")},
                                                       {"force_apst", text("Y")}};
    std::vector<Refusal> complaints;
    const Machine machine = observe_machine(host, complaints);
    EXPECT_EQ(machine.default_ps_max_latency_us, 5500U);
    EXPECT_EQ(machine.apst, (ApstParameters{0, UINT64_MAX, 2000, 100000}));
    EXPECT_TRUE(machine.force_apst);
    ASSERT_EQ(complaints.size(), 1U);
    EXPECT_EQ(complaints[0].text(), "/sys/module/nvme_core/parameters/apst_secondary_timeout_ms: \"-1\": not a decimal number "
                                    "from 0 to 18446744073709551615");
}

TEST(AMachineWithoutTheDriver, IsNoReasonToComplain)
{
    PaperHost host;
    std::vector<Refusal> complaints;
    const Machine machine = observe_machine(host, complaints);
    EXPECT_EQ(machine.default_ps_max_latency_us, std::nullopt);
    EXPECT_EQ(machine.apst, ApstParameters{});
    EXPECT_TRUE(complaints.empty());
    EXPECT_TRUE(controller_names(host)->empty());
    EXPECT_TRUE(observe_subsystems(host).empty());
}

TEST(ControllerNames, AreControllersInNaturalOrder)
{
    PaperHost host;
    for (const char* name :
         {"nvme10", "nvme2", "nvme0", "nvme-fabrics", "nvme0n1", "nvme0c0n1", "nvme", "nvmex", "xnvme1", "power"})
        host.directories["class/nvme"].emplace(name, text(""));
    EXPECT_EQ(*controller_names(host), (std::vector<std::string>{"nvme0", "nvme2", "nvme10"}));
}

TEST(Subsystems, AreKnownByTheirLinksNotByTheirNumbers)
{
    PaperHost host;
    host.directories["class/nvme-subsystem"] = {{"nvme-subsys0", text("")}, {"nvme-subsys10", text("")}, {"power", text("")}};
    host.directories["class/nvme-subsystem/nvme-subsys0"] = {{"subsysnqn", text("nqn.a")}, {"iopolicy", text("round-robin")},
                                                             {"nvme10", text("")},         {"nvme3", text("")},
                                                             {"nvme0n1", text("")},        {"nvme0c3n1", text("")}};
    const auto found = observe_subsystems(host);
    ASSERT_EQ(found.size(), 1U) << "nvme-subsys10 left between two calls";
    EXPECT_EQ(found[0], (Subsystem{"nvme-subsys0", "nqn.a", "round-robin", {"nvme3", "nvme10"}, {"nvme0n1"}}));
}

} // namespace
} // namespace nvmepolicy
