// SPDX-License-Identifier: LGPL-2.1-or-later
// What a running service adds to a look: memory, the breaker, and wishes that change while a drive keeps a job waiting.
#include <filesystem>

#include "reconcile/reconcile.h"
#include "small_files.h"
#include "temporary_directory.h"
#include "watched_host.h"

namespace nvmepolicy {
namespace {

using Writes = std::vector<std::string>;

/// A service in the moment between two looks.
struct Service {
    SimulatedHost simulated;
    SimulatedController* drive;
    WatchedHost host{simulated};
    LedgerStore ledger;
    BreakerStore in_memory;
    BreakerStore* breaker = &in_memory;
    SessionMemory memory;
    std::atomic<std::uint64_t> wishes{0};
    std::uint64_t begun_under = 0;
    Milliseconds now{1'000'000};
    std::string profile = "balanced";
    Policy policy;

    explicit Service(const DriveFile& file = evo_plus(), std::uint64_t boot_default = 100000)
    {
        simulated.machine.default_ps_max_latency_us = boot_default;
        drive = &simulated.add(file);
    }
    Circumstances circumstances()
    {
        Circumstances c = nvmepolicy::circumstances(simulated, profile);
        c.policy = policy;
        c.breaker = breaker;
        return c;
    }
    Outcome reconcile(bool claim = false)
    {
        Session session{breaker, memory, now, &wishes, begun_under, claim};
        Outcome outcome = nvmepolicy::reconcile(host, drive->name, circumstances(), ledger, &session);
        memory = session.memory;
        return outcome;
    }
    Outcome look()
    {
        Session session{breaker, memory, now, &wishes, begun_under, false};
        Outcome outcome = nvmepolicy::look(host, drive->name, circumstances(), ledger, &session);
        memory = session.memory;
        return outcome;
    }
    void somebody_writes(const LatencyTolerance& value) { simulated.write_tolerance(*drive, value); }
    Writes writes() { return std::exchange(host.writes, {}); }
};

TEST(APlan, ClaimsWhatSomebodyElseWroteAndAsksNoDrive)
{
    Service s;
    ASSERT_TRUE(s.reconcile().in_order());
    s.somebody_writes(us(7000));
    const Outcome seen = s.reconcile();
    EXPECT_TRUE(seen.plan.empty()) << "theirs stays";
    const std::size_t calls = s.host.calls.size();
    const Plan plan = plan_by(seen, s.circumstances(), s.ledger);
    ASSERT_EQ(plan.changes.size(), 1U);
    EXPECT_EQ(std::get<ToleranceChange>(plan.changes[0]).from, us(7000));
    EXPECT_EQ(std::get<ToleranceChange>(plan.changes[0]).to, us(25000));
    s.profile = "performance";
    EXPECT_EQ(std::get<ToleranceChange>(plan_by(seen, s.circumstances(), s.ledger).changes[0]).to, us(0));
    EXPECT_EQ(s.host.calls.size(), calls);
    EXPECT_TRUE(plan_by(Outcome{}, s.circumstances(), s.ledger).empty());
}

TEST(ASession, LeavesWhatSomebodyElseWroteHigherOrLower)
{
    for (const auto& theirs : {us(60000), us(5000), us(0), LatencyTolerance::any()}) {
        Service s;
        EXPECT_TRUE(s.reconcile().verdict.verified());
        EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
        s.somebody_writes(theirs);
        const Outcome outcome = s.reconcile();
        EXPECT_EQ(outcome.verdict.agreement, Agreement::left_to_another);
        EXPECT_EQ(outcome.foreign.stand, ForeignStand::yield);
        EXPECT_EQ(outcome.foreign_value, theirs);
        EXPECT_TRUE(outcome.foreign.news);
        EXPECT_TRUE(outcome.plan.empty());
        EXPECT_FALSE(s.reconcile().foreign.news);
        EXPECT_EQ(s.writes(), Writes{});
        EXPECT_EQ(s.drive->tolerance, theirs);
    }
}

TEST(ASession, LeavesTheirsWhenThePowerSourceChanges)
{
    Service s;
    static_cast<void>(s.reconcile());
    s.somebody_writes(us(60000));
    static_cast<void>(s.reconcile());
    s.simulated.machine.power_source = PowerSource::battery;
    EXPECT_EQ(s.reconcile().verdict.agreement, Agreement::left_to_another);
    EXPECT_EQ(s.drive->tolerance, us(60000));
}

TEST(ASession, ClaimsBackWhenSomebodyAsksForOurs)
{
    Service s;
    static_cast<void>(s.reconcile());
    for (const auto& theirs : {us(60000), us(0)}) {
        s.somebody_writes(theirs);
        static_cast<void>(s.reconcile());
        static_cast<void>(s.writes());
        const Outcome outcome = s.reconcile(true);
        EXPECT_TRUE(outcome.verdict.verified());
        EXPECT_EQ(outcome.foreign.stand, ForeignStand::none);
        EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
        EXPECT_EQ(s.drive->tolerance, us(25000));
    }
}

TEST(ASession, ThatClaimsWritesNothingWhereOursIsThere)
{
    Service s;
    static_cast<void>(s.reconcile());
    static_cast<void>(s.writes());
    EXPECT_TRUE(s.reconcile(true).verdict.verified());
    EXPECT_EQ(s.writes(), Writes{});
}

TEST(ASession, EnforcesWithPausesAndThenYields)
{
    Service s;
    s.policy.apst.on_conflict.value = OnConflict::enforce;
    static_cast<void>(s.reconcile());
    static_cast<void>(s.writes());
    const auto fight = [&](Milliseconds later) {
        s.now += later;
        s.somebody_writes(us(60000));
        return s.reconcile();
    };
    EXPECT_TRUE(fight(Milliseconds{0}).verdict.verified());
    EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
    Outcome outcome = fight(Milliseconds{500});
    EXPECT_EQ(outcome.foreign.stand, ForeignStand::wait);
    EXPECT_EQ(outcome.foreign.pause, Milliseconds{1'500});
    EXPECT_EQ(s.writes(), Writes{});
    EXPECT_TRUE(fight(Milliseconds{1'500}).verdict.verified());
    EXPECT_TRUE(fight(Milliseconds{8'000}).verdict.verified());
    EXPECT_EQ(s.writes(), (Writes{"nvme0 25000", "nvme0 25000"}));
    EXPECT_EQ(fight(Milliseconds{60'000}).foreign.stand, ForeignStand::yield);
    EXPECT_EQ(s.writes(), Writes{});
    EXPECT_EQ(s.drive->tolerance, us(60000));
}

TEST(ASession, ManagesAgainWhatAStopPutBackWithoutBeingAbleToRecordIt)
{
    const TemporaryDirectory place;
    Service s;
    {
        const auto ledger = *LedgerStore::open(place / "originals.json");
        Session session{s.breaker, s.memory, s.now, &s.wishes, s.begun_under, false};
        EXPECT_TRUE(nvmepolicy::reconcile(s.host, "nvme0", s.circumstances(), *ledger, &session).verdict.verified());
        std::filesystem::create_directories(place / "aside");
        std::filesystem::rename(place / "originals.json", place / "aside/originals.json");
        std::filesystem::create_directories(place / "originals.json/in-the-way");
        const auto restored = restore(s.host, *ledger);
        ASSERT_EQ(restored.size(), 1U);
        EXPECT_EQ(restored[0].result, Restored::Result::not_forgotten);
        EXPECT_EQ(s.drive->tolerance, us(100000));
    }
    std::filesystem::remove_all(place / "originals.json");
    std::filesystem::rename(place / "aside/originals.json", place / "originals.json");
    const auto ledger = *LedgerStore::open(place / "originals.json");
    ASSERT_TRUE(ledger->find(s.drive->id));
    static_cast<void>(s.writes());
    Session session{s.breaker, {}, s.now, &s.wishes, s.begun_under, false};
    const Outcome outcome = nvmepolicy::reconcile(s.host, "nvme0", s.circumstances(), *ledger, &session);
    EXPECT_EQ(outcome.foreign.stand, ForeignStand::none);
    EXPECT_TRUE(outcome.verdict.verified()) << outcome.verdict.reason;
    EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
    EXPECT_EQ(ledger->find(s.drive->id)->original(), us(100000));
}

TEST(ASession, CountsOnlyFightsInWhichItWrote)
{
    Service s;
    s.policy.apst.on_conflict.value = OnConflict::enforce;
    static_cast<void>(s.reconcile());
    s.somebody_writes(us(60000));
    static_cast<void>(s.writes());

    s.host.before = [](const std::string& call, std::size_t) -> Answer {
        return call.starts_with("write-tolerance") ? Answer{refusal_of(RefusalKind::try_later)} : Answer{};
    };
    for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(s.reconcile().error) << "refused " << i;
    s.host.before = nullptr;
    s.wishes = 1;
    for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(s.reconcile().superseded) << i;
    EXPECT_EQ(s.memory.fights, 0);

    s.begun_under = 1;
    EXPECT_TRUE(s.reconcile().verdict.verified()) << "neither used up a fight, and there is no pause to wait for";
    EXPECT_EQ(s.memory.fights, 1);
    EXPECT_EQ(s.drive->tolerance, us(25000));
}

TEST(ASession, CountsAFightWithARepairOnce)
{
    Service s;
    s.policy.apst.on_conflict.value = OnConflict::enforce;
    static_cast<void>(s.reconcile());
    s.somebody_writes(us(0));
    s.drive->refuses_apst = true;
    static_cast<void>(s.writes());
    static_cast<void>(s.reconcile());
    EXPECT_EQ(s.writes(), (Writes{"nvme0 25000", "nvme0 24999", "nvme0 25000"}));
    EXPECT_EQ(s.memory.fights, 1);
}

TEST(ASession, KnowsANewControllerObjectFromTheOldOne)
{
    Service s;
    static_cast<void>(s.reconcile());
    s.somebody_writes(us(60000));
    static_cast<void>(s.reconcile());
    const ControllerId id = s.drive->id;
    s.simulated.remove("nvme0");
    s.drive = &s.simulated.add(evo_plus());
    s.drive->id = id; // the same drive comes back, with the kernel's default
    static_cast<void>(s.writes());
    const Outcome outcome = s.reconcile();
    EXPECT_EQ(outcome.foreign.stand, ForeignStand::none);
    EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
    EXPECT_EQ(s.memory.object, s.drive->object);
    EXPECT_EQ(s.memory.foreign_writes, 0U);
}

TEST(ASession, WritesOverAutoThatAResetHasLeft)
{
    Service s;
    static_cast<void>(s.reconcile());
    static_cast<void>(s.writes());
    s.somebody_writes(LatencyTolerance::automatic());
    EXPECT_TRUE(s.reconcile().verdict.verified());
    EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
}

TEST(AStubbornTable, IsRepairedOnceAndNotAgain)
{
    Service s;
    s.drive->refuses_apst = true;
    const Outcome outcome = s.reconcile();
    EXPECT_EQ(outcome.verdict.agreement, Agreement::table_differs);
    EXPECT_EQ(s.writes(), (Writes{"nvme0 25000", "nvme0 24999", "nvme0 25000"}));
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(s.reconcile().verdict.agreement, Agreement::table_differs);
    EXPECT_EQ(s.writes(), Writes{});
}

TEST(AStubbornTable, IsTriedAgainWhenSomebodyAsks)
{
    Service s;
    s.drive->refuses_apst = true;
    static_cast<void>(s.reconcile());
    static_cast<void>(s.writes());
    s.drive->refuses_apst = false;
    EXPECT_TRUE(s.reconcile(true).verdict.verified());
    EXPECT_EQ(s.writes(), (Writes{"nvme0 24999", "nvme0 25000"}));
}

TEST(AStubbornTable, IsTriedAgainAtAnotherToleranceAndWhenTheTableIsAnother)
{
    Service s;
    s.drive->refuses_apst = true;
    static_cast<void>(s.reconcile());
    static_cast<void>(s.writes());
    s.profile = "performance";
    static_cast<void>(s.reconcile());
    EXPECT_EQ(s.writes(), (Writes{"nvme0 0", "nvme0 1", "nvme0 0"}));
    s.drive->apst = ApstFeature{};
    s.drive->apst.enabled = true; // somebody's own table
    s.drive->refuses_apst = false;
    EXPECT_TRUE(s.reconcile().verdict.verified());
    EXPECT_EQ(s.writes(), (Writes{"nvme0 1", "nvme0 0"}));
}

TEST(AStubbornTable, IsNotOneThatAFullDiskKeptUsFromRepairing)
{
    const TemporaryDirectory place;
    const auto ledger = *LedgerStore::open(place / "originals.json");
    Service s;
    s.somebody_writes(us(25000));
    s.drive->apst = ApstFeature{};
    Session session{s.breaker, s.memory, s.now, &s.wishes, s.begun_under, false};
    const auto reconcile = [&] { return nvmepolicy::reconcile(s.host, "nvme0", s.circumstances(), *ledger, &session); };
    {
        const SmallFiles full(0);
        EXPECT_EQ(reconcile().error->kind, RefusalKind::try_later);
    }
    EXPECT_EQ(s.writes(), Writes{});
    EXPECT_TRUE(reconcile().verdict.verified());
    EXPECT_EQ(s.writes(), (Writes{"nvme0 24999", "nvme0 25000"}));
}

TEST(AConfirmation, ThatAFullDiskRefusedIsCaughtUpWithAtTheNextLook)
{
    const TemporaryDirectory place;
    const auto ledger = *LedgerStore::open(place / "originals.json");
    Service s;
    Session session{s.breaker, s.memory, s.now, &s.wishes, s.begun_under, false};
    const auto reconcile = [&] { return nvmepolicy::reconcile(s.host, "nvme0", s.circumstances(), *ledger, &session); };
    {
        std::optional<SmallFiles> full;
        s.host.before = [&full](const std::string& call, std::size_t) -> Answer {
            if (call.starts_with("write"))
                full.emplace(0U);
            return {};
        };
        EXPECT_EQ(s.drive->tolerance, us(100000));
        EXPECT_TRUE(reconcile().error);
        EXPECT_EQ(s.drive->tolerance, us(25000));
        EXPECT_TRUE(reconcile().error) << "still full";
        s.host.before = nullptr;
    }
    const auto recorded = [&place] {
        return (*LedgerStore::open(place / "originals.json"))->snapshot().entries.begin()->second;
    };
    EXPECT_EQ(recorded().ours, std::nullopt);
    EXPECT_TRUE(recorded().is_ours(us(25000))) << "it was announced";
    EXPECT_TRUE(reconcile().in_order());
    EXPECT_EQ(recorded().ours, us(25000));
}

TEST(ASupersededWish, WritesNothing)
{
    Service s;
    s.wishes = 1;
    const Outcome outcome = s.reconcile();
    EXPECT_TRUE(outcome.superseded);
    EXPECT_FALSE(outcome.applied);
    EXPECT_TRUE(outcome.plan.empty());
    EXPECT_EQ(s.writes(), Writes{});
    EXPECT_FALSE(s.ledger.find(s.drive->id));
    s.begun_under = 1;
    EXPECT_TRUE(s.reconcile().verdict.verified());
    EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
}

TEST(ASupersededWish, IsNoneWhereThereIsNothingToWrite)
{
    Service s;
    static_cast<void>(s.reconcile());
    s.wishes = 1;
    EXPECT_FALSE(s.reconcile().superseded);
}

TEST(ASupersededWish, IsNoticedAfterTheDriveHasKeptTheLookWaiting)
{
    Service s;
    s.host.before = [&](const std::string& call, std::size_t) -> Answer {
        if (call == "get-feature")
            s.wishes = 1; // meanwhile
        return {};
    };
    EXPECT_TRUE(s.reconcile().superseded);
    EXPECT_EQ(s.writes(), Writes{});
}

TEST(ASupersededWish, IsNoticedUpToTheWriteItself)
{
    // Between the last check and the write lie two fsyncs and, behind somebody else's drive, a minute of waiting for the turn
    // at the PM QoS lock. A stop restores in that time.
    Service s;
    std::size_t serials = 0;
    s.host.before = [&](const std::string& call, std::size_t) -> Answer {
        if (call == "serial" && ++serials == 3) // apply() makes sure whose directory it is: the last thing before it writes
            s.wishes = 1;
        return {};
    };
    static_cast<void>(s.reconcile());
    EXPECT_EQ(s.writes(), Writes{});
}

TEST(ASupersededWish, BetweenWriteAndRepairKeepsWhatWasDoneInThePlan)
{
    Service s;
    s.drive->refuses_apst = true;
    s.host.after_write = [&] { s.wishes = 1; };
    const Outcome outcome = s.reconcile();
    EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
    EXPECT_EQ(outcome.plan.changes.size(), 1U);
    EXPECT_FALSE(outcome.superseded) << "superseded means that nothing was written, and so nobody hears of this change";
}

// --- the breaker ---------------------------------------------------------------------------------------------------------

/// Booted at 25 ms, wants any: deeper than at boot.
struct DeepService : Service {
    TemporaryDirectory root;
    std::unique_ptr<BreakerStore> store;
    int boot = 0;
    DeepService() : Service(evo_plus(), 25000)
    {
        profile = "power-saver";
        start();
    }
    /// A new start of the service, in a new boot or the same one.
    void start(bool reboot = true)
    {
        boot += reboot ? 1 : 0;
        const std::string run = root / ("run" + std::to_string(boot));
        std::filesystem::create_directories(run);
        std::optional<Refusal> complaint;
        store = BreakerStore::open(root / "state", run, complaint);
        EXPECT_FALSE(complaint);
        breaker = store.get();
        memory = {};
    }
};

TEST(GoingDeeper, IsOnTrialBeforeTheWrite)
{
    DeepService s;
    bool on_disk_at_the_write = false;
    s.host.before = [&](const std::string& call, std::size_t) -> Answer {
        if (call.starts_with("write-tolerance"))
            on_disk_at_the_write = std::filesystem::exists(s.root / "state/breaker.json");
        return {};
    };
    EXPECT_TRUE(s.reconcile().verdict.verified());
    EXPECT_EQ(s.writes(), Writes{"nvme0 any"});
    EXPECT_TRUE(on_disk_at_the_write);
    s.start();
    EXPECT_TRUE(s.store->tripped(s.drive->id)) << "a crash of the machine after this";
}

TEST(GoingDeeper, IsNotDoneWithoutTheMarkerHoweverOftenItIsTried)
{
    DeepService s;
    std::filesystem::create_directories(s.root / "state/breaker.json.new");
    for (int i = 0; i < 3; ++i) {
        const Outcome outcome = s.reconcile();
        EXPECT_TRUE(outcome.error) << "look " << i;
        EXPECT_FALSE(outcome.applied);
        EXPECT_EQ(s.writes(), Writes{}) << "look " << i;
    }
    EXPECT_EQ(s.drive->tolerance, us(25000));
}

TEST(GoingDeeper, LessDeepNeedsNoMarker)
{
    DeepService s;
    std::filesystem::create_directories(s.root / "state/breaker.json.new");
    s.profile = "performance";
    EXPECT_TRUE(s.reconcile().verdict.verified());
    EXPECT_EQ(s.writes(), Writes{"nvme0 0"});
}

TEST(GoingDeeper, IsOnTrialAlsoWhenTheValueIsStillThereFromAnEarlierStart)
{
    DeepService s;
    EXPECT_TRUE(s.reconcile().verdict.verified());
    ASSERT_TRUE(s.store->end_trials()); // on_exit = "keep"
    s.start(false);
    static_cast<void>(s.writes());
    EXPECT_TRUE(s.reconcile().verdict.verified());
    EXPECT_EQ(s.writes(), Writes{}) << "there is nothing to write";
    s.start();
    EXPECT_TRUE(s.store->tripped(s.drive->id)) << "the machine went down while the drive was deeper than at boot";
}

TEST(GoingDeeper, StaysOnTrialWhenAStopCouldNotPutTheDriveBack)
{
    for (const bool answers : {true, false}) {
        DeepService s;
        EXPECT_TRUE(s.reconcile().verdict.verified());
        if (!answers)
            s.drive->faults["get-feature"] = refusal_of(RefusalKind::timed_out);
        const auto all = restore(s.host, s.ledger);
        EXPECT_EQ(not_put_back(all), answers ? std::vector<ControllerId>{} : std::vector{s.drive->id});
        ASSERT_TRUE(s.store->end_trials(not_put_back(all)));
        s.start();
        EXPECT_EQ(s.store->tripped(s.drive->id).has_value(), !answers);
    }
}

TEST(GoingDeeper, EndsWithATrip)
{
    DeepService s;
    EXPECT_TRUE(s.reconcile().verdict.verified());
    ASSERT_TRUE(s.store->trip(s.drive->id, "three drop-outs"));
    static_cast<void>(s.writes());
    const Outcome outcome = s.reconcile();
    EXPECT_TRUE(outcome.verdict.verified());
    EXPECT_EQ(s.writes(), Writes{"nvme0 25000"});
    EXPECT_EQ(outcome.decision.rule, ToleranceRule::boot_value);
}

TEST(GoingDeeper, EndsWithATripThatIsRecordedOnceTheDiskTakesIt)
{
    DeepService s;
    EXPECT_TRUE(s.reconcile().verdict.verified());
    static_cast<void>(s.writes());
    {
        const SmallFiles full(0);
        ASSERT_FALSE(s.store->trip(s.drive->id, "three drop-outs"));
        EXPECT_TRUE(s.reconcile().error) << "it is not on disk yet";
        EXPECT_EQ(s.writes(), Writes{"nvme0 25000"}) << "in force all the same";
    }
    EXPECT_TRUE(s.reconcile().in_order());
    s.start(false);
    EXPECT_EQ(s.store->tripped(s.drive->id), "three drop-outs");
}

TEST(GoingDeeper, WaitsUntilBootsCanBeToldApart)
{
    DeepService s;
    s.boot = 7;
    std::filesystem::create_directories(s.root / "run7/boot.new"); // as good as a full /run
    std::optional<Refusal> complaint;
    s.store = BreakerStore::open(s.root / "state", s.root / "run7", complaint);
    s.breaker = s.store.get();
    EXPECT_TRUE(complaint);
    EXPECT_EQ(s.reconcile().decision.rule, ToleranceRule::boot_value);
    EXPECT_EQ(s.writes(), Writes{});
    std::filesystem::remove(s.root / "run7/boot.new");
    EXPECT_TRUE(s.reconcile().verdict.verified());
    EXPECT_EQ(s.writes(), Writes{"nvme0 any"});
}

TEST(ADryLook, WritesNothingAndBeginsNoTrial)
{
    DeepService s;
    const Outcome outcome = s.look();
    EXPECT_EQ(outcome.plan.changes.size(), 1U);
    EXPECT_FALSE(outcome.applied);
    EXPECT_EQ(s.writes(), Writes{});
    EXPECT_FALSE(std::filesystem::exists(s.root / "state/breaker.json"));
    EXPECT_FALSE(s.ledger.find(s.drive->id));
    s.start();
    EXPECT_FALSE(s.store->tripped(s.drive->id));
}

} // namespace
} // namespace nvmepolicy
