// SPDX-License-Identifier: LGPL-2.1-or-later
// The drop-out breaker: what counts as deeper, what trips it, and what survives a crash of the machine.
#include "nvmepolicy/breaker.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <sys/stat.h>
#include <thread>

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
    BreakerRecord record{{{one, {"boot-1", false}}, {other, {"boot-1", true}}}, {}};
    const BreakerRecord next = after_boot(record, "boot-2", 1'700'000'000);
    EXPECT_TRUE(next.trials.empty());
    ASSERT_EQ(next.trips.size(), 1U);
    ASSERT_NE(next.trip_of(one), nullptr);
    EXPECT_EQ(next.trip_of(one)->at, 1'700'000'000);
    EXPECT_NE(next.trip_of(one)->reason.find("without a clean stop"), std::string::npos);
    EXPECT_EQ(next.trip_of(other), nullptr);
}

TEST(AfterABoot, TheSameBootIsARestartOfOurs)
{
    const BreakerRecord record{{{one, {"boot-1", false}}}, {}};
    EXPECT_EQ(after_boot(record, "boot-1", 5), record);
    EXPECT_TRUE(record.on_trial(one, "boot-1"));
    EXPECT_FALSE(record.on_trial(one, "boot-2"));
    EXPECT_FALSE(record.on_trial(other, "boot-1"));
}

TEST(AfterABoot, AnOldTripKeepsItsReason)
{
    const BreakerRecord record{{{one, {"boot-1", false}}}, {{one, {"three drop-outs", 7}}}};
    const BreakerRecord next = after_boot(record, "boot-2", 1'700'000'000);
    ASSERT_EQ(next.trips.size(), 1U);
    EXPECT_EQ(next.trip_of(one)->reason, "three drop-outs");
    EXPECT_EQ(next.trip_of(one)->at, 7);
}

TEST(ABreakerRecord, ComesBackAsItWasWritten)
{
    const ControllerId strange{"nqn \"quoted\"\n\xff", "\x01\xc3\x28", 65535, "traddr=10.0.2.2,trsvcid=4420"};
    const ControllerId third{"nqn.test:third", "SERIAL3", 3, {}};
    const BreakerRecord record{{{one, {"0123456789abcdef", false}}, {other, {"f", true}}},
                               {{one, {"because", 1'764'500'000}}, {third, {"", -1}}}};
    const auto back = parse_breaker("x", format_breaker(record));
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(*back, record);
    const auto empty = parse_breaker("x", format_breaker({}));
    ASSERT_TRUE(empty);
    EXPECT_EQ(*empty, BreakerRecord{});
    EXPECT_TRUE(parse_breaker("x", format_breaker({{{strange, {"b", false}}}, {}}))) << "whatever a drive calls itself";
}

/// Of both: what a trial and a trip look like.
const BreakerRecord both{{{one, {"boot-1", false}}}, {{other, {"because", 7}}}};

/// What earlier versions wrote.
const std::string schema_1 = R"({
 "schema": 1,
 "trials": [
  {
   "boot_id": "boot-1",
   "clean": false,
   "cntlid": 1,
   "path": "",
   "serial": "SERIAL1",
   "subsystem_nqn": "nqn.test:one"
  }
 ],
 "trips": [
  {
   "at": 7,
   "cntlid": 2,
   "path": "",
   "reason": "because",
   "serial": "SERIAL2",
   "subsystem_nqn": "nqn.test:other"
  }
 ]
}
)";

std::string with(std::string text, const std::string& what, const std::string& instead)
{
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), instead);
}

void expect_refused(const std::string& text)
{
    const auto parsed = parse_breaker("/var/lib/nvmepolicyd/breaker.json", text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, RefusalKind::invalid);
    EXPECT_EQ(parsed.error().where, "/var/lib/nvmepolicyd/breaker.json");
}

TEST(ABreakerRecord, HasALineForEachController)
{
    EXPECT_EQ(format_breaker(both), R"({"schema":2})"
                                    "\n"
                                    R"({"cntlid":1,"path":"","serial":"SERIAL1","subsystem_nqn":"nqn.test:one",)"
                                    R"("trial":{"boot_id":"boot-1","clean":false},"trip":null})"
                                    "\n"
                                    R"({"cntlid":2,"path":"","serial":"SERIAL2","subsystem_nqn":"nqn.test:other",)"
                                    R"("trial":null,"trip":{"at":7,"reason":"because"}})"
                                    "\n");
}

TEST(ABreakerRecord, IsWhatTheLastLineOfEachControllerSays)
{
    BreakerRecord later = both;
    later.trials[one].clean = true;
    later.trips[one] = {"three drop-outs", 9};
    const std::string text = format_breaker(both) + format_breaker_line(later, one);
    EXPECT_EQ(*parse_breaker("x", text), later);
    EXPECT_EQ(*parse_breaker("x", text + format_breaker_line({}, other) + format_breaker_line({}, one)), BreakerRecord{});
}

TEST(ABreakerRecord, OfSchema1IsStillRead)
{
    const auto read = parse_breaker("x", schema_1);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, both);
}

TEST(ABreakerRecord, LeavesOutALineThatWasInterrupted)
{
    const std::string before = format_breaker({});
    const std::string line = format_breaker_line(both, one);
    for (std::size_t length = 0; length + 1 < line.size(); ++length) {
        const auto read = parse_breaker("x", before + line.substr(0, length));
        ASSERT_TRUE(read) << length << ": " << read.error().text();
        EXPECT_EQ(*read, BreakerRecord{}) << length;
    }
}

TEST(ABreakerRecord, MayBeEditedByHand)
{
    const std::string text = format_breaker(both);
    EXPECT_EQ(parse_breaker("x", text.substr(0, text.size() - 1))->trips, both.trips) << "without a newline at its end";
    EXPECT_EQ(*parse_breaker("x", with(text, "\n", "\n\n \r\n") + "\n"), both) << "with empty lines";
    EXPECT_EQ(*parse_breaker("x", with(text, format_breaker_line(both, other), "")), (BreakerRecord{both.trials, {}}));
}

TEST(ABreakerRecord, ThatIsDamagedIsRefusedWhole)
{
    const std::string good = format_breaker(both);
    for (std::size_t length = 0; length < std::string_view(R"({"schema":2})").size(); ++length)
        expect_refused(good.substr(0, length));
    for (const std::string& text : {with(good, "\"schema\":2", "\"schema\":3"),
                                    with(good, "\"schema\":2", "\"schema\":\"2\""),
                                    with(good, "\"clean\":false", "\"clean\":0"),
                                    with(good, "\"clean\"", "\"cleaned\""),
                                    with(good, "\"at\":7", "\"at\":\"7\""),
                                    with(good, "\"at\":7", "\"at\":7.5"),
                                    with(good, "\"cntlid\":1", "\"cntlid\":65536"),
                                    with(good, "\"cntlid\":1", "\"cntlid\":-1"),
                                    with(good, "\"serial\"", "\"serials\""),
                                    with(good, "\"boot_id\":\"boot-1\"", "\"boot_id\":null"),
                                    with(good, "\"trip\":null", "\"trip\":[]"),
                                    with(good, ",\"trip\":null", ""),
                                    with(good, "\"trial\":{", "\"trial\":["),
                                    good + "{}",
                                    good + "[]\n",
                                    good + "null\n",
                                    good + "{\n",
                                    with(good, "false", "false\n"),
                                    good + std::string(3, '\0') + "\n",
                                    std::string(largest_breaker_record + 1, ' '),
                                    std::string("[]"),
                                    std::string("null"),
                                    std::string("{}"),
                                    std::string("\0\0\0\0", 4)})
        expect_refused(text);
}

TEST(ABreakerRecord, OfSchema1ThatIsDamagedIsRefusedWhole)
{
    for (std::size_t length = 0; length + 2 < schema_1.size(); ++length)
        expect_refused(schema_1.substr(0, length));
    for (const std::string& text :
         {with(schema_1, "\"schema\": 1", "\"schema\": 2"), with(schema_1, "\"schema\": 1", "\"schema\": \"1\""),
          with(schema_1, "\"clean\": false", "\"clean\": 0"), with(schema_1, "\"clean\"", "\"cleaned\""),
          with(schema_1, "\"at\": 7", "\"at\": \"7\""), with(schema_1, "\"at\": 7", "\"at\": 7.5"),
          with(schema_1, "\"cntlid\": 1", "\"cntlid\": 65536"), with(schema_1, "\"cntlid\": 1", "\"cntlid\": -1"),
          with(schema_1, "\"serial\"", "\"serials\""), with(schema_1, "\"boot_id\": \"boot-1\"", "\"boot_id\": null"),
          std::string(R"({"schema":1,"trials":{},"trips":[]})"), std::string(R"({"schema":1,"trials":[1],"trips":[]})"),
          std::string(R"({"schema":1,"trials":[],"trips":["x"]})"), std::string(R"({"schema":1,"trials":[],"trips":"x"})")})
        expect_refused(text);
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
    ASSERT_TRUE(record.trials.contains(one));
    EXPECT_FALSE(record.trials.at(one).clean);
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

TEST(TheBreakerStore, WritesATripThatCouldNotBeWrittenWithTheNextWrite)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_FALSE(store->trip(one, "three drop-outs"));
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->begin_trial(other));
    EXPECT_EQ(disk.open()->tripped(one), "three drop-outs");
}

