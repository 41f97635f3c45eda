// SPDX-License-Identifier: LGPL-2.1-or-later
// The drop-out breaker: what counts as deeper, what trips it, and what survives a crash of the machine.
#include "nvmepolicy/breaker.h"

#include <filesystem>

#include "drives.h"
#include "host/breaker_store.h"
#include "temporary_directory.h"

namespace nvmepolicy {
namespace {

const ControllerId one{"nqn.test:one", "SERIAL1", 1, {}};
const ControllerId other{"nqn.test:other", "SERIAL2", 2, {}};

Milliseconds minutes(std::int64_t m)
{
    return Milliseconds{m * 60 * 1000};
}

// --- goes_deeper ---------------------------------------------------------------------------------------------------------

struct Depth {
    LatencyTolerance wanted;
    LatencyTolerance first;
    bool deeper;
};

/// PS3 wakes in 4.6 ms, PS4 in 43 ms.
const std::vector<PowerState> evo{operational(0), operational(1), operational(2), sleep_state(3, 1600, 4600),
                                  sleep_state(4, 1600, 43000)};

TEST(GoesDeeper, AtEachBorder)
{
    const auto any = LatencyTolerance::any();
    const auto automatic = LatencyTolerance::automatic();
    for (const Depth& row : {Depth{us(4600), us(4599), true},
                             Depth{us(4599), us(0), false},
                             Depth{us(4600), us(4600), false},
                             Depth{us(42999), us(4600), false},
                             Depth{us(43000), us(42999), true},
                             Depth{us(43000), us(4600), true},
                             Depth{us(100000), us(43000), false},
                             Depth{us(25000), us(100000), false},
                             Depth{us(1), us(0), false},
                             Depth{us(4600), us(0), true},
                             Depth{us(0), us(0), false},
                             Depth{us(0), us(100000), false},
                             Depth{us(0), any, false},
                             Depth{any, us(0), true},
                             Depth{any, us(42999), true},
                             Depth{any, us(43000), false},
                             Depth{any, automatic, false},
                             Depth{automatic, any, false},
                             Depth{automatic, us(25000), true},
                             Depth{us(43000), automatic, false}})
        EXPECT_EQ(goes_deeper(row.wanted, row.first, evo), row.deeper)
            << row.wanted.kernel_text() << " after " << row.first.kernel_text();
}

TEST(GoesDeeper, AStateThatLeavesItsLatencyUnreportedIsAdmittedByOne)
{
    const std::vector<PowerState> states{operational(0), sleep_state(1, 0, 0)};
    EXPECT_TRUE(goes_deeper(us(1), us(0), states));
    EXPECT_FALSE(goes_deeper(us(100000), us(1), states));
    EXPECT_FALSE(goes_deeper(us(0), us(0), states));
}

TEST(GoesDeeper, OperationalStatesDoNotCount)
{
    PowerState slow = operational(1);
    slow.exit_latency = Microseconds{50'000};
    const std::vector<PowerState> states{operational(0), slow};
    EXPECT_FALSE(goes_deeper(LatencyTolerance::any(), us(0), states));
    EXPECT_FALSE(goes_deeper(LatencyTolerance::any(), us(0), {}));
}

// --- drop-outs -----------------------------------------------------------------------------------------------------------

TEST(DropOutsTrip, WithThreeInAnHour)
{
    DropOuts seen;
    EXPECT_FALSE(note_drop_out(seen, minutes(10)));
    EXPECT_FALSE(note_drop_out(seen, minutes(40)));
    EXPECT_TRUE(note_drop_out(seen, minutes(70))) << "60 minutes after the first";
}

TEST(DropOutsTrip, NotWithThreeInSixtyOneMinutes)
{
    DropOuts seen;
    EXPECT_FALSE(note_drop_out(seen, minutes(10)));
    EXPECT_FALSE(note_drop_out(seen, minutes(40)));
    EXPECT_FALSE(note_drop_out(seen, minutes(71)));
    EXPECT_EQ(seen.times.size(), 2U);
    EXPECT_TRUE(note_drop_out(seen, minutes(72))) << "40, 71 and 72";
}

TEST(DropOutsTrip, AtOneAndTheSameInstantToo)
{
    DropOuts seen;
    EXPECT_FALSE(note_drop_out(seen, minutes(1)));
    EXPECT_FALSE(note_drop_out(seen, minutes(1)));
    EXPECT_TRUE(note_drop_out(seen, minutes(1)));
}

TEST(DropOutsTrip, NeverWithOneEveryHalfHourAndABit)
{
    DropOuts seen;
    for (int i = 0; i < 1000; ++i)
        EXPECT_FALSE(note_drop_out(seen, minutes(31 * i))) << i;
    EXPECT_LE(seen.times.size(), 2U);
}

// --- the record ----------------------------------------------------------------------------------------------------------

TEST(AfterABoot, AnUncleanTrialIsATripAndACleanOneNothing)
{
    BreakerRecord record{{{one, "boot-1", false}, {other, "boot-1", true}}, {}};
    const BreakerRecord next = after_boot(record, "boot-2", 1'700'000'000);
    EXPECT_TRUE(next.trials.empty());
    ASSERT_EQ(next.trips.size(), 1U);
    EXPECT_EQ(next.trips[0].controller, one);
    EXPECT_EQ(next.trips[0].at, 1'700'000'000);
    EXPECT_NE(next.trips[0].reason.find("without a clean stop"), std::string::npos);
    EXPECT_NE(next.trip_of(one), nullptr);
    EXPECT_EQ(next.trip_of(other), nullptr);
}

TEST(AfterABoot, TheSameBootIsARestartOfOurs)
{
    const BreakerRecord record{{{one, "boot-1", false}}, {}};
    EXPECT_EQ(after_boot(record, "boot-1", 5), record);
    EXPECT_TRUE(record.on_trial(one, "boot-1"));
    EXPECT_FALSE(record.on_trial(one, "boot-2"));
    EXPECT_FALSE(record.on_trial(other, "boot-1"));
}

TEST(AfterABoot, AnOldTripKeepsItsReason)
{
    const BreakerRecord record{{{one, "boot-1", false}}, {{one, "three drop-outs", 7}}};
    const BreakerRecord next = after_boot(record, "boot-2", 1'700'000'000);
    ASSERT_EQ(next.trips.size(), 1U);
    EXPECT_EQ(next.trips[0].reason, "three drop-outs");
    EXPECT_EQ(next.trips[0].at, 7);
}

TEST(ABreakerRecord, ComesBackAsItWasWritten)
{
    const ControllerId strange{"nqn \"quoted\"\n\xff", "\x01\xc3\x28", 65535, "traddr=10.0.2.2,trsvcid=4420"};
    const BreakerRecord record{{{one, "0123456789abcdef", false}, {other, "f", true}},
                               {{one, "because", 1'764'500'000}, {other, "", -1}}};
    const auto back = parse_breaker("x", format_breaker(record));
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(*back, record);
    const auto empty = parse_breaker("x", format_breaker({}));
    ASSERT_TRUE(empty);
    EXPECT_EQ(*empty, BreakerRecord{});
    EXPECT_TRUE(parse_breaker("x", format_breaker({{{strange, "b", false}}, {}}))) << "whatever a drive calls itself";
}

TEST(ABreakerRecord, ThatIsDamagedIsRefusedWhole)
{
    const std::string good = format_breaker({{{one, "boot-1", false}}, {{other, "because", 7}}});
    for (std::size_t length = 0; length + 2 < good.size(); ++length)
        EXPECT_FALSE(parse_breaker("x", good.substr(0, length))) << length;
    const auto with = [&](const std::string& what, const std::string& instead) {
        std::string text = good;
        const auto at = text.find(what);
        EXPECT_NE(at, std::string::npos) << what;
        return text.replace(at, what.size(), instead);
    };
    for (const std::string& text :
         {with("\"schema\": 1", "\"schema\": 2"), with("\"schema\": 1", "\"schema\": \"1\""),
          with("\"clean\": false", "\"clean\": 0"), with("\"clean\"", "\"cleaned\""), with("\"at\": 7", "\"at\": \"7\""),
          with("\"at\": 7", "\"at\": 7.5"), with("\"cntlid\": 1", "\"cntlid\": 65536"), with("\"cntlid\": 1", "\"cntlid\": -1"),
          with("\"serial\"", "\"serials\""), with("\"boot_id\": \"boot-1\"", "\"boot_id\": null"), std::string("[]"),
          std::string("null"), std::string("{}"), std::string(R"({"schema":1,"trials":{},"trips":[]})"),
          std::string(R"({"schema":1,"trials":[1],"trips":[]})"), std::string(R"({"schema":1,"trials":[],"trips":["x"]})"),
          std::string(R"({"schema":1,"trials":[],"trips":"x"})"), std::string("\0\0\0\0", 4)}) {
        const auto parsed = parse_breaker("/var/lib/nvmepolicyd/breaker.json", text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().kind, RefusalKind::invalid);
        EXPECT_EQ(parsed.error().where, "/var/lib/nvmepolicyd/breaker.json");
    }
}

// --- on disk -------------------------------------------------------------------------------------------------------------

/// A machine's /var/lib and, for each boot, a /run.
struct Disk {
    TemporaryDirectory root;
    int boots = 0;
    std::optional<Refusal> complaint;
    Disk() { reboot(); }
    void reboot() { std::filesystem::create_directories(run(++boots)); }
    [[nodiscard]] std::string run(int boot) const { return root / ("run" + std::to_string(boot)); }
    [[nodiscard]] std::string state() const { return root / "state"; }
    std::unique_ptr<BreakerStore> open()
    {
        complaint.reset();
        return BreakerStore::open(state(), run(boots), complaint);
    }
    [[nodiscard]] BreakerRecord record() const
    {
        const auto parsed = parse_breaker("breaker.json", root.read("state/breaker.json"));
        EXPECT_TRUE(parsed);
        return parsed ? *parsed : BreakerRecord{};
    }
};

TEST(TheBreakerStore, MakesItsDirectoryAndComplainsOfNothing)
{
    Disk disk;
    auto store = disk.open();
    EXPECT_FALSE(disk.complaint);
    EXPECT_EQ(store->tripped(one), std::nullopt);
    EXPECT_TRUE(std::filesystem::is_directory(disk.state()));
    EXPECT_EQ(std::filesystem::file_size(disk.run(1) + "/boot"), 32U);
}

TEST(TheBreakerStore, HasATrialOnDiskBeforeItReturns)
{
    Disk disk;
    auto store = disk.open();
    ASSERT_TRUE(store->begin_trial(one));
    const BreakerRecord record = disk.record();
    ASSERT_EQ(record.trials.size(), 1U);
    EXPECT_EQ(record.trials[0].controller, one);
    EXPECT_FALSE(record.trials[0].clean);
    ASSERT_TRUE(store->begin_trial(one));
    EXPECT_EQ(disk.record().trials.size(), 1U) << "once";
}

TEST(TheBreakerStore, TripsAfterAnUncleanBoot)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->begin_trial(one));
    disk.reboot();
    auto store = disk.open();
    EXPECT_FALSE(disk.complaint);
    EXPECT_TRUE(store->tripped(one));
    EXPECT_FALSE(store->tripped(other));
    disk.reboot();
    EXPECT_TRUE(disk.open()->tripped(one)) << "and stays tripped over further boots that nothing is written in";
}

TEST(TheBreakerStore, DoesNotTripWhenOnlyWeWereRestarted)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->begin_trial(one));
    auto store = disk.open(); // kill -9 and a new start in the same boot
    EXPECT_FALSE(store->tripped(one));
    disk.reboot();
    EXPECT_TRUE(disk.open()->tripped(one)) << "the trial of the first start still counts";
}

TEST(TheBreakerStore, DoesNotTripAfterACleanStop)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->begin_trial(one));
        ASSERT_TRUE(store->end_trials());
    }
    disk.reboot();
    EXPECT_FALSE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, KeepsADriveOnTrialThatACleanStopCouldNotPutBack)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->begin_trial(one));
        ASSERT_TRUE(store->begin_trial(other));
        ASSERT_TRUE(store->end_trials(std::vector{other}));
    }
    disk.reboot();
    auto store = disk.open();
    EXPECT_FALSE(store->tripped(one));
    EXPECT_TRUE(store->tripped(other));
}

