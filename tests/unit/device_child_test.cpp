// SPDX-License-Identifier: LGPL-2.1-or-later
// The child process that may hang, played by shell scripts that answer rightly, wrongly, partly, never.
#include "host/device_child.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <poll.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

#include "host/laned_device.h"
#include "host/linux_host.h"
#include "temporary_directory.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

constexpr auto long_enough = 10s; ///< for a script on a busy machine
constexpr auto impatient = 300ms;

/// A program of ours and the directories of three "controllers" called after nodes that every machine has.
struct Bench {
    TemporaryDirectory files;
    mutable LeftBehind left_behind;
    mutable ThreadWaiting waiting;
    mutable PmQosLane lane{[this](std::uint64_t object) { return left_behind.waits_for(object); }, waiting};

    Bench()
    {
        files.write("null/dev", "1:3\n");
        files.write("zero/dev", "1:5\n");
        files.write("full/dev", "9:9\n"); // is 1:7: the node belongs to another one
    }
    /// A script whose `serve` gets each request; $dir is our directory.
    [[nodiscard]] std::string program(const std::string& serve, const std::string& greeting = "echo ok 0 0") const
    {
        const std::string path =
            files.write("device", "#!/bin/sh\ndir='" + files.path() + "'\n"
                                      + "hang() { while [ -d \"$dir\" ] && [ ! -e \"$dir/go\" ]; do sleep 0.02; done; }\n"
                                      + greeting + "\nwhile read -r request; do\n" + serve + "\ndone\n");
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        return path;
    }
    [[nodiscard]] std::unique_ptr<ControllerDevice> child(const std::string& program, Patience patience,
                                                          const std::string& name = "null", std::uint64_t object = 7) const
    {
        const UniqueFd directory(::open((files / name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        EXPECT_TRUE(directory);
        auto line = std::make_unique<DeviceChild>(name, directory.get(), object, program, patience, left_behind);
        return std::make_unique<LanedDevice>(name, object, std::move(line), lane, patience);
    }
    void let_go() const { files.write("go", ""); }
};

/// No child of ours is left, neither running nor as a zombie.
bool childless()
{
    return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
}

std::string text(const std::vector<std::uint8_t>& bytes)
{
    return {bytes.begin(), bytes.end()};
}

TEST(ADeviceChild, AnswersRequestsInOrderAndIsReaped)
{
    Bench bench;
    {
        auto device = bench.child(bench.program(R"sh(echo "$request" >>"$dir/log"
            case "$request" in
            identify) printf 'ok 0 5\nhello' ;;
            get-feature*) printf 'ok 1 3\nabc' ;;
            read-tolerance) printf 'ok 0 6\n25000\n' ;;
            read-attribute*) printf 'ok 0 0\n' ;;
            write-tolerance*) printf 'ok 0 0\n' ;;
            esac)sh"),
                                  {long_enough});
        const auto page = device->identify_controller();
        ASSERT_TRUE(page) << page.error().text();
        EXPECT_EQ(text(*page), "hello");
        const auto reply = device->get_feature(0x0c, 0, 256);
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->result, 1U);
        EXPECT_EQ(text(reply->buffer), "abc");
        EXPECT_EQ(*device->read_tolerance(), "25000\n");
        EXPECT_EQ(*device->read_attribute("nvme0n1/queue/fua"), "");
        EXPECT_TRUE(device->write_tolerance(LatencyTolerance::any(), {}));
    }
    EXPECT_EQ(bench.files.read("log"), "identify\nget-feature 12 0 256\nread-tolerance\nread-attribute nvme0n1/queue/fua\n"
                                       "write-tolerance any\n");
    EXPECT_TRUE(childless());
}