TEST(TheBreakerStore, WritesATripThatCouldNotBeWrittenWithTheStop)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_FALSE(store->trip(one, "three drop-outs"));
    EXPECT_FALSE(store->end_trials());
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->end_trials());
    EXPECT_EQ(disk.open()->tripped(one), "three drop-outs");
}

TEST(TheBreakerStore, CatchesUpWithATripAtTheNextLookAtThatDriveOrAnyOther)
{
    for (const ControllerId& looked_at : {one, other}) {
        Disk disk;
        auto store = disk.open();
        std::filesystem::create_directories(disk.state() + "/breaker.json.new");
        EXPECT_FALSE(store->trip(one, "three drop-outs"));
        EXPECT_FALSE(store->catch_up(one));
        EXPECT_TRUE(store->catch_up(other)) << "not that one's trouble";
        std::filesystem::remove(disk.state() + "/breaker.json.new");
        EXPECT_TRUE(store->catch_up(looked_at));
        EXPECT_EQ(disk.open()->tripped(one), "three drop-outs");
    }
}

TEST(TheBreakerStore, DoesNotCatchUpWithATrialSinceTheDriveDidNotGoDeeper)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_FALSE(store->begin_trial(one));
    EXPECT_TRUE(store->catch_up(one));
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->catch_up(one));
    EXPECT_FALSE(std::filesystem::exists(disk.state() + "/breaker.json"));
}

