// SPDX-License-Identifier: LGPL-2.1-or-later
// Whatever happened to us, each drive gets back what it had: after a crash at any instant, under another name, once.
#include <optional>

#include "host/ledger_store.h"
#include "reconcile/reconcile.h"
#include "small_files.h"
#include "temporary_directory.h"
#include "watched_host.h"

namespace nvmepolicy {
namespace {

using Result = Restored::Result;

std::vector<Result> results(const std::vector<Restored>& all)
{
    std::vector<Result> out;
    for (const Restored& one : all)
        out.push_back(one.result);
    return out;
}

/// A drive that we have set to 25000, with its ledger on disk.
struct Bench {
    TemporaryDirectory place;
    SimulatedHost simulated;
    SimulatedController& drive = simulated.add(evo_plus());
    WatchedHost host{simulated};

    [[nodiscard]] std::unique_ptr<LedgerStore> open_ledger() const
    {
        auto store = LedgerStore::open(place / "originals.json");
        EXPECT_TRUE(store) << store.error().text();
        return store ? *std::move(store) : nullptr;
    }
    Outcome reconcile(const std::string& profile = "balanced")
    {
        return nvmepolicy::reconcile(host, "nvme0", circumstances(simulated, profile), *open_ledger());
    }
    std::vector<Restored> restore() { return nvmepolicy::restore(host, *open_ledger()); }
};

TEST(ARestore, PutsBackWhatWasThere)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    ASSERT_EQ(bench.drive.tolerance, us(25000));
    const auto all = bench.restore();
    ASSERT_EQ(results(all), std::vector{Result::put_back});
    EXPECT_EQ(all[0].name, "nvme0");
    EXPECT_EQ(all[0].first, us(100000));
    EXPECT_EQ(all[0].found, us(25000));
    EXPECT_EQ(all[0].error, std::nullopt);
    EXPECT_EQ(bench.drive.tolerance, us(100000));
    EXPECT_EQ(bench.drive.apst.deepest_state(), 4);
    EXPECT_TRUE(bench.open_ledger()->snapshot().entries.empty());
    EXPECT_TRUE(bench.restore().empty()) << "there is nothing left to do";
}

TEST(ARestore, AfterSomebodyElseWasOverwrittenPutsBackTheLowerOfBoth)
{
    for (const auto& [theirs, back] : {std::pair{us(60000), us(60000)}, std::pair{us(200000), us(100000)}}) {
        Bench bench;
        static_cast<void>(bench.reconcile());
        bench.simulated.write_tolerance(bench.drive, theirs); // above the bound, so it is lowered again
        static_cast<void>(bench.reconcile());
        ASSERT_EQ(bench.drive.tolerance, us(25000));
        EXPECT_EQ(results(bench.restore()), std::vector{Result::put_back});
        EXPECT_EQ(bench.drive.tolerance, back);
    }
}

TEST(ARestore, OfAControllerThatWasMadeAnewLeavesItAlone)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.drive.object += 1000; // deleted and connected again: the same identity, the kernel's default
    bench.drive.tolerance = bench.drive.driver_copy = us(25000);
    EXPECT_EQ(results(bench.restore()), std::vector{Result::gone});
    EXPECT_EQ(bench.drive.tolerance, us(25000)) << "25000 is what it started with, not ours";
}

TEST(ARestore, AsksForNothingThatADriveMayGetWrong)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.drive.faults["identify"] = Refusal{"nvme0: Identify Controller", "", "it errs", RefusalKind::failed};
    EXPECT_EQ(results(bench.restore()), std::vector{Result::put_back});
    EXPECT_EQ(bench.drive.tolerance, us(100000));
}

TEST(ARestore, OfAutoPutsBackAuto)
{
    Bench bench;
    bench.simulated.write_tolerance(bench.drive, LatencyTolerance::automatic());
    static_cast<void>(bench.reconcile());
    ASSERT_EQ(bench.drive.tolerance, us(25000));
    EXPECT_EQ(results(bench.restore()), std::vector{Result::put_back});
    EXPECT_EQ(bench.drive.tolerance, LatencyTolerance::automatic());
    EXPECT_EQ(bench.host.writes.back(), "nvme0 auto");
}

