// SPDX-License-Identifier: LGPL-2.1-or-later
// The drop-out breaker: what counts as deeper, what trips it, and what survives a crash of the machine.
#include "nvmepolicy/breaker.h"

#include "breaker_records.h"
#include "drives.h"

namespace nvmepolicy {
namespace {

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