TEST(TheBreakerStore, AppendsALineForEachTrial)
{
    Disk disk;
    auto store = disk.open();
    ASSERT_TRUE(store->begin_trial(one));
    const std::string before = disk.root.read("state/breaker.json");
    ASSERT_TRUE(store->begin_trial(other));
    EXPECT_EQ(disk.root.read("state/breaker.json"), before + format_breaker_line(disk.record(), other));
    ASSERT_TRUE(store->end_trials());
    EXPECT_TRUE(disk.record().trials.at(one).clean);
    EXPECT_TRUE(disk.record().trials.at(other).clean);
}

TEST(TheBreakerStore, GoesOnFromARecordOfSchema1)
{
    Disk disk;
    disk.root.write("state/breaker.json", schema_1);
    auto store = disk.open();
    EXPECT_FALSE(disk.complaint);
    EXPECT_TRUE(store->tripped(one)) << "its trial was of another boot";
    EXPECT_EQ(store->tripped(other), "because");
    ASSERT_TRUE(store->begin_trial({"nqn.test:third", "SERIAL3", 3, {}}));
    EXPECT_TRUE(disk.root.read("state/breaker.json").starts_with("{\"schema\":2}\n"));
    EXPECT_EQ(disk.record().trips.size(), 2U);
}

TEST(TheBreakerStore, ClearsAwayALineThatAnEarlierProcessWasInterruptedIn)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->begin_trial(one));
    disk.root.write("state/breaker.json", disk.root.read("state/breaker.json") + "{\"cntlid\":2,\"pa");
    auto store = disk.open();
    EXPECT_FALSE(disk.complaint);
    ASSERT_TRUE(store->begin_trial(other));
    EXPECT_EQ(disk.record().trials.size(), 2U);
}