TEST(ARestore, OfAutoOverOurOwnAnyPutsBackAuto)
{
    Bench bench;
    bench.simulated.write_tolerance(bench.drive, LatencyTolerance::automatic());
    static_cast<void>(bench.reconcile("balanced"));
    static_cast<void>(bench.reconcile("power-saver"));
    ASSERT_EQ(bench.drive.tolerance, LatencyTolerance::any());
    EXPECT_EQ(results(bench.restore()), std::vector{Result::put_back});
    EXPECT_EQ(bench.drive.tolerance, LatencyTolerance::automatic());
}

TEST(ARestore, AfterSeveralChangesGoesToTheFirstValue)
{
    Bench bench;
    bench.simulated.write_tolerance(bench.drive, us(60000));
    for (const char* profile : {"balanced", "performance", "power-saver", "balanced"})
        static_cast<void>(bench.reconcile(profile));
    EXPECT_EQ(results(bench.restore()), std::vector{Result::put_back});
    EXPECT_EQ(bench.drive.tolerance, us(60000));
}

TEST(AValueSetBySomebodyElse, IsLeftAlone)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.simulated.write_tolerance(bench.drive, us(7000));
    const auto all = bench.restore();
    EXPECT_EQ(results(all), std::vector{Result::left_to_another});
    EXPECT_EQ(all[0].found, us(7000));
    EXPECT_EQ(bench.drive.tolerance, us(7000));
    EXPECT_TRUE(bench.open_ledger()->snapshot().entries.empty());
}

TEST(TheFirstValue, PutBackBySomebodyElseIsThereAlready)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.simulated.write_tolerance(bench.drive, us(100000));
    bench.host.writes.clear();
    EXPECT_EQ(results(bench.restore()), std::vector{Result::already});
    EXPECT_TRUE(bench.host.writes.empty());
}

TEST(ADriveThatLeft, IsForgotten)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.simulated.remove("nvme0");
    EXPECT_EQ(results(bench.restore()), std::vector{Result::gone});
    EXPECT_TRUE(bench.open_ledger()->snapshot().entries.empty());
}

TEST(ADriveThatLeft, DoesNotLeaveItsOriginalToTheNextOne)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.simulated.remove("nvme0");
    SimulatedController& next = bench.simulated.add(evo_plus());
    bench.simulated.write_tolerance(next, us(25000)); // by chance our own value
    EXPECT_EQ(results(bench.restore()), std::vector{Result::gone});
    EXPECT_EQ(next.tolerance, us(25000));
}

// R40: renamed after a subsystem reset.
TEST(TwoDrivesThatChangedPlaces, GetTheirOwnOriginals)
{
    Bench bench;
    SimulatedController& other = bench.simulated.add(evo_plus()); // same model, another serial number
    bench.simulated.write_tolerance(bench.drive, us(60000));
    bench.simulated.write_tolerance(other, us(50000));
    const auto ledger = bench.open_ledger();
    for (const char* name : {"nvme0", "nvme1"})
        static_cast<void>(reconcile(bench.host, name, circumstances(bench.simulated), *ledger));
    ASSERT_EQ(bench.drive.tolerance, us(25000));
    ASSERT_EQ(other.tolerance, us(25000));
    bench.simulated.rename(bench.drive, "nvme2");
    bench.simulated.rename(other, "nvme0");
    bench.simulated.rename(bench.drive, "nvme1");
    const auto all = bench.restore(); // as after a crash: from the file
    EXPECT_EQ(results(all), (std::vector{Result::put_back, Result::put_back}));
    EXPECT_EQ(bench.drive.tolerance, us(60000));
    EXPECT_EQ(other.tolerance, us(50000));
    EXPECT_EQ(all[0].name, "nvme1") << "the name that it has now";
}

