// SPDX-License-Identifier: LGPL-2.1-or-later
// Somebody else writes the tolerance file: whose value stays, for how long, and how often that is news.
#include "nvmepolicy/foreign.h"

#include "drives.h"

namespace nvmepolicy {
namespace {

constexpr Milliseconds start{1'000'000};

Milliseconds seconds(std::int64_t s)
{
    return Milliseconds{s * 1000};
}

/// A 990 EVO Plus that holds our 25000, and somebody who writes.
struct Quarrel {
    Case c = case_of("samsung-990-evo-plus-4tb");
    SessionMemory memory;

    explicit Quarrel(OnConflict mode = OnConflict::yield)
    {
        c.kernel_took(us(25000));
        c.policy.apst.on_conflict.value = mode;
    }
    void in_the_file(const LatencyTolerance& value) { c.controller.tolerance = std::optional{value}; }
    ForeignVerdict judge(Milliseconds now = start)
    {
        ApstQuestion question = c.question();
        question.obey_lower = false;
        return judge_foreign(question, decide_apst(question), memory, now);
    }
    /// A look, and the write that it calls for.
    ForeignStand fight(Milliseconds now = start)
    {
        const ForeignVerdict verdict = judge(now);
        if (verdict.stand == ForeignStand::overwrite)
            note_written(memory, verdict.stand, now);
        return verdict.stand;
    }
};

TEST(AForeignValue, IsNotWhatWeWroteOurselves)
{
    Quarrel q;
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
    EXPECT_EQ(q.memory.theirs, std::nullopt);
    EXPECT_EQ(q.memory.foreign_writes, 0U);
}

TEST(AForeignValue, StaysByDefaultWhetherHigherOrLower)
{
    for (const auto& theirs : {us(0), us(5000), us(24999), us(25001), us(60000), us(100000), LatencyTolerance::any()}) {
        Quarrel q;
        static_cast<void>(q.judge());
        q.in_the_file(theirs);
        const ForeignVerdict verdict = q.judge();
        EXPECT_EQ(verdict.stand, ForeignStand::yield) << theirs.kernel_text();
        EXPECT_TRUE(verdict.news);
        EXPECT_EQ(q.memory.theirs, theirs);
        EXPECT_EQ(q.memory.fights, 0);
    }
}

TEST(AForeignValue, IsNewsOncePerValue)
{
    Quarrel q;
    q.in_the_file(us(60000));
    EXPECT_TRUE(q.judge().news);
    EXPECT_FALSE(q.judge(start + seconds(1)).news);
    EXPECT_FALSE(q.judge(start + seconds(3600)).news);
    EXPECT_EQ(q.memory.foreign_writes, 1U);
    q.in_the_file(us(50000));
    EXPECT_TRUE(q.judge(start + seconds(3601)).news);
    q.in_the_file(us(60000));
    EXPECT_TRUE(q.judge(start + seconds(3602)).news) << "back again is another write";
    EXPECT_EQ(q.memory.foreign_writes, 3U);
}

TEST(AForeignValue, IsNewsAgainAfterOursWasThereInBetween)
{
    Quarrel q;
    q.in_the_file(us(60000));
    EXPECT_TRUE(q.judge().news);
    q.in_the_file(us(25000));
    EXPECT_FALSE(q.judge().news);
    EXPECT_EQ(q.memory.theirs, std::nullopt);
    q.in_the_file(us(60000));
    EXPECT_TRUE(q.judge().news);
    EXPECT_EQ(q.memory.foreign_writes, 2U);
}

TEST(AForeignValue, ThatIsWhatWeWantAnywayIsNone)
{
    Quarrel q;
    q.c.bound(Microseconds{60'000});
    q.in_the_file(us(42999));
    EXPECT_EQ(q.judge().stand, ForeignStand::yield);
    q.in_the_file(us(60000));
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
}

TEST(AForeignValue, IsOneWeAnnouncedAndDidNotConfirmNeither)
{
    Quarrel q;
    q.c.ledger->intended = {us(24999)}; // a crash in the middle of a repair
    q.in_the_file(us(24999));
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
}

TEST(AForeignValue, IsNeverAutoSinceAResetLeavesThat)
{
    for (const OnConflict mode : {OnConflict::yield, OnConflict::enforce}) {
        Quarrel q(mode);
        q.in_the_file(LatencyTolerance::automatic());
        const ForeignVerdict verdict = q.judge();
        EXPECT_EQ(verdict.stand, ForeignStand::none);
        EXPECT_FALSE(verdict.news);
        EXPECT_EQ(q.memory.fights, 0);
    }
}

TEST(AForeignValue, IsNoneInAnObjectThatWeHaveNotWrittenTo)
{
    Quarrel q;
    q.in_the_file(us(60000));
    q.c.ledger.reset(); // what judge() in reconcile.cpp passes for a new controller object
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
    Quarrel announced;
    announced.in_the_file(us(60000));
    announced.c.ledger->ours.reset(); // announced, never confirmed
    EXPECT_EQ(announced.judge().stand, ForeignStand::none);
}

TEST(AForeignValue, IsNotTheOriginalInASessionThatHasSeenNothingElse)
{
    // A stop put the original back, and /run did not take that there is nothing left to put back.
    for (const auto& [first, lowered] : {std::pair{us(100000), std::optional<LatencyTolerance>{}},
                                         std::pair{LatencyTolerance::any(), std::optional<LatencyTolerance>{}},
                                         std::pair{us(100000), std::optional{us(5000)}}}) {
        Quarrel q;
        q.c.ledger->first = first;
        q.c.ledger->lowered = lowered;
        q.in_the_file(lowered.value_or(first));
        EXPECT_EQ(q.judge().stand, ForeignStand::none);
        EXPECT_EQ(q.judge(start + seconds(60)).stand, ForeignStand::none) << "nothing was written yet";
        note_written(q.memory, ForeignStand::none, start + seconds(60));
        EXPECT_EQ(q.judge(start + seconds(61)).stand, ForeignStand::yield) << "now somebody has put it there";
    }
}

TEST(AForeignValue, IsTheOriginalToo)
{
    Quarrel q;
    q.c.ledger->first = us(100000);
    EXPECT_EQ(q.judge().stand, ForeignStand::none) << "ours";
    q.in_the_file(us(100000));
    EXPECT_EQ(q.judge().stand, ForeignStand::yield);
    Quarrel other;
    other.c.ledger->first = us(100000);
    other.in_the_file(us(60000));
    EXPECT_EQ(other.judge().stand, ForeignStand::yield);
    other.in_the_file(us(100000));
    EXPECT_EQ(other.judge().stand, ForeignStand::yield);
}

TEST(AForeignValue, IsStillNotTheOriginalAfterLooksThatCouldNotReadTheFile)
{
    Quarrel q;
    q.c.ledger->first = us(100000);
    q.c.controller.tolerance = Refusal{"x", "", "y", RefusalKind::timed_out};
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
    q.in_the_file(us(100000));
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
}

TEST(AForeignValue, IsNoneWhereWeOnlyObserve)
{
    Quarrel q(OnConflict::enforce);
    q.c.policy.apst.mode.value = ManageMode::observe;
    q.in_the_file(us(60000));
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
}

TEST(AForeignValue, IsNoneWithoutAToleranceFile)
{
    Quarrel q(OnConflict::enforce);
    q.c.controller.tolerance = std::optional<LatencyTolerance>{};
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
    q.c.controller.tolerance = Refusal{"x", "", "y", RefusalKind::timed_out};
    EXPECT_EQ(q.judge().stand, ForeignStand::none);
}

TEST(Enforcing, WritesAtOnceThenAfterTwoSecondsThenAfterEight)
{
    Quarrel q(OnConflict::enforce);
    q.in_the_file(us(60000));
    EXPECT_EQ(q.fight(start), ForeignStand::overwrite);
    EXPECT_EQ(q.memory.fights, 1);

    ForeignVerdict verdict = q.judge(start + Milliseconds{1'999});
    EXPECT_EQ(verdict.stand, ForeignStand::wait);
    EXPECT_EQ(verdict.pause, Milliseconds{1});
    EXPECT_EQ(q.memory.fights, 1);
    EXPECT_EQ(q.fight(start + seconds(2)), ForeignStand::overwrite);
    EXPECT_EQ(q.memory.fights, 2);

    const Milliseconds second = start + seconds(2);
    verdict = q.judge(second + Milliseconds{1});
    EXPECT_EQ(verdict.stand, ForeignStand::wait);
    EXPECT_EQ(verdict.pause, Milliseconds{7'999});
    EXPECT_EQ(q.fight(second + seconds(8)), ForeignStand::overwrite);
    EXPECT_EQ(q.memory.fights, most_fights);
}

TEST(Enforcing, YieldsAfterThreeFightsForGood)
{
    Quarrel q(OnConflict::enforce);
    q.in_the_file(us(60000));
    q.memory.fights = 3;
    q.memory.last_fight = start;
    for (const std::int64_t later : {60, 600, 601, 3600, 86400})
        EXPECT_EQ(q.judge(start + seconds(later)).stand, ForeignStand::yield) << later << " s";
    EXPECT_EQ(q.memory.fights, 3);
}

TEST(Enforcing, YieldsForGoodAlsoWhenOursIsInTheFileForAMoment)
{
    Quarrel q(OnConflict::enforce);
    q.memory.fights = 3;
    q.memory.last_fight = start;
    EXPECT_EQ(q.judge(start + seconds(3600)).stand, ForeignStand::none);
    q.in_the_file(us(60000));
    EXPECT_EQ(q.judge(start + seconds(7200)).stand, ForeignStand::yield);
}

TEST(Enforcing, ForgetsOneOrTwoFightsAfterTenMinutes)
{
    for (const int fights : {1, 2}) {
        Quarrel q(OnConflict::enforce);
        q.in_the_file(us(60000));
        q.memory.fights = fights;
        q.memory.last_fight = start;
        EXPECT_EQ(q.fight(start + seconds(600)), ForeignStand::overwrite);
        EXPECT_EQ(q.memory.fights, fights + 1) << "ten minutes, not a millisecond more";

        q.memory.fights = fights;
        q.memory.last_fight = start;
        EXPECT_EQ(q.fight(start + seconds(600) + Milliseconds{1}), ForeignStand::overwrite);
        EXPECT_EQ(q.memory.fights, 1);
    }
}

TEST(Enforcing, WritesAtOnceInTheFirstMinutesAfterBoot)
{
    Quarrel q(OnConflict::enforce);
    q.in_the_file(us(60000));
    EXPECT_EQ(q.fight(Milliseconds{0}), ForeignStand::overwrite);
    EXPECT_EQ(q.judge(Milliseconds{1'999}).stand, ForeignStand::wait);
}

TEST(Enforcing, CountsNewsByValueNotByFight)
{
    Quarrel q(OnConflict::enforce);
    q.in_the_file(us(60000));
    EXPECT_TRUE(q.judge(start).news);
    note_written(q.memory, ForeignStand::overwrite, start);
    EXPECT_FALSE(q.judge(start + seconds(1)).news);
    EXPECT_FALSE(q.judge(start + seconds(2)).news) << "still the value that we failed to write over";
    EXPECT_EQ(q.memory.foreign_writes, 1U);
}

TEST(Enforcing, DoesNotCountTriesThatWroteNothing)
{
    Quarrel q(OnConflict::enforce);
    q.in_the_file(us(60000));
    for (int tries = 0; tries < 10; ++tries)
        EXPECT_EQ(q.judge(start + seconds(tries)).stand, ForeignStand::overwrite) << tries;
    EXPECT_EQ(q.memory.fights, 0);
}

TEST(ClaimingBack, EndsWhatWasRememberedAgainstUs)
{
    Quarrel q(OnConflict::enforce);
    q.in_the_file(us(60000));
    q.memory.fights = 3;
    q.memory.last_fight = start;
    q.memory.theirs = us(60000);
    q.memory.foreign_writes = 7;
    q.memory.stubborn_table = ApstFeature{};
    q.memory.stubborn_at = us(25000);
    claim_back(q.memory);
    EXPECT_EQ(q.memory.theirs, std::nullopt);
    EXPECT_EQ(q.memory.fights, 0);
    EXPECT_EQ(q.memory.stubborn_table, std::nullopt);
    EXPECT_EQ(q.memory.stubborn_at, std::nullopt);
    EXPECT_FALSE(q.memory.may_be_restored) << "what comes to be there after our claim is somebody's";
    EXPECT_EQ(q.memory.foreign_writes, 7U) << "what happened is still counted";
    EXPECT_EQ(q.judge(start + seconds(1)).stand, ForeignStand::overwrite);
}

TEST(ClaimingBack, DoesNotMakeYieldFight)
{
    Quarrel q;
    q.in_the_file(us(60000));
    static_cast<void>(q.judge());
    claim_back(q.memory);
    EXPECT_EQ(q.judge().stand, ForeignStand::yield) << "the claim itself is the session's, see session_test";
}

} // namespace
} // namespace nvmepolicy