TEST(ADeviceChild, PassesOnWhatKernelAndDriveSay)
{
    Bench bench;
    auto device = bench.child(bench.program(R"sh(case "$request" in
            identify) echo 'errno 19 0' ;;
            get-feature*) echo 'status 2 0' ;;
            read-tolerance) echo 'errno 2 0' ;;
            write-tolerance*) echo 'errno 22 0' ;;
            esac)sh"),
                              {long_enough});
    EXPECT_EQ(device->identify_controller().error().kind, RefusalKind::gone);
    EXPECT_EQ(device->get_feature(0x0c, 0, 256).error().kind, RefusalKind::unsupported);
    EXPECT_EQ(device->read_tolerance().error().kind, RefusalKind::absent);
    const auto written = device->write_tolerance(LatencyTolerance::of(25000us), {});
    EXPECT_EQ(written.error().kind, RefusalKind::invalid);
    EXPECT_EQ(written.error().value, "25000");
}

TEST(ADeviceChild, IsNotStartedBeforeItIsNeeded)
{
    Bench bench;
    {
        auto device = bench.child(bench.program("", "touch \"$dir/started\"; echo ok 0 0"), {long_enough});
        EXPECT_TRUE(childless());
    }
    EXPECT_FALSE(std::filesystem::exists(bench.files / "started"));
}

TEST(ADeviceChild, ThatCannotBeStartedIsARefusalThatNamesTheProgram)
{
    Bench bench;
    auto device = bench.child(bench.files / "no-such-program", {long_enough});
    const auto answer = device->read_tolerance();
    ASSERT_FALSE(answer);
    EXPECT_NE(answer.error().text().find("no-such-program"), std::string::npos);
    EXPECT_TRUE(childless());
    EXPECT_FALSE(device->read_tolerance());
}

struct Wrong {
    const char* what;
    std::string serve;
    std::string greeting = "echo ok 0 0";
};

class AWrongDevice : public testing::TestWithParam<Wrong> {};

TEST_P(AWrongDevice, IsAClearRefusalEveryTimeAndNotAWait)
{
    Bench bench;
    {
        auto device = bench.child(bench.program(GetParam().serve, GetParam().greeting), {long_enough});
        for (int i = 0; i < 3; ++i) {
            const auto answer = device->read_tolerance();
            ASSERT_FALSE(answer) << *answer;
            EXPECT_EQ(answer.error().kind, RefusalKind::failed) << answer.error().text();
            EXPECT_FALSE(answer.error().reason.empty());
        }
        EXPECT_FALSE(device->identify_controller());
        EXPECT_FALSE(device->write_tolerance(LatencyTolerance::any(), {}));
    }
    EXPECT_TRUE(childless());
}

INSTANTIATE_TEST_SUITE_P(Answers, AWrongDevice,
                         testing::Values(Wrong{"dies_at_once", "", "exit 3"},
                                         Wrong{"dies_after_greeting", "", "echo ok 0 0; exit 1"},
                                         Wrong{"dies_when_asked", "exit 1"}, Wrong{"dies_in_the_line", "printf 'ok 0'; exit 1"},
                                         Wrong{"dies_in_the_data", "printf 'ok 0 6\\n250'; exit 1"},
                                         Wrong{"killed", "kill -9 $$"}, Wrong{"garbage", "echo what; exit 0"},
                                         Wrong{"empty_line", "echo; exit 0"}, Wrong{"too_long", "echo 'ok 0 5000'; exit 0"},
                                         Wrong{"negative", "echo 'ok -1 0'; exit 0"},
                                         Wrong{"binary", "printf '\\000\\377\\n'; exit 0"},
                                         Wrong{"endless_line", "head -c 100000 /dev/zero; exit 0"},
                                         Wrong{"no_greeting", "echo ok 0 0", "echo hello; exit 0"}),
                         [](const auto& row) { return std::string(row.param.what); });

TEST(ADeviceChild, ThatHangsIsLeftBehindAfterTheDeadline)
{
    Bench bench;
    const std::string program = bench.program("hang; exit 0");
    {
        auto device = bench.child(program, {impatient});
        const auto before = std::chrono::steady_clock::now();
        const auto answer = device->identify_controller();
        ASSERT_FALSE(answer);
        EXPECT_EQ(answer.error().kind, RefusalKind::timed_out);
        EXPECT_GE(std::chrono::steady_clock::now() - before, impatient);
        EXPECT_EQ(device->identify_controller().error().kind, RefusalKind::timed_out);
        EXPECT_EQ(device->read_attribute("x").error().kind, RefusalKind::timed_out);
    } // and the destructor does not wait for it
    EXPECT_TRUE(bench.left_behind.waits_for(7));
    EXPECT_FALSE(bench.left_behind.waits_for(8));

    auto second = bench.child(program, {long_enough});
    const auto answer = second->read_attribute("x");
    EXPECT_EQ(answer.error().kind, RefusalKind::timed_out) << "not asked while the first child is there";
    EXPECT_NE(answer.error().text().find("an earlier request has not come back"), std::string::npos);

    bench.let_go();
    while (bench.left_behind.waits_for(7))
        std::this_thread::yield();
    EXPECT_TRUE(childless());
}