TEST(ADriveThatWasRenamed, KeepsItsHistory)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.simulated.rename(bench.drive, "nvme5");
    const auto ledger = bench.open_ledger();
    static_cast<void>(reconcile(bench.host, "nvme5", circumstances(bench.simulated, "performance"), *ledger));
    EXPECT_EQ(bench.drive.tolerance, us(0));
    ASSERT_EQ(ledger->snapshot().entries.size(), 1U);
    EXPECT_EQ(ledger->snapshot().entries.begin()->second.first, us(100000));
    EXPECT_EQ(ledger->snapshot().entries.begin()->second.name, "nvme5");
}

TEST(TwoControllersOfOneDrive, HaveTheirOwnEntries)
{
    Bench bench;
    SimulatedController& second = bench.simulated.add(evo_plus());
    second.id = bench.drive.id;
    second.id.cntlid = 2;
    bench.simulated.write_tolerance(second, us(50000));
    const auto ledger = bench.open_ledger();
    for (const char* name : {"nvme0", "nvme1"})
        static_cast<void>(reconcile(bench.host, name, circumstances(bench.simulated), *ledger));
    EXPECT_EQ(results(bench.restore()), (std::vector{Result::put_back, Result::put_back}));
    EXPECT_EQ(bench.drive.tolerance, us(100000));
    EXPECT_EQ(second.tolerance, us(50000));
}

TEST(OneSickDrive, DoesNotKeepTheOthersFromBeingRestored)
{
    Bench bench;
    SimulatedController& other = bench.simulated.add(evo_plus());
    const auto ledger = bench.open_ledger();
    for (const char* name : {"nvme0", "nvme1"})
        static_cast<void>(reconcile(bench.host, name, circumstances(bench.simulated), *ledger));
    bench.drive.faults["get-feature"] = refusal_of(RefusalKind::timed_out);
    const auto all = bench.restore();
    EXPECT_EQ(results(all), (std::vector{Result::failed, Result::put_back}));
    EXPECT_EQ(other.tolerance, us(100000));
    ASSERT_NE(bench.open_ledger()->find(bench.drive.id), std::nullopt) << "kept for the next try";
    bench.drive.faults.clear();
    EXPECT_EQ(results(bench.restore()), std::vector{Result::put_back});
    EXPECT_EQ(bench.drive.tolerance, us(100000));
}

TEST(AControllerThatIsNotLive, IsRestoredLater)
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    bench.drive.state = ControllerState::connecting;
    EXPECT_EQ(results(bench.restore()), std::vector{Result::failed});
    bench.drive.state = ControllerState::live;
    EXPECT_EQ(results(bench.restore()), std::vector{Result::put_back});
}

TEST(AnEntryOfADriveWeDoNotKnow, IsForgottenWithoutAWrite)
{
    Bench bench;
    Ledger ledger;
    LedgerEntry& entry = ledger.at({"nqn.other", "OTHER", 9});
    entry.first = us(0);
    entry.ours = us(100000);
    bench.place.write("originals.json", format_ledger(ledger));
    EXPECT_EQ(results(bench.restore()), std::vector{Result::gone});
    EXPECT_TRUE(bench.host.writes.empty());
    EXPECT_EQ(bench.drive.tolerance, us(100000));
}

TEST(ADamagedLedger, IsLeftAlone)
{
    const TemporaryDirectory place;
    const std::string path = place.write("originals.json", "{\"schema\":2,\"entr");
    const auto store = LedgerStore::open(path);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().text(), path
                                        + ": not a ledger of schema 2. It is the record of what the drives had before us, so "
                                          "nothing is written while it cannot be read. Move it away to start anew from the "
                                          "present values");
    EXPECT_EQ(place.read("originals.json"), "{\"schema\":2,\"entr");
}

TEST(AFullRun, DoesNotKeepAnyDriveFromItsOriginal)
{
    Bench bench;
    SimulatedController& other = bench.simulated.add(evo_plus());
    const auto ledger = bench.open_ledger();
    for (const char* name : {"nvme0", "nvme1"})
        static_cast<void>(reconcile(bench.host, name, circumstances(bench.simulated), *ledger));
    const SmallFiles full(0);
    EXPECT_EQ(results(restore(bench.host, *ledger)), (std::vector{Result::put_back, Result::put_back}));
    EXPECT_EQ(bench.drive.tolerance, us(100000));
    EXPECT_EQ(other.tolerance, us(100000));
    EXPECT_TRUE(bench.open_ledger()->snapshot().entries.empty());
}