TEST(TheBreakerStore, WritesAnewWhatSomebodyElseHasRemovedOrReplaced)
{
    Disk disk;
    auto store = disk.open();
    ASSERT_TRUE(store->begin_trial(one));
    std::filesystem::remove(disk.state() + "/breaker.json");
    ASSERT_TRUE(store->begin_trial(other));
    EXPECT_EQ(disk.record().trials.size(), 2U);
    disk.root.write("state/breaker.json", "nonsense");
    ASSERT_TRUE(store->trip(one, "three drop-outs"));
    EXPECT_EQ(disk.record().trials.size(), 2U);
    EXPECT_EQ(disk.record().trips.size(), 1U);
}

/// Files as they are, with a fault, and it can be told how often and how much was written.
class FaultyStorage : public Storage {
public:
    std::map<std::string, Refusal> unreadable; ///< by the end of the path
    bool full = false;
    bool sync_fails = false;
    std::atomic<int> syncs = 0;
    std::function<void()> while_syncing;

    [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t largest) override
    {
        for (const auto& [end, refusal] : unreadable)
            if (path.ends_with(end))
                return refusal;
        return file_storage().read(path, largest);
    }
    [[nodiscard]] Result<void> replace(const std::string& path, std::string_view text) override
    {
        return full ? no_space(path) : file_storage().replace(path, text);
    }
    [[nodiscard]] Result<std::unique_ptr<AppendOnlyFile>> begin(const std::string& path, std::string_view text) override
    {
        if (full)
            return no_space(path).error();
        auto begun = file_storage().begin(path, text);
        if (!begun)
            return begun.error();
        return std::unique_ptr<AppendOnlyFile>(std::make_unique<File>(*this, *std::move(begun)));
    }
    [[nodiscard]] Result<void> remove(const std::string& path) override { return file_storage().remove(path); }
    [[nodiscard]] Result<void> make_directory(const std::string& path) override { return file_storage().make_directory(path); }

private:
    class File : public AppendOnlyFile {
    public:
        File(FaultyStorage& storage, std::unique_ptr<AppendOnlyFile> behind) : storage_(storage), behind_(std::move(behind)) {}
        [[nodiscard]] Result<void> append(std::string_view text) override { return behind_->append(text); }
        [[nodiscard]] Result<void> sync() override
        {
            ++storage_.syncs;
            if (storage_.while_syncing)
                storage_.while_syncing();
            return storage_.sync_fails ? Result<void>(Refusal{"x", "", "input/output error", RefusalKind::try_later})
                                       : behind_->sync();
        }

    private:
        FaultyStorage& storage_;
        std::unique_ptr<AppendOnlyFile> behind_;
    };
    static Result<void> no_space(const std::string& path) { return Refusal{path, "", "no space left", RefusalKind::try_later}; }
};

TEST(TheBreakerStore, IsWrittenAnewAfterASyncThatFailed)
{
    Disk disk;
    FaultyStorage storage;
    const auto store = BreakerStore::open(disk.state(), disk.run(1), disk.complaint, storage);
    ASSERT_TRUE(store->begin_trial(one));
    const auto inode = [&disk] {
        struct stat status {};
        EXPECT_EQ(::stat((disk.state() + "/breaker.json").c_str(), &status), 0);
        return status.st_ino;
    };
    const auto before = inode();
    storage.sync_fails = true;
    EXPECT_FALSE(store->begin_trial(other));
    storage.sync_fails = false;
    EXPECT_TRUE(store->begin_trial(other));
    EXPECT_NE(inode(), before) << "the kernel does not try again what it could not write once";
    EXPECT_EQ(disk.record().trials.size(), 2U);
}