TEST(ADeviceChild, AnswersAgainOnceTheOldOneHasEnded)
{
    Bench bench;
    const std::string program = bench.program("[ -e \"$dir/go\" ] && printf 'ok 0 6\\n25000\\n' && continue\nhang; exit 0");
    {
        auto device = bench.child(program, {impatient});
        EXPECT_EQ(device->read_attribute("x").error().kind, RefusalKind::timed_out);
    }
    bench.let_go();
    while (bench.left_behind.waits_for(7))
        std::this_thread::yield();
    auto device = bench.child(program, {long_enough});
    const auto answer = device->read_attribute("x");
    ASSERT_TRUE(answer) << answer.error().text();
    EXPECT_EQ(*answer, "25000\n");
}

/// Two looks at one controller, begun before either of them hung.
TEST(ADeviceChild, IsNotForgottenForAnotherThatIsLeftBehindWithTheSameController)
{
    Bench bench;
    {
        const std::string program = bench.program("[ \"$request\" = identify ] || hang; echo ok 0 0");
        auto one = bench.child(program, {impatient});
        auto other = bench.child(program, {impatient});
        EXPECT_TRUE(one->identify_controller());
        EXPECT_TRUE(other->identify_controller());
        EXPECT_EQ(one->read_attribute("a").error().kind, RefusalKind::timed_out);
        EXPECT_EQ(other->read_attribute("a").error().kind, RefusalKind::timed_out);
    }
    EXPECT_TRUE(bench.left_behind.waits_for(7));
    bench.let_go();
    while (bench.left_behind.waits_for(7))
        std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(childless());
}