TEST(TheBreakerStore, EndsTheTrialOfADriveThatALaterRestorePutBack)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->begin_trial(one));
        ASSERT_TRUE(store->end_trials(std::vector{one}));
    }
    ASSERT_TRUE(disk.open()->end_trials()); // --restore, in the same boot
    disk.reboot();
    EXPECT_FALSE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, WritesNothingWhereNoTrialEnds)
{
    Disk disk;
    auto store = disk.open();
    ASSERT_TRUE(store->begin_trial(one));
    ASSERT_TRUE(store->end_trials());
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->end_trials()) << "a full disk does not matter to it";
}

TEST(TheBreakerStore, BeginsAnewAfterACleanStopInTheSameBoot)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->begin_trial(one));
        ASSERT_TRUE(store->end_trials());
    }
    ASSERT_TRUE(disk.open()->begin_trial(one));
    EXPECT_EQ(disk.record().trials.size(), 1U);
    disk.reboot();
    EXPECT_TRUE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, KeepsATripWithItsReason)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->trip(one, "three drop-outs"));
        ASSERT_TRUE(store->trip(one, "a fourth"));
        EXPECT_EQ(store->tripped(one), "three drop-outs");
        ASSERT_TRUE(store->end_trials());
    }
    EXPECT_EQ(disk.open()->tripped(one), "three drop-outs");
}