TEST(TheBreakerStore, SharesOneWriteAmongAllThatWait)
{
    Disk disk;
    FaultyStorage storage;
    const auto store = BreakerStore::open(disk.state(), disk.run(1), disk.complaint, storage);
    ASSERT_TRUE(store->begin_trial(one));
    constexpr std::uint16_t drives = 24;
    std::atomic<int> returned = 0;
    std::atomic<int> not_on_disk = 0;
    std::vector<std::jthread> looks;
    storage.while_syncing = [&] { // The first one's write takes until the others are there, and any that only asks is answered.
        if (storage.syncs > 1)
            return;
        EXPECT_EQ(store->tripped(other), std::nullopt);
        EXPECT_EQ(returned, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    };
    for (std::uint16_t i = 1; i <= drives; ++i)
        looks.emplace_back([&, i] {
            const ControllerId id{"nqn.test:many", "SERIAL", i, {}};
            EXPECT_TRUE(store->begin_trial(id));
            ++returned;
            const auto record =
                parse_breaker("x", *file_storage().read(disk.state() + "/breaker.json", largest_breaker_record));
            if (!record || !record->trials.contains(id))
                ++not_on_disk;
        });
    looks.clear();
    EXPECT_EQ(not_on_disk, 0);
    EXPECT_LE(storage.syncs, 4) << "one, and one for those that came meanwhile; a few more on a slow machine";
    EXPECT_EQ(disk.record().trials.size(), drives + 1U);
}

TEST(TheBreakerStore, CannotTellBootsApartOnAFullRunAndTriesAgain)
{
    Disk disk;
    FaultyStorage storage;
    ASSERT_TRUE(disk.open()->trip(other, "three drop-outs"));
    disk.reboot();
    storage.full = true;
    const auto store = BreakerStore::open(disk.state(), disk.run(2), disk.complaint, storage);
    ASSERT_TRUE(disk.complaint);
    store->recover();
    EXPECT_TRUE(store->tripped(one)) << "still full";
    EXPECT_FALSE(store->begin_trial(one));
    EXPECT_EQ(store->catch_up(one).error().kind, RefusalKind::try_later) << "another look is worth it";
    ASSERT_TRUE(store->trip(one, "four drop-outs"));
    storage.full = false;
    store->recover();
    EXPECT_EQ(store->tripped(other), "three drop-outs");
    EXPECT_EQ(store->tripped(one), "four drop-outs") << "what happened meanwhile is not forgotten";
    EXPECT_TRUE(store->catch_up(other));
    EXPECT_EQ(disk.record().trips.size(), 2U);
}

TEST(TheBreakerStore, DoesNotTakeATokenThatItCannotReadForAnotherBoot)
{
    for (const RefusalKind kind : {RefusalKind::try_later, RefusalKind::denied, RefusalKind::failed, RefusalKind::invalid}) {
        Disk disk;
        ASSERT_TRUE(disk.open()->begin_trial(one));
        FaultyStorage storage;
        storage.unreadable.emplace("/boot", Refusal{"/run/nvmepolicyd/boot", "", "input/output error", kind});
        const auto store = BreakerStore::open(disk.state(), disk.run(1), disk.complaint, storage);
        ASSERT_TRUE(disk.complaint);
        EXPECT_TRUE(store->tripped(one)) << "kept back, but only until it can be read";
        storage.unreadable.clear();
        store->recover();
        EXPECT_EQ(store->tripped(one), std::nullopt) << "it is the same boot";
        EXPECT_TRUE(disk.record().trips.empty());
    }
}

TEST(TheBreakerStore, DoesNotTakeAnEmptyTokenForAnotherBoot)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->begin_trial(one));
    disk.root.write("run1/boot", "");
    static_cast<void>(disk.open());
    ASSERT_TRUE(disk.complaint);
    EXPECT_NE(disk.complaint->text().find("run1/boot: is empty"), std::string::npos) << disk.complaint->text();
    EXPECT_TRUE(disk.record().trips.empty());
}

TEST(TheBreakerStore, DoesNotAskForLooksWhileItsRecordIsDamaged)
{
    Disk disk;
    disk.root.write("state/breaker.json", "nonsense");
    auto store = disk.open();
    EXPECT_TRUE(store->catch_up(one)) << "that does not pass by itself";
    disk.root.write("state/breaker.json", schema_1);
    store->recover();
    EXPECT_EQ(store->tripped(other), "because") << "but any look finds it mended";
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
