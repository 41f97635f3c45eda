// SPDX-License-Identifier: LGPL-2.1-or-later
// The stories, each step on a service that listens to the simulated kernel.
#include "story_player.h"

#include "daemon_bench.h"

namespace nvmepolicy {
namespace {

/// A service with two drives that a story is played to, step by step.
class Played {
public:
    explicit Played(StandardError& log, std::string_view name) : d(Daemon::start(log)), story_(*find_story(name))
    {
        d.simulated.add(evo_plus());
        d.simulated.add(bc501());
        cast_ = Cast::choose(d.simulated.kernel());
        d.listen().begin();
    }
    Daemon& next()
    {
        d.then([this] { (*cast_.*story_.steps[done_++].happens)(); });
        return d.settle();
    }
    /// No step is left.
    void run()
    {
        d.run();
        EXPECT_EQ(done_, story_.steps.size());
    }
    /// Also while jobs run.
    [[nodiscard]] LatencyTolerance tolerance(const std::string& name) const
    {
        const std::lock_guard lock(d.simulated.kernel().time());
        return d.simulated.find(name)->tolerance;
    }

    Daemon& d;

private:
    const Story& story_;
    std::optional<Cast> cast_;
    std::size_t done_ = 0;
};

TEST(TheStory, PlugUnplugFollowsADriveToItsNewName)
{
    StandardError log;
    Played story(log, "plug-unplug");
    story.next().then([&] {
        EXPECT_EQ(log.count("nvme0: left (Samsung SSD 990 EVO Plus 4TB, serial SIMULATED0000"), 1);
        EXPECT_FALSE(story.d.simulated.find("nvme0"));
    });
    story.next().then([&] {
        EXPECT_EQ(log.count("nvme0: BC501"), 1) << "the other drive is of the second model";
        EXPECT_EQ(story.tolerance("nvme0"), us(25000));
    });
    story.next().then([&] {
        EXPECT_EQ(log.count("nvme2: Samsung SSD 990 EVO Plus 4TB, serial SIMULATED0000"), 1);
        EXPECT_EQ(story.tolerance("nvme2"), us(25000));
    });
    story.next().then([&] {
        EXPECT_EQ(log.count("nvme0: left (BC501"), 1);
        EXPECT_EQ(story.d.simulated.kernel().names(), (std::vector<std::string>{"nvme1", "nvme2"}));
    });
    story.run();
}

TEST(TheStory, BatteryAllowsDeeperSleepUntilThePlugIsBack)
{
    StandardError log;
    Played story(log, "battery");
    story.next().until([&] { return story.tolerance("nvme0") == us(100000) && story.tolerance("nvme1") == us(100000); });
    story.next().until([&] { return story.tolerance("nvme0") == us(25000) && story.tolerance("nvme1") == us(25000); });
    story.run();
    EXPECT_EQ(log.count("nvmepolicyd: on battery"), 1);
    EXPECT_EQ(log.count("nvmepolicyd: on AC"), 1);
}

TEST(TheStory, ResetIsToldOfOnlyWhenTheFirmwareIsAnother)
{
    StandardError log;
    Played story(log, "reset");
    std::size_t lines = 0;
    const auto deepest = [&] { return predict_apst_table(evo_plus().inputs({}), us(25000)).feature; };
    story.d.then([&] {
        lines = log.lines().size();
        static_cast<void>(story.d.host.looks("nvme0"));
    });
    story.next().then([&] {
        EXPECT_GE(story.d.host.looks("nvme0"), 1);
        EXPECT_EQ(log.lines().size(), lines);
        EXPECT_EQ(story.d.simulated.find("nvme0")->apst, deepest());
    });
    story.next().then([&] {
        EXPECT_EQ(log.count("nvme0: Samsung SSD 990 EVO Plus 4TB, serial SIMULATED0000, firmware OTHER"), 1);
        EXPECT_NE(story.d.simulated.find("nvme0")->apst, deepest()) << "down to PS4 now";
    });
    story.next().then([&] {
        EXPECT_EQ(log.lines().size(), lines + 2);
        EXPECT_EQ(story.d.simulated.find("nvme0")->apst, deepest());
        EXPECT_EQ(story.tolerance("nvme0"), us(25000));
    });
    story.run();
}

TEST(TheStory, ForeignWriterIsYieldedTo)
{
    StandardError log;
    Played story(log, "foreign-writer");
    story.next().then(
        [&] { EXPECT_EQ(log.count("nvme0: somebody else set the latency tolerance to 0, ours was 25000; theirs stays"), 1); });
    story.next().then([&] { EXPECT_EQ(story.tolerance("nvme0"), us(0)); });
    story.next().then([&] {
        EXPECT_EQ(story.tolerance("nvme0"), us(25000));
        EXPECT_EQ(log.count("nvme0: in order again"), 1);
        EXPECT_EQ(log.count("latency tolerance to 0"), 1) << "told once";
    });
    story.run();
}

TEST(TheStory, RefusingDriveIsReportedUntilItAccepts)
{
    StandardError log;
    Played story(log, "refusing-drive");
    story.next().then([&] {
        EXPECT_EQ(log.count("nvme0: latency tolerance 25000 -> 24999 -> 25000 (repair)"), 1);
        EXPECT_EQ(log.count("it refused the table"), 1);
        EXPECT_FALSE(story.d.simulated.find("nvme0")->apst.enabled);
    });
    story.next().then([&] {
        EXPECT_EQ(log.count("nvme0: in order again"), 1);
        EXPECT_TRUE(story.d.simulated.find("nvme0")->apst.enabled);
        EXPECT_EQ(story.tolerance("nvme0"), us(25000));
    });
    story.run();
}

TEST(AStory, NeedsADriveThatCanSleep)
{
    SimulatedHost host;
    EXPECT_FALSE(Cast::choose(host.kernel()));
    DriveFile sleepless = evo_plus();
    sleepless.apsta = 0;
    host.add(sleepless);
    EXPECT_FALSE(Cast::choose(host.kernel()));
    host.add(evo_plus());
    ASSERT_TRUE(Cast::choose(host.kernel()));
    EXPECT_EQ(Cast::choose(host.kernel())->drive(), "nvme1");
}

TEST(AStory, IsAboutTheControllerThatCameFirst)
{
    SimulatedHost host;
    DriveFile sleepless = evo_plus();
    sleepless.apsta = 0;
    for (int i = 0; i < 3; ++i)
        host.add(sleepless);
    for (int i = 3; i < 12; ++i)
        host.add(evo_plus());
    EXPECT_EQ(Cast::choose(host.kernel())->drive(), "nvme3") << "not nvme10";
}

TEST(AStory, HasTheSameDriveTwiceWhereThereIsOnlyOneModel)
{
    SimulatedHost host;
    host.add(evo_plus());
    auto cast = Cast::choose(host.kernel());
    cast->plug_other();
    EXPECT_EQ(cast->other(), "nvme1");
    EXPECT_EQ(host.find("nvme1")->drive, evo_plus());
    EXPECT_NE(host.find("nvme1")->id, host.find("nvme0")->id);
}

class EveryStory : public testing::TestWithParam<Story> {};

TEST_P(EveryStory, IsToldStepByStepAndCanBeToldAgain)
{
    const Story& story = GetParam();
    EventLoop loop;
    SimulatedHost host;
    host.add(evo_plus());
    const DriveFile drive = host.find("nvme0")->drive;
    std::vector<std::string> texts;
    int rounds = 0;
    std::optional<StoryPlayer> player;
    player.emplace(
        loop, story, *Cast::choose(host.kernel()), [&](const std::string& text) { texts.push_back(text); },
        [&] {
            EXPECT_EQ(host.kernel().names().size(), 1U);
            EXPECT_EQ(host.machine.power_source, PowerSource::ac);
            EXPECT_EQ(host.kernel().find(host.kernel().names().front())->drive, drive);
            if (++rounds < 2)
                return player->begin();
            player.reset();
            loop.exit(0);
        },
        Milliseconds{0});
    player->begin();
    EXPECT_EQ(loop.run(), 0);
    ASSERT_EQ(texts.size(), 2 * story.steps.size());
    for (const std::string& text : texts)
        EXPECT_EQ(text.find('{'), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(OfTheProgram, EveryStory, testing::ValuesIn(stories().begin(), stories().end()), [](const auto& row) {
    std::string name(row.param.name);
    std::ranges::replace(name, '-', '_');
    return name;
});

TEST(AStory, IsPlayedByTheProgramWhichThenPutsEverythingBack)
{
    const std::string command = "exec " NVMEPOLICYD " --story plug-unplug --simulate " NVMEPOLICY_SOURCE_DIR
                                "/tests/drives/samsung-990-evo-plus-4tb.json 2>&1";
    std::FILE* const output = ::popen(command.c_str(), "r"); // NOLINT(cert-env33-c): nothing in it is from outside
    ASSERT_TRUE(output);
    std::string said;
    for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output))
        said += static_cast<char>(c);
    EXPECT_EQ(::pclose(output), 0) << said;
    std::size_t from = 0;
    // What the service says in between depends on how busy the machine is.
    for (const char* part : {"started, on SIMULATED drives", "story: plug-unplug: ", "story: nvme0 is unplugged",
                             "story: another drive", "story: the drive that was nvme0", "story: nvme0, the other drive",
                             "story: the end", "nvme1: original latency tolerance 100000 put back (found 25000)"}) {
        const std::size_t at = said.find(part, from);
        ASSERT_NE(at, std::string::npos) << part << " in\n" << said;
        from = at;
    }
}

TEST(AStory, HappensBeforeAnybodyListensToo)
{
    SimulatedHost host;
    host.add(evo_plus());
    auto cast = Cast::choose(host.kernel());
    cast->pull_ac_plug();
    EXPECT_EQ(host.machine.power_source, PowerSource::battery);
}

} // namespace
} // namespace nvmepolicy