TEST(ADeviceChild, ThatWasLeftBehindTellsOfItsEndByItself)
{
    Bench bench;
    {
        auto device = bench.child(bench.program("hang"), {impatient});
        EXPECT_EQ(device->identify_controller().error().kind, RefusalKind::timed_out);
    }
    LeftBehind& children = bench.left_behind;
    pollfd ended{children.descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, 0), 0);
    bench.let_go();
    EXPECT_EQ(::poll(&ended, 1, 10'000), 1);
    children.reap();
    EXPECT_TRUE(childless()) << "nobody had to ask for that drive again";
    EXPECT_EQ(::poll(&ended, 1, 0), 0);
}

TEST(ADeviceChild, ThatStopsInTheMiddleOfAnAnswerIsLeftBehindToo)
{
    for (const char* partial : {"printf 'ok 0'", "printf 'ok 0 10\\n12345'"}) {
        Bench bench;
        {
            auto device = bench.child(bench.program(std::string(partial) + "; hang; exit 0"), {impatient});
            EXPECT_EQ(device->read_attribute("x").error().kind, RefusalKind::timed_out);
        }
        bench.let_go();
        while (bench.left_behind.waits_for(7))
            std::this_thread::yield();
        EXPECT_TRUE(childless());
    }
}

TEST(ADeviceChild, GetsNoMoreThanWhatIsLeftOfTheWholeTime)
{
    Bench bench;
    auto device = bench.child(bench.program("hang; exit 0"), {long_enough, Patience::Clock::now() + impatient});
    EXPECT_EQ(device->read_attribute("x").error().kind, RefusalKind::timed_out);
    bench.let_go();
    while (bench.left_behind.waits_for(7))
        std::this_thread::yield();
}

TEST(ADeviceChild, ThatStartsSlowlyIsNotADriveThatHangs)
{
    Bench bench;
    auto device = bench.child(bench.program("printf 'ok 0 1\\nx'", "sleep 0.6; echo ok 0 0"), {impatient});
    const auto answer = device->read_attribute("x");
    ASSERT_TRUE(answer) << answer.error().text();
}

TEST(ADeviceChild, InheritsNothing)
{
    Bench bench;
    int leaked[2];
    ASSERT_EQ(::pipe(leaked), 0); // without O_CLOEXEC, as whoever started us may have left it
    const int high = ::fcntl(leaked[0], F_DUPFD, 200);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGHUP, SIGINT})
        sigaddset(&signals, signal);
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &signals, nullptr), 0); // as in the service
    ::signal(SIGPIPE, SIG_IGN);
    auto device = bench.child(bench.program(R"sh(case "$request" in
            identify)
                {
                for fd in /proc/$$/fd/*; do echo "${fd##*/} $(readlink "$fd")"; done
                readlink /proc/$$/cwd
                while read -r line; do case "$line" in SigBlk*|SigIgn*) echo "$line" ;; esac; done </proc/$$/status
                } >"$dir/seen" 2>/dev/null
                printf 'ok 0 0\n' ;;
            esac)sh"),
                              {long_enough});
    ASSERT_TRUE(device->identify_controller());
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    struct stat pipe {};
    ASSERT_EQ(::fstat(leaked[0], &pipe), 0);
    EXPECT_EQ(bench.files.read("seen").find("pipe:[" + std::to_string(pipe.st_ino) + "]"), std::string::npos);
    ::close(leaked[0]);
    ::close(leaked[1]);
    ::close(high);

    std::map<int, std::string> fds;
    std::string cwd, status;
    std::istringstream seen(bench.files.read("seen"));
    for (std::string line; std::getline(seen, line);) {
        if (line.starts_with("Sig"))
            status += line + "\n";
        else if (line.starts_with("/"))
            cwd = line;
        else
            fds[std::stoi(line)] = line.substr(line.find(' ') + 1);
    }
    fds.erase(10); // the shell's own, on the script
    fds.erase(1);  // the shell has put the list there
    fds.erase(11); // and moved standard output out of the way
    fds.erase(12);
    fds.erase(5); // and reads the directory and readlink's words with this
    EXPECT_TRUE(fds[0].starts_with("socket:"));
    EXPECT_EQ(fds[2], "/dev/null");
    EXPECT_EQ(fds[3], bench.files / "null");
    EXPECT_EQ(fds[4], "/dev/null") << "the node";
    EXPECT_EQ(fds.size(), 4U) << bench.files.read("seen");
    EXPECT_EQ(cwd, "/");
    // 32 and 33 are the C library's own. That of Debian 12 (2.36) ignores them while it spawns, that of Debian 13 does not.
    if (const auto own = status.find("0000000180000000\n"); own != std::string::npos)
        status.replace(own, 16, "0000000000000000");
    EXPECT_EQ(status, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(ADeviceChild, GetsNoNodeWhereNoneIsNeeded)
{
    Bench bench;
    auto device = bench.child(bench.program("[ -e /proc/$$/fd/4 ] && echo 'ok 0 1' || echo 'ok 0 0'"), {long_enough});
    const auto answer = device->read_tolerance();
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, "");
    EXPECT_EQ(device->identify_controller().error().kind, RefusalKind::try_later) << "it cannot be handed over later";
}

TEST(ADeviceChild, RefusesANodeThatBelongsToAnotherController)
{
    Bench bench;
    auto device = bench.child(bench.program("printf 'ok 0 0\\n'"), {long_enough}, "full");
    EXPECT_EQ(device->identify_controller().error().kind, RefusalKind::gone);
    EXPECT_TRUE(childless());
}

// --- the lane ------------------------------------------------------------------------------------------------------------