TEST(TheBreakerStore, KeepsEverythingBackWhileItsRecordCannotBeRead)
{
    Disk disk;
    disk.root.write("state/breaker.json", "{\"schema\": 1, \"trials\"");
    auto store = disk.open();
    ASSERT_TRUE(disk.complaint);
    EXPECT_NE(disk.complaint->text().find("no drive is let into deeper sleep than at boot"), std::string::npos);
    EXPECT_TRUE(store->tripped(one));
    EXPECT_TRUE(store->tripped(other));
    static_cast<void>(store->trip(one, "x"));
    static_cast<void>(store->begin_trial(one));
    static_cast<void>(store->end_trials());
    EXPECT_EQ(disk.root.read("state/breaker.json"), "{\"schema\": 1, \"trials\"") << "it is evidence";
}

TEST(TheBreakerStore, KeepsEverythingBackWhileItCannotTellBootsApart)
{
    Disk disk;
    std::filesystem::create_directories(disk.run(1) + "/boot"); // neither readable nor replaceable
    auto store = disk.open();
    ASSERT_TRUE(disk.complaint);
    EXPECT_TRUE(store->tripped(one));
}

TEST(TheBreakerStore, RefusesATrialThatIsNotOnDiskAsOftenAsItIsAsked)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new"); // as good as a full or read-only disk
    EXPECT_FALSE(store->begin_trial(one));
    EXPECT_FALSE(store->begin_trial(one)) << "nothing has reached the disk since the first refusal";
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->begin_trial(one));
    EXPECT_EQ(disk.record().trials.size(), 1U);
}

