// SPDX-License-Identifier: LGPL-2.1-or-later
// What people are told: each story once, and a handful of lines for what happens a thousand times.
#include <fmt/format.h>
#include <sys/stat.h>

#include "daemon_bench.h"

namespace nvmepolicy {
namespace {

constexpr Milliseconds noon{43'200'000};

struct Stage {
    StandardError log;
    Journal journal{LogLevel::debug};
    Publisher publisher{journal};
    SimulatedHost simulated;
    SimulatedController& drive{simulated.add(evo_plus())};
    LedgerStore ledger;
    BreakerStore breaker;
    SessionMemory memory;

    Outcome reconcile(const std::string& profile = "balanced")
    {
        Session session{&breaker, memory, noon};
        Outcome outcome = nvmepolicy::reconcile(simulated, "nvme0", circumstances(simulated, profile), ledger, &session);
        memory = session.memory;
        return outcome;
    }
};

TEST(ThePublisher, TellsAHotPlugInTwoLines)
{
    Stage s;
    s.publisher.outcome(s.reconcile(), noon);
    for (int i = 0; i < 10; ++i) // looks that find nothing new: our own write's event, udev's, the timer's
        s.publisher.outcome(s.reconcile(), noon);
    const auto lines = s.log.lines();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], "nvmepolicyd: nvme0: Samsung SSD 990 EVO Plus 4TB, serial SIMULATED0000, firmware 2B2QKXG7");
    EXPECT_NE(lines[1].find("latency tolerance 100000 -> 25000 (profile balanced)"), std::string::npos) << lines[1];
    s.publisher.left("nvme0", noon);
    s.publisher.left("nvme0", noon);
    EXPECT_EQ(s.log.count("nvme0: left (Samsung SSD 990 EVO Plus 4TB"), 1);
    EXPECT_EQ(s.log.lines().size(), 3U);
}

TEST(ThePublisher, TellsACeilingWhereTheControllerIsIntroduced)
{
    Stage s;
    s.simulated.machine.default_ps_max_latency_us = 0;
    s.simulated.write_tolerance(s.drive, us(0));
    s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.count("LIMITED by nvme_core.default_ps_max_latency_us=0, set before us"), 1);
}