TEST(TheLane, NamesTheControllerThatHangsInIt)
{
    Bench bench;
    {
        auto sick = bench.child(bench.program("hang; exit 0"), {impatient}, "null", 7);
        EXPECT_EQ(sick->write_tolerance(LatencyTolerance::any(), {}).error().kind, RefusalKind::timed_out);
    }
    auto healthy = bench.child(bench.program("printf 'ok 0 6\\n25000\\n'"), {impatient}, "zero", 8);
    const auto answer = healthy->read_tolerance();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, RefusalKind::timed_out);
    EXPECT_NE(answer.error().text().find("null has not answered"), std::string::npos) << answer.error().text();
    EXPECT_TRUE(healthy->identify_controller()) << "only the lane is closed";

    bench.let_go();
    auto later = bench.child(bench.program("printf 'ok 0 6\\n25000\\n'"), {long_enough}, "zero", 8);
    const auto now = later->read_tolerance();
    ASSERT_TRUE(now) << now.error().text();
    EXPECT_EQ(*now, "25000\n");
    while (bench.left_behind.waits_for(7))
        std::this_thread::yield();
}

TEST(TheLane, NamesItToEveryoneWhoWaits)
{
    Bench bench;
    {
        auto sick = bench.child(bench.program("hang; exit 0"), {impatient}, "null", 7);
        EXPECT_FALSE(sick->write_tolerance(LatencyTolerance::any(), {}));
    }
    const std::string program = bench.program("printf 'ok 0 6\\n25000\\n'");
    std::string said[3];
    {
        std::vector<std::jthread> waiting;
        for (std::uint64_t i = 0; i < 3; ++i)
            waiting.emplace_back([&, i] {
                auto device = bench.child(program, {impatient}, "zero", 8 + i);
                const auto answer = device->read_tolerance();
                said[i] = answer ? "no refusal" : answer.error().text();
            });
    }
    for (const std::string& text : said)
        EXPECT_NE(text.find("null has not answered"), std::string::npos) << text;
    bench.let_go();
    while (bench.left_behind.waits_for(7))
        std::this_thread::yield();
}

TEST(TheLane, StaysOpenWhenADriveHangsOutsideOfIt)
{
    Bench bench;
    auto sick = bench.child(bench.program("hang; exit 0"), {impatient}, "null", 7);
    EXPECT_EQ(sick->identify_controller().error().kind, RefusalKind::timed_out);
    EXPECT_EQ(sick->read_tolerance().error().kind, RefusalKind::timed_out) << "as observe does after a failed Identify";

    auto healthy = bench.child(bench.program("printf 'ok 0 6\\n25000\\n'"), {impatient}, "zero", 8);
    const auto answer = healthy->read_tolerance();
    EXPECT_TRUE(answer) << "nothing of the sick drive is in the lane, yet: " << answer.error().text();
    bench.let_go();
    while (bench.left_behind.waits_for(7))
        std::this_thread::yield();
}

TEST(TheLane, IsGivenBackAfterARefusal)
{
    Bench bench;
    auto first = bench.child(bench.program("exit 1"), {long_enough}, "null", 7);
    EXPECT_FALSE(first->read_tolerance());
    auto second = bench.child(bench.program("printf 'ok 0 6\\n25000\\n'"), {impatient + long_enough}, "zero", 8);
    EXPECT_TRUE(second->read_tolerance());
}

TEST(TheLane, IsForOneAtATime)
{
    Bench bench;
    const std::string program = bench.program(R"sh(mkdir "$dir/inside" || touch "$dir/two"
        sleep 0.02; rmdir "$dir/inside"; printf 'ok 0 0\n')sh");
    {
        std::vector<std::jthread> crowd;
        for (std::uint64_t i = 0; i < 6; ++i)
            crowd.emplace_back([&, i] {
                auto device = bench.child(program, {long_enough}, "null", 20 + i);
                for (int n = 0; n < 3; ++n)
                    EXPECT_TRUE(device->read_tolerance());
            });
    }
    EXPECT_FALSE(std::filesystem::exists(bench.files / "two"));
    EXPECT_TRUE(childless());
}

TEST(TheLane, IsSharedByAHostAndAHurriedCopyOfIt)
{
    Bench bench;
    const LinuxHost host({long_enough}, bench.program("hang; exit 0"));
    LinuxHost hurried(host, {impatient, Patience::Clock::now() + impatient});
    EXPECT_FALSE(hurried.simulated());
    EXPECT_FALSE(hurried.open_directory("class/no-such-class"));
}

} // namespace
} // namespace nvmepolicy