TEST(AFullRun, TellsWhatIsBackAndStillOnRecord)
{
    Bench bench;
    SimulatedController& other = bench.simulated.add(evo_plus());
    const auto ledger = bench.open_ledger();
    for (const char* name : {"nvme0", "nvme1"})
        static_cast<void>(reconcile(bench.host, name, circumstances(bench.simulated), *ledger));
    bench.drive.faults["get-feature"] = refusal_of(RefusalKind::timed_out);
    const SmallFiles full(0);
    const auto all = restore(bench.host, *ledger);
    EXPECT_EQ(results(all), (std::vector{Result::failed, Result::not_forgotten}));
    EXPECT_EQ(not_put_back(all), std::vector{bench.drive.id});
    EXPECT_EQ(other.tolerance, us(100000));
    EXPECT_EQ(bench.open_ledger()->snapshot().entries.size(), 2U) << "the sick one's original must not be lost";
}

TEST(AFullRun, LeavesADriveAloneUntilThereIsRoom)
{
    Bench bench;
    const auto ledger = bench.open_ledger();
    auto full = std::make_optional<SmallFiles>(0);
    const Outcome outcome = reconcile(bench.host, "nvme0", circumstances(bench.simulated), *ledger);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind, RefusalKind::try_later);
    EXPECT_TRUE(bench.host.writes.empty());
    EXPECT_TRUE(restore(bench.host, *ledger).empty());
    full.reset();
    EXPECT_TRUE(reconcile(bench.host, "nvme0", circumstances(bench.simulated), *ledger).in_order());
    EXPECT_EQ(bench.drive.tolerance, us(25000));
}

// ---------------------------------------------------------------------------------------------------------------------
// At every step.

struct Scene {
    std::string name;
    LatencyTolerance first;
    LatencyTolerance wanted;
    void (*prepare)(Bench& bench);
    std::string profile;
};
void PrintTo(const Scene& row, std::ostream* out)
{
    *out << row.name;
}

class ACrash : public testing::TestWithParam<Scene> {
protected:
    /// Runs `act`, ending the program before call `at`. True when it got to the end.
    template <class Act>
    static bool run_until(Bench& bench, std::size_t at, const Act& act)
    {
        bench.host.calls.clear();
        bench.host.before = [at](const std::string&, std::size_t number) -> Answer {
            if (number == at)
                throw Crash{};
            return {};
        };
        bool finished = true;
        try {
            act();
        } catch (const Crash&) {
            finished = false;
        }
        bench.host.before = nullptr;
        return finished;
    }
    static void prepare(Bench& bench)
    {
        bench.simulated.write_tolerance(bench.drive, GetParam().first);
        GetParam().prepare(bench);
    }
};

TEST_P(ACrash, AtAnyStepOfAReconcileCanBeUndone)
{
    for (std::size_t at = 0;; ++at) {
        SCOPED_TRACE(at);
        Bench bench;
        prepare(bench);
        const bool finished = run_until(bench, at, [&] { static_cast<void>(bench.reconcile(GetParam().profile)); });
        for (const Restored& restored : bench.restore())
            EXPECT_TRUE(restored.result == Result::put_back || restored.result == Result::already);
        EXPECT_EQ(bench.drive.tolerance, GetParam().first);
        EXPECT_TRUE(bench.open_ledger()->snapshot().entries.empty());
        if (finished)
            break;
    }
}

TEST_P(ACrash, AtAnyStepOfAReconcileIsFinishedByTheNext)
{
    for (std::size_t at = 0;; ++at) {
        SCOPED_TRACE(at);
        Bench bench;
        prepare(bench);
        const bool finished = run_until(bench, at, [&] { static_cast<void>(bench.reconcile(GetParam().profile)); });
        EXPECT_TRUE(bench.reconcile(GetParam().profile).in_order());
        EXPECT_TRUE(bench.drive.tolerance.same_effect(GetParam().wanted)) << bench.drive.tolerance.kernel_text();
        static_cast<void>(bench.restore());
        EXPECT_EQ(bench.drive.tolerance, GetParam().first);
        if (finished)
            break;
    }
}