TEST(TheBreakerStore, WritesATripThatCouldNotBeWrittenWhenItIsToldAgain)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_FALSE(store->trip(one, "three drop-outs"));
    EXPECT_TRUE(store->tripped(one)) << "in force all the same";
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->trip(one, "a fourth"));
    EXPECT_TRUE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, InMemoryNeedsNoDisk)
{
    BreakerStore store;
    EXPECT_TRUE(store.begin_trial(one));
    EXPECT_TRUE(store.trip(one, "x"));
    EXPECT_TRUE(store.tripped(one));
    EXPECT_TRUE(store.end_trials());
}

// --- the decision --------------------------------------------------------------------------------------------------------

/// Booted with Linux's newer default of 25 ms, which keeps the drive out of PS4; the profile allows any.
Case deep_wish()
{
    Case c = case_of("samsung-990-evo-plus-4tb", us(25000));
    c.machine.default_ps_max_latency_us = 25000;
    c.wish.profile = "power-saver";
    return c;
}

TEST(TheDecision, SaysThatItGoesDeeperThanAtBoot)
{
    const Case c = deep_wish();
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.tolerance, LatencyTolerance::any());
    EXPECT_TRUE(d.deeper_than_at_boot);
    EXPECT_FALSE(d.breaker_tripped);
}

TEST(TheDecision, IsTheBootValueOnceTheBreakerHasTripped)
{
    const Case c = deep_wish();
    ApstQuestion question = c.question();
    question.breaker = "three drop-outs";
    const ApstDecision d = decide_apst(question);
    EXPECT_EQ(d.tolerance, us(25000));
    EXPECT_EQ(d.rule, ToleranceRule::boot_value);
    EXPECT_EQ(d.origin, "drop-out breaker");
    EXPECT_EQ(d.reason, "three drop-outs");
    EXPECT_TRUE(d.breaker_tripped);
    EXPECT_FALSE(d.deeper_than_at_boot);
    EXPECT_EQ(d.predicted.feature.deepest_state(), 3);
}

TEST(TheDecision, IsTheBootValueAlsoWhereOursIsInTheFile)
{
    Case c = deep_wish();
    c.kernel_took(LatencyTolerance::any());
    ApstQuestion question = c.question();
    question.breaker = "three drop-outs";
    EXPECT_EQ(decide_apst(question).tolerance, us(25000));
    const Verdict verdict = verify_apst(question, decide_apst(question));
    EXPECT_EQ(verdict.agreement, Agreement::awaits_change);
}

TEST(TheDecision, IsOtherwiseUntouchedByATrippedBreaker)
{
    Case c = deep_wish();
    c.wish.profile = "performance";
    ApstQuestion question = c.question();
    question.breaker = "three drop-outs";
    const ApstDecision d = decide_apst(question);
    EXPECT_EQ(d.tolerance, us(0)) << "shallower than at boot is still allowed";
    EXPECT_TRUE(d.breaker_tripped);
    EXPECT_EQ(d.rule, ToleranceRule::bound);
}

} // namespace
} // namespace nvmepolicy