TEST(ThePublisher, TellsThreeThousandChangesInTenLinesAMinute)
{
    Stage s;
    const Outcome change = s.reconcile();
    for (int i = 0; i < 3000; ++i)
        s.publisher.outcome(change, noon + Milliseconds{i * 10}); // within 30 s
    EXPECT_EQ(s.log.lines().size(), 10U);
    s.publisher.outcome(change, noon + Milliseconds{60'000});
    EXPECT_EQ(s.log.lines().size(), 11U);
    EXPECT_EQ(s.log.count("(2991 lines about it were left out)"), 1) << s.log.lines().back();
}

TEST(ThePublisher, SaysTheLastOfWhatWasLeftOutWhenTheMinuteIsOver)
{
    Stage s;
    const Outcome change = s.reconcile();
    for (int i = 0; i < 12; ++i)
        s.publisher.outcome(change, noon);
    EXPECT_EQ(s.log.lines().size(), 10U) << "an introduction and nine changes";
    EXPECT_EQ(s.publisher.due(), noon + Milliseconds{60'000});
    s.publisher.catch_up(noon + Milliseconds{59'999});
    EXPECT_EQ(s.log.lines().size(), 10U);
    s.publisher.catch_up(noon + Milliseconds{60'000});
    ASSERT_EQ(s.log.lines().size(), 11U);
    EXPECT_NE(s.log.lines()[10].find("latency tolerance 100000 -> 25000"), std::string::npos);
    EXPECT_NE(s.log.lines()[10].find("(2 lines about it were left out)"), std::string::npos) << s.log.lines()[10];
    EXPECT_EQ(s.publisher.due(), std::nullopt);
    s.publisher.catch_up(noon + Milliseconds{200'000});
    EXPECT_EQ(s.log.lines().size(), 11U);
}

TEST(ThePublisher, HasNothingToCatchUpWithOnceALaterLineWasSaid)
{
    Stage s;
    const Outcome change = s.reconcile();
    for (int i = 0; i < 12; ++i)
        s.publisher.outcome(change, noon);
    s.publisher.outcome(change, noon + Milliseconds{61'000});
    EXPECT_EQ(s.log.lines().size(), 11U);
    EXPECT_EQ(s.publisher.due(), std::nullopt);
    for (int i = 0; i < 12; ++i)
        s.publisher.outcome(change, noon + Milliseconds{62'000});
    s.publisher.left("nvme0", noon + Milliseconds{62'000});
    s.publisher.catch_up(noon + Milliseconds{122'000});
    EXPECT_NE(s.log.lines().back().find("nvme0: left"), std::string::npos) << s.log.lines().back();
    EXPECT_EQ(s.publisher.due(), std::nullopt) << "it has left, and that was said";
}

TEST(ThePublisher, HasALimitForEachControllerAndNotForAll)
{
    Stage s;
    Outcome change = s.reconcile();
    for (int i = 0; i < 100; ++i)
        s.publisher.outcome(change, noon);
    change.name = "nvme1";
    s.publisher.outcome(change, noon);
    EXPECT_EQ(s.log.count("nvme1:"), 2);
}

TEST(ThePublisher, TellsWhatIsWrongOnceAndWhenItIsInOrderAgain)
{
    Stage s;
    s.publisher.outcome(s.reconcile(), noon);
    const auto quiet = s.log.lines().size();
    s.drive.faults["get-feature"] = refusal_of(RefusalKind::try_later);
    for (int i = 0; i < 20; ++i)
        s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.lines().size(), quiet + 1);
    EXPECT_EQ(s.log.count("a fault put here by the test"), 1);
    s.drive.faults.clear();
    for (int i = 0; i < 20; ++i)
        s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.count("in order again"), 1);
    EXPECT_EQ(s.log.lines().size(), quiet + 2);
}

TEST(ThePublisher, TellsAForeignValueOncePerValue)
{
    Stage s;
    s.publisher.outcome(s.reconcile(), noon);
    const auto quiet = s.log.lines().size();
    s.simulated.write_tolerance(s.drive, us(60000));
    for (int i = 0; i < 30; ++i)
        s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.lines().size(), quiet + 1);
    EXPECT_EQ(s.log.count("somebody else set the latency tolerance to 60000, ours was 25000; theirs stays"), 1);
}

TEST(ThePublisher, SaysNothingOfADriveOnItsWayOut)
{
    Stage s;
    s.publisher.outcome(s.reconcile(), noon);
    const auto quiet = s.log.lines().size();
    s.drive.state = ControllerState::deleting;
    s.publisher.outcome(s.reconcile(), noon);
    s.simulated.remove("nvme0");
    s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.lines().size(), quiet);
}

TEST(ThePublisher, DoesNotSayThatAControllerLeftThatItNeverIntroduced)
{
    Stage s;
    s.simulated.remove("nvme0");
    s.publisher.outcome(s.reconcile(), noon); // came and went before the first look
    s.publisher.left("nvme0", noon);
    EXPECT_EQ(s.log.lines(), std::vector<std::string>{}) << "\"left ()\" helps nobody";
}

TEST(ThePublisher, TellsADriveThatComesAndGoesAllTheTimeInTenLinesAMinute)
{
    Stage s;
    const Outcome outcome = s.reconcile();
    for (int i = 0; i < 100; ++i) {
        s.publisher.outcome(outcome, noon);
        s.publisher.left("nvme0", noon);
    }
    EXPECT_EQ(s.log.lines().size(), 10U);
    s.publisher.outcome(outcome, noon + Milliseconds{60'000});
    EXPECT_EQ(s.log.lines().size(), 12U);
    EXPECT_EQ(s.log.count("(290 lines about it were left out)"), 1);
}

TEST(ThePublisher, TellsThatTheBreakerTrippedOnceAndInAnyCase)
{
    Stage s;
    const Outcome change = s.reconcile();
    for (int i = 0; i < 100; ++i)
        s.publisher.outcome(change, noon); // more than a minute's lines
    for (int i = 0; i < 100; ++i)
        s.publisher.breaker("nvme0", "three drop-outs", noon + Milliseconds{i * 120'000});
    EXPECT_EQ(s.log.count("nvme0: three drop-outs; it is kept at the latency tolerance it had at boot"), 1);
    s.publisher.left("nvme0", noon);
    s.publisher.breaker("nvme0", "three drop-outs", noon);
    EXPECT_EQ(s.log.count("three drop-outs"), 2) << "may be another drive";
}

TEST(ThePublisher, TellsThatADriveIsStuckOnceAndThatItAnswers)
{
    Stage s;
    s.publisher.outcome(s.reconcile(), noon);
    s.publisher.stuck("nvme0", Milliseconds{5'000}, noon);
    s.publisher.stuck("nvme0", Milliseconds{5'000}, noon);
    EXPECT_EQ(s.log.count("nvme0: has not answered for 5 s"), 1);
    s.publisher.outcome(s.reconcile(), noon);
    s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.count("nvme0: answers again"), 1);
}

TEST(ThePublisher, DoesNotSayThatItAnswersWhenTheDeadlineWasAllThatCame)
{
    Stage s;
    s.publisher.outcome(s.reconcile(), noon);
    s.publisher.stuck("nvme0", Milliseconds{5'000}, noon);
    s.drive.faults["get-feature"] = refusal_of(RefusalKind::timed_out); // a look that ends like this has no error of its own
    s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.count("answers again"), 0);
    s.drive.faults.clear();
    s.drive.faults["identify"] = refusal_of(RefusalKind::timed_out);
    s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.count("answers again"), 0);
    s.drive.faults.clear();
    s.publisher.outcome(s.reconcile(), noon);
    EXPECT_EQ(s.log.count("answers again"), 1);
}

TEST(ThePublisher, TellsAChangeThatFailsAgainAndAgainOnce)
{
    Stage s;
    Outcome outcome = s.reconcile();
    outcome.applied = false;
    outcome.error = Refusal{"/run/nvmepolicyd/originals.json.new", "", "no space left (ENOSPC)", RefusalKind::try_later};
    for (int i = 0; i < 30; ++i)
        s.publisher.outcome(outcome, noon + Milliseconds{i * 60'000});
    EXPECT_EQ(s.log.count("no space left (ENOSPC)"), 1);
    outcome.plan.changes = {ToleranceChange{s.drive.id, "nvme0", us(100000), us(0), std::nullopt, "profile performance", "0"}};
    s.publisher.outcome(outcome, noon + Milliseconds{3'600'000});
    EXPECT_EQ(s.log.count("no space left (ENOSPC)"), 2) << "another change is another story";
}

TEST(ThePublisher, DoesNotSayThatADryRunHasChangedSomething)
{
    Stage s;
    Session session{&s.breaker, {}, noon};
    const Outcome outcome = look(s.simulated, "nvme0", circumstances(s.simulated), s.ledger, &session);
    for (int i = 0; i < 5; ++i)
        s.publisher.outcome(outcome, noon);
    EXPECT_EQ(s.log.count("nvme0: latency tolerance 100000 -> 25000"), 0) << "nothing was written";
    EXPECT_LE(s.log.lines().size(), 2U) << "and each story once";
}

TEST(TheJournal, CountsWhatNobodyReadsAndSaysSoLater)
{
    StandardError log;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const int kept = ::dup(STDERR_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    Journal journal(LogLevel::info);
    const std::string thousand(1000, 'x');
    for (int i = 0; i < 500; ++i)
        journal.say({LogLevel::info, Happening::trouble, thousand, {}}); // a pipe holds 64 KiB: must not wait
    EXPECT_GT(journal.dropped(), 400U);
    std::string drained(1 << 20, '\0');
    EXPECT_GT(::read(ends[0], drained.data(), drained.size()), 0);
    journal.say({LogLevel::info, Happening::trouble, "after", {}});
    const ssize_t got = ::read(ends[0], drained.data(), drained.size());
    ASSERT_GT(got, 0);
    EXPECT_NE(drained.substr(0, static_cast<std::size_t>(got)).find("after ("), std::string::npos);
    ::dup2(kept, STDERR_FILENO);
    for (const int fd : {kept, ends[0], ends[1]})
        ::close(fd);
}

TEST(TheJournal, DoesNotWaitWithALineThatIsLongerThanThePipeHasRoomFor)
{
    EXPECT_EXIT(
        {
            StandardError log;
            int ends[2];
            if (::pipe2(ends, O_CLOEXEC) != 0)
                std::_Exit(3);
            ::dup2(ends[1], STDERR_FILENO);
            ::alarm(5);
            Journal journal(LogLevel::info);
            for (int i = 0; i < 100; ++i)
                journal.say({LogLevel::info, Happening::trouble, std::string(6000, 'x'), {}}); // a long value in a faulty file
            std::_Exit(0);
        },
        testing::ExitedWithCode(0), "");
}

TEST(TheJournal, IsWhereStandardErrorLeadsOnlyIfItIsTheStreamThatSystemdNamed)
{
    const TemporaryDirectory place;
    const int ours = ::open((place / "stderr").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct stat status {};
    ASSERT_EQ(::fstat(ours, &status), 0);
    const std::string stream = fmt::format("{}:{}", status.st_dev, status.st_ino);
    const int elsewhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);

    ::unsetenv("JOURNAL_STREAM");
    EXPECT_FALSE(leads_to_journal(ours));
    ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
    EXPECT_TRUE(leads_to_journal(ours));
    EXPECT_FALSE(leads_to_journal(elsewhere)) << "redirected since";
    EXPECT_FALSE(leads_to_journal(-1));
    for (const std::string& other :
         {std::string{}, stream + "0", "0" + stream, stream.substr(0, stream.find(':')), "x" + stream}) {
        ::setenv("JOURNAL_STREAM", other.c_str(), 1);
        EXPECT_FALSE(leads_to_journal(ours)) << other;
    }
    ::unsetenv("JOURNAL_STREAM");
    ::close(ours);
    ::close(elsewhere);
}

TEST(TheJournal, LeavesOutWhatIsBelowItsLevel)
{
    StandardError log;
    Journal journal(LogLevel::warning);
    journal.say({LogLevel::info, Happening::changed, "not this", {}});
    journal.say({LogLevel::warning, Happening::changed, "but this", {}});
    journal.say({LogLevel::error, Happening::changed, "and this", {}});
    EXPECT_EQ(log.lines(), (std::vector<std::string>{"nvmepolicyd: but this", "nvmepolicyd: and this"}));
    EXPECT_EQ(journal.dropped(), 0U);
}

TEST(TheJournal, HasADifferentIdForEachKindOfHappening)
{
    std::vector<std::string> ids;
    for (int i = 0; i <= static_cast<int>(Happening::trouble); ++i) {
        const std::string id = message_id(static_cast<Happening>(i));
        EXPECT_EQ(id.size(), 32U);
        EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
        EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 0);
        ids.push_back(id);
    }
}

} // namespace
} // namespace nvmepolicy