TEST_P(ACrash, AtAnyStepOfARestoreIsFinishedByTheNext)
{
    for (std::size_t at = 0;; ++at) {
        SCOPED_TRACE(at);
        Bench bench;
        prepare(bench);
        static_cast<void>(bench.reconcile(GetParam().profile));
        const bool finished = run_until(bench, at, [&] { static_cast<void>(bench.restore()); });
        static_cast<void>(bench.restore());
        EXPECT_EQ(bench.drive.tolerance, GetParam().first);
        EXPECT_TRUE(bench.open_ledger()->snapshot().entries.empty());
        if (finished)
            break;
    }
}

void nothing_more(Bench&) {}
void another_table(Bench& bench)
{
    static_cast<void>(bench.reconcile());
    bench.drive.apst = {};
}
void another_profile(Bench& bench)
{
    static_cast<void>(bench.reconcile("performance"));
}

INSTANTIATE_TEST_SUITE_P(With, ACrash,
                         testing::Values(Scene{"the_first_write", us(100000), us(25000), nothing_more, "balanced"},
                                         Scene{"auto", LatencyTolerance::automatic(), us(25000), nothing_more, "balanced"},
                                         Scene{"any", LatencyTolerance::any(), us(25000), nothing_more, "balanced"},
                                         Scene{"a_repair", us(100000), us(25000), another_table, "balanced"},
                                         Scene{"a_change_of_profile", us(100000), us(25000), another_profile, "balanced"},
                                         Scene{"no_constraint_over_auto", LatencyTolerance::automatic(),
                                               LatencyTolerance::any(), another_profile, "power-saver"}),
                         [](const auto& row) { return row.param.name; });

TEST(AnyRefusal, AtAnyStepOfARestoreKeepsTheOriginalUntilItIsBack)
{
    std::size_t steps = 0;
    {
        Bench bench;
        static_cast<void>(bench.reconcile());
        bench.host.calls.clear();
        static_cast<void>(bench.restore());
        steps = bench.host.calls.size();
    }
    ASSERT_GT(steps, 10U);
    for (const RefusalKind kind : {RefusalKind::try_later, RefusalKind::denied, RefusalKind::timed_out, RefusalKind::failed,
                                   RefusalKind::invalid, RefusalKind::unsupported})
        for (std::size_t at = 0; at < steps; ++at) {
            Bench bench;
            static_cast<void>(bench.reconcile());
            bench.host.calls.clear();
            bench.host.before = [&](const std::string&, std::size_t number) -> Answer {
                return number == at ? Answer{refusal_of(kind)} : Answer{};
            };
            static_cast<void>(bench.restore());
            SCOPED_TRACE(std::string(word(kind)) + " at call " + std::to_string(at) + ", " + bench.host.calls.at(at));
            bench.host.before = nullptr;
            static_cast<void>(bench.restore());
            EXPECT_EQ(bench.drive.tolerance, us(100000));
            EXPECT_TRUE(bench.open_ledger()->snapshot().entries.empty());
        }
}

TEST(ADriveThatLeaves, AtAnyStepOfARestoreIsForgotten)
{
    for (std::size_t at = 0;; ++at) {
        SCOPED_TRACE(at);
        Bench bench;
        static_cast<void>(bench.reconcile());
        bench.host.calls.clear();
        bench.host.before = [&](const std::string&, std::size_t number) -> Answer {
            if (number == at)
                bench.simulated.remove("nvme0");
            return {};
        };
        const auto all = bench.restore();
        ASSERT_EQ(all.size(), 1U);
        if (bench.host.calls.size() <= at)
            break;
        EXPECT_TRUE(all[0].result == Result::gone || all[0].result == Result::put_back)
            << bench.host.calls.at(at) << ": " << (all[0].error ? all[0].error->text() : "");
    }
}

} // namespace
} // namespace nvmepolicy
