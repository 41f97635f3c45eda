// SPDX-License-Identifier: LGPL-2.1-or-later
// The guard from end to end: the installed program, with another drive behind it (fake_drive.cpp), on a directory of ordinary
// files. A file of the cache mode there keeps all that was written to it, one line a write.
#include "host/guard_child.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sstream>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

#include "host/device_process.h"
#include "temporary_directory.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

constexpr auto long_enough = 20s; ///< for a program on a busy machine
constexpr auto impatient = 300ms;
constexpr auto a_while = 400ms; ///< in which nothing must happen

bool eventually(const std::function<bool()>& condition)
{
    for (const auto end = std::chrono::steady_clock::now() + long_enough; std::chrono::steady_clock::now() < end;) {
        if (condition())
            return true;
        std::this_thread::sleep_for(5ms);
    }
    return condition();
}

bool childless()
{
    return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
}

struct Bench {
    TemporaryDirectory files;
    mutable LeftBehind left_behind;

    Bench()
    {
        files.write("dev", "1:3\n"); // as /dev/null, which is the controller's node here
        set_state("live");
        add_disk("1");
    }
    ~Bench()
    {
        EXPECT_TRUE(eventually([this] { return !left_behind.waits_for(LeftBehind::nobody); }));
        EXPECT_TRUE(childless());
    }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;
    Bench(Bench&&) = delete;
    Bench& operator=(Bench&&) = delete;

    void add_disk(const std::string& n) const
    {
        files.write("nvme0n" + n + "/nsid", n + "\n");
        files.write("nvme0n" + n + "/queue/write_cache", "");
        files.write("ng7n" + n + "/dev", "1:3\n"); // It bears the controller's number, the disk that of the subsystem.
    }
    void set_state(const std::string& state) const
    {
        files.write("state.new", state + "\n");
        std::filesystem::rename(files / "state.new", files / "state");
    }
    void remove(const std::string& name) const { std::filesystem::remove_all(files / name); }
    [[nodiscard]] std::string written(const std::string& leaf = "nvme0n1") const
    {
        return files.read(leaf + "/queue/write_cache");
    }
    [[nodiscard]] std::string log() const { return std::filesystem::exists(files / "log") ? files.read("log") : ""; }
    [[nodiscard]] UniqueFd directory() const
    {
        return UniqueFd(::open(files.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    [[nodiscard]] std::unique_ptr<CacheGuard> guard(Patience patience = {long_enough}) const
    {
        return std::make_unique<GuardChild>("null", directory().get(), FAKE_DEVICE, patience, left_behind);
    }
    /// One that has nvme0n1 write through.
    [[nodiscard]] std::unique_ptr<CacheGuard> guard_of_one_through() const
    {
        auto g = guard();
        EXPECT_TRUE(g->hold("nvme0n1"));
        const auto through = g->write_through("nvme0n1", 0);
        EXPECT_TRUE(through) << through.error().text();
        EXPECT_EQ(written(), "write back\nwrite through\n");
        return g;
    }
};

/// Our only child.
int child()
{
    std::istringstream children;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(task.path() / "children");
        int pid = 0;
        if (file >> pid)
            return pid;
    }
    ADD_FAILURE() << "no child";
    return -1;
}

const char* const held_log = "open ng7n1\nflush 1: write back\n";
const char* const back_again = "write back\nwrite through\nwrite back\n";

TEST(AGuard, IsNotStartedBeforeItIsNeeded)
{
    const Bench bench;
    const auto guard = bench.guard();
    EXPECT_EQ(guard->doubts(), 0U);
    guard->doubt();
    EXPECT_EQ(guard->doubts(), 1U);
    EXPECT_TRUE(guard->write_back("nvme0n1")) << "nothing is owed";
    EXPECT_TRUE(childless());
}

TEST(AGuard, WalksTheWayBackBeforeTheWayThere)
{
    const Bench bench;
    const auto guard = bench.guard();
    const auto held = guard->hold("nvme0n1");
    ASSERT_TRUE(held) << held.error().text();
    EXPECT_EQ(bench.written(), "write back\n");
    EXPECT_EQ(bench.log(), held_log);
    ASSERT_TRUE(guard->write_through("nvme0n1", 0));
    EXPECT_EQ(bench.written(), "write back\nwrite through\n");
    EXPECT_EQ(bench.log(), held_log) << "no Flush on the way there";
    ASSERT_TRUE(guard->write_back("nvme0n1"));
    EXPECT_EQ(bench.written(), back_again);
    EXPECT_EQ(bench.log(), std::string(held_log) + "flush 1: write back\n");
    ASSERT_TRUE(guard->write_back("nvme0n1")) << "and nothing is owed any more";
    EXPECT_EQ(bench.written(), back_again);
}

TEST(AGuard, DoesNotWriteThroughWhatItDoesNotHold)
{
    const Bench bench;
    const auto guard = bench.guard();
    EXPECT_EQ(guard->write_through("nvme0n1", 0).error().kind, RefusalKind::try_later);
    EXPECT_EQ(bench.written(), "");
}

TEST(AGuard, DoesNotHoldWhatItCannotFlush)
{
    const Bench bench;
    bench.files.write("flush-answer", "status 2 0\n");
    const auto guard = bench.guard();
    EXPECT_EQ(guard->hold("nvme0n1").error().kind, RefusalKind::unsupported);
    EXPECT_FALSE(guard->write_through("nvme0n1", 0));
    EXPECT_TRUE(guard->write_back("nvme0n1")) << "nothing is owed";
    EXPECT_EQ(bench.written(), "write back\n");
}

TEST(AGuard, PutsEverythingBackAtADoubtWithoutBeingAsked)
{
    const Bench bench;
    bench.add_disk("2");
    const auto guard = bench.guard_of_one_through();
    ASSERT_TRUE(guard->hold("nvme0n2"));
    ASSERT_TRUE(guard->write_through("nvme0n2", 0));
    guard->doubt();
    EXPECT_TRUE(eventually([&] { return bench.log().ends_with("flush 1: write back\nflush 2: write back\n"); })) << bench.log();
    EXPECT_EQ(bench.written("nvme0n1"), back_again);
    EXPECT_EQ(bench.written("nvme0n2"), back_again);
    EXPECT_TRUE(guard->write_back("nvme0n1"));
}

TEST(AGuard, WritesAllBackBeforeItWaitsForAFlush)
{
    const Bench bench;
    bench.add_disk("2");
    const auto guard = bench.guard_of_one_through();
    ASSERT_TRUE(guard->hold("nvme0n2"));
    ASSERT_TRUE(guard->write_through("nvme0n2", 0));
    bench.files.write("hang", "");
    guard->doubt();
    EXPECT_TRUE(eventually([&] { return bench.written("nvme0n1") == back_again && bench.written("nvme0n2") == back_again; }));
    bench.remove("hang");
}

TEST(AGuard, RefusesWhatWasDecidedBeforeADoubt)
{
    const Bench bench;
    const auto guard = bench.guard();
    ASSERT_TRUE(guard->hold("nvme0n1"));
    guard->doubt();
    const auto refused = guard->write_through("nvme0n1", 0);
    EXPECT_EQ(refused.error().text(), "null: nvme0n1/queue/write_cache: not written through: there was a doubt meanwhile");
    EXPECT_EQ(refused.error().kind, RefusalKind::try_later);
    EXPECT_EQ(bench.written(), "write back\n");
    EXPECT_TRUE(guard->write_through("nvme0n1", 1)) << "what was decided after it is done";
}

TEST(AGuard, CountsDoubtsFromBeforeItsStartToo)
{
    const Bench bench;
    const auto guard = bench.guard();
    guard->doubt();
    guard->doubt();
    ASSERT_TRUE(guard->hold("nvme0n1"));
    EXPECT_FALSE(guard->write_through("nvme0n1", 1));
    EXPECT_TRUE(guard->write_through("nvme0n1", 2));
    guard->doubt();
    EXPECT_FALSE(guard->write_through("nvme0n1", 2));
    EXPECT_TRUE(guard->write_through("nvme0n1", 3)) << "without holding it again";
}

TEST(AGuard, UndoesAWriteDuringWhichADoubtCame)
{
    const Bench bench;
    bench.remove("nvme0n1/queue/write_cache");
    const std::string path = bench.files / "nvme0n1/queue/write_cache";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); // A write to it can be made to wait.
    const UniqueFd fifo(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const auto guard = bench.guard();
    ASSERT_TRUE(guard->hold("nvme0n1"));
    const std::string filling(4096, 'x');
    while (::write(fifo.get(), filling.data(), filling.size()) > 0) {
    }
    Result<void> refused;
    std::jthread job([&] { refused = guard->write_through("nvme0n1", 0); });
    std::this_thread::sleep_for(a_while);
    guard->doubt(); // does not wait for the write
    std::string seen(1 << 20, '\0');
    std::size_t used = 0;
    EXPECT_TRUE(eventually([&] {
        const ssize_t got = ::read(fifo.get(), seen.data() + used, seen.size() - used);
        used += got > 0 ? static_cast<std::size_t>(got) : 0;
        return std::string_view(seen.data(), used).ends_with("xwrite through\nwrite back\n");
    }));
    job.join();
    EXPECT_EQ(refused.error().kind, RefusalKind::try_later) << refused.error().text();
}

TEST(AGuard, ThatIsDroppedHasPutEverythingBack)
{
    const Bench bench;
    bench.guard_of_one_through().reset();
    EXPECT_EQ(bench.written(), back_again);
    EXPECT_EQ(bench.log(), std::string(held_log) + "flush 1: write back\n");
    EXPECT_TRUE(childless());
}

TEST(AGuard, PutsEverythingBackWhenItsServiceIsKilled)
{
    const Bench bench;
    const pid_t service = ::fork();
    if (service == 0) {
        const auto guard = bench.guard_of_one_through();
        ::raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(service, &status, 0), service);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(eventually([&] { return bench.log() == std::string(held_log) + "flush 1: write back\n"; })) << bench.log();
    EXPECT_EQ(bench.written(), back_again);
}

TEST(AGuard, WaitsForAControllerThatIsNotLiveAndWritesThen)
{
    for (const char* state : {"resetting", "connecting", "new"}) {
        const Bench bench;
        const auto guard = bench.guard_of_one_through();
        bench.set_state(state);
        guard->doubt();
        EXPECT_EQ(guard->write_back("nvme0n1").error().kind, RefusalKind::try_later);
        std::this_thread::sleep_for(a_while);
        EXPECT_EQ(bench.written(), "write back\nwrite through\n") << "a write would hang";
        EXPECT_EQ(guard->hold("nvme0n1").error().kind, RefusalKind::try_later);
        bench.set_state("live");
        EXPECT_TRUE(eventually([&] { return bench.written() == back_again; }));
        EXPECT_TRUE(guard->write_back("nvme0n1"));
    }
}

TEST(AGuard, WaitsForALiveControllerAlsoWhenNobodyIsThereAnyMore)
{
    const Bench bench;
    auto guard =
        std::make_unique<GuardChild>("null", bench.directory().get(), FAKE_DEVICE, Patience{impatient}, bench.left_behind);
    ASSERT_TRUE(guard->hold("nvme0n1"));
    ASSERT_TRUE(guard->write_through("nvme0n1", 0));
    bench.set_state("resetting");
    const auto before = std::chrono::steady_clock::now();
    guard.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - before, long_enough) << "the destructor does not wait for it";
    EXPECT_TRUE(bench.left_behind.waits_for(LeftBehind::nobody));
    EXPECT_FALSE(bench.left_behind.waits_for(7)) << "and its controller may be asked";
    bench.set_state("live");
    EXPECT_TRUE(eventually([&] { return bench.log() == std::string(held_log) + "flush 1: write back\n"; }));
    EXPECT_EQ(bench.written(), back_again);
}

TEST(AGuard, HasNothingToWriteToAControllerThatLeaves)
{
    for (const char* state : {"deleting", "deleting (no IO)", "dead"}) {
        const Bench bench;
        const auto guard = bench.guard_of_one_through();
        bench.set_state(state);
        EXPECT_TRUE(guard->write_back("nvme0n1"));
        EXPECT_EQ(guard->hold("nvme0n1").error().kind, RefusalKind::gone);
        EXPECT_EQ(bench.written(), "write back\nwrite through\n");
    }
}

TEST(AGuard, EndsWhenItsControllerIsUnplugged)
{
    const Bench bench;
    auto guard = bench.guard_of_one_through();
    for (const char* name : {"state", "dev", "nvme0n1", "ng7n1"})
        bench.remove(name);
    guard->doubt();
    guard.reset();
    EXPECT_TRUE(childless());
    EXPECT_EQ(bench.log(), held_log);
}

TEST(AGuard, ForgetsADiskThatLeft)
{
    const Bench bench;
    const auto guard = bench.guard_of_one_through();
    bench.files.write("flush-answer", "errno " + std::to_string(ENODEV) + " 0\n");
    EXPECT_TRUE(guard->write_back("nvme0n1"));
    bench.remove("flush-answer");
    EXPECT_TRUE(guard->hold("nvme0n1")) << "another one with its name";
}

TEST(AGuard, GoesOnUntilAFlushSucceeds)
{
    const Bench bench;
    const auto guard = bench.guard_of_one_through();
    bench.files.write("flush-answer", "status 880 0\n"); // 370h, host path error
    const auto refused = guard->write_back("nvme0n1");
    EXPECT_EQ(refused.error().text(),
              "null: nvme0n1, write back and Flush: not yet; it is done as soon as the controller is live and takes it");
    EXPECT_EQ(bench.written(), back_again) << "the mode is not written again";
    EXPECT_EQ(guard->write_through("nvme0n1", 0).error().kind, RefusalKind::try_later) << "nor the way there";
    bench.remove("flush-answer");
    EXPECT_TRUE(eventually([&] { return bool(guard->write_back("nvme0n1")); }));
    EXPECT_EQ(bench.written(), back_again);
}

TEST(AGuard, ThatIsKilledIsReplacedAndPutsBackWhatTheOldOneHad)
{
    const Bench bench;
    bench.add_disk("2");
    const auto guard = bench.guard_of_one_through();
    ASSERT_TRUE(guard->hold("nvme0n2"));
    ASSERT_TRUE(guard->write_through("nvme0n2", 0));
    guard->doubt(); // so that the new one counts from elsewhere
    ASSERT_TRUE(eventually([&] { return bench.log().ends_with("flush 2: write back\n"); }));
    ASSERT_TRUE(guard->write_through("nvme0n1", 1));
    ASSERT_TRUE(guard->write_through("nvme0n2", 1));
    bench.files.write("nvme0n1/queue/write_cache", "");
    bench.files.write("nvme0n2/queue/write_cache", "");
    ASSERT_EQ(::kill(child(), SIGKILL), 0);
    EXPECT_TRUE(guard->write_back("nvme0n1"));
    EXPECT_TRUE(guard->write_back("nvme0n2"));
    EXPECT_EQ(bench.written("nvme0n1"), "write back\n");
    EXPECT_EQ(bench.written("nvme0n2"), "write back\n");
    ASSERT_TRUE(guard->write_through("nvme0n1", 1)) << "the new one holds both";
    guard->doubt();
    EXPECT_TRUE(eventually([&] { return bench.written("nvme0n1") == back_again; }));
    EXPECT_FALSE(guard->write_through("nvme0n2", 1));
    EXPECT_TRUE(guard->write_through("nvme0n2", 2));
}

TEST(AGuard, ThatWasKilledDoesNotWriteThrough)
{
    const Bench bench;
    const auto guard = bench.guard();
    ASSERT_TRUE(guard->hold("nvme0n1"));
    ASSERT_EQ(::kill(child(), SIGKILL), 0);
    EXPECT_FALSE(guard->write_through("nvme0n1", 0));
    EXPECT_FALSE(guard->write_through("nvme0n1", 0)) << "nobody stands by";
    EXPECT_EQ(bench.written(), "write back\n");
    EXPECT_TRUE(guard->hold("nvme0n1"));
    EXPECT_TRUE(guard->write_through("nvme0n1", 0));
}

TEST(AGuard, ThatHangsIsAskedAgainOnceItHasAnswered)
{
    const Bench bench;
    bench.files.write("hang", "");
    const auto guard = bench.guard({impatient});
    EXPECT_EQ(guard->hold("nvme0n1").error().kind, RefusalKind::timed_out);
    const auto refused = guard->hold("nvme0n1");
    EXPECT_NE(refused.error().text().find("an earlier request has not come back"), std::string::npos) << refused.error().text();
    bench.remove("hang");
    EXPECT_TRUE(eventually([&] { return bool(guard->hold("nvme0n1")); }));
    EXPECT_TRUE(guard->write_through("nvme0n1", 0));
}

TEST(AGuard, LosesNoDoubtWhileItHangs)
{
    const Bench bench;
    bench.add_disk("2");
    const auto guard = bench.guard_of_one_through();
    bench.files.write("hang", "");
    {
        std::vector<std::jthread> doubters;
        doubters.reserve(4);
        std::jthread job([&] { EXPECT_TRUE(guard->hold("nvme0n2")); });
        ASSERT_TRUE(eventually([&] { return bench.log().ends_with("flush 2: write back\n"); }));
        for (int i = 0; i < 4; ++i)
            doubters.emplace_back([&] {
                for (int n = 0; n < 250; ++n)
                    guard->doubt();
            });
        doubters.clear();
        bench.remove("hang");
    }
    EXPECT_EQ(guard->doubts(), 1000U);
    EXPECT_TRUE(eventually([&] { return bench.written("nvme0n1") == back_again; }));
    EXPECT_FALSE(guard->write_through("nvme0n2", 999));
    EXPECT_TRUE(guard->write_through("nvme0n2", 1000));
}

/// Doubts at any moment of going there and back: what was decided before one is never left write through.
TEST(AGuard, IsNeverLeftWriteThroughAfterADoubt)
{
    const Bench bench;
    const auto guard = bench.guard();
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(guard->hold("nvme0n1"));
        const std::uint64_t doubts = guard->doubts();
        std::jthread doubter([&, i] {
            std::this_thread::sleep_for(std::chrono::microseconds(i * 3));
            guard->doubt();
        });
        [[maybe_unused]] const auto either = guard->write_through("nvme0n1", doubts);
        doubter.join();
        ASSERT_TRUE(eventually([&] { return bench.written().ends_with("write back\n"); })) << i;
    }
}

TEST(AGuard, IsRefusedNamesThatLeadElsewhere)
{
    const Bench bench;
    const auto guard = bench.guard();
    for (const char* name : {"", "nvme0", "nvme0n", "nvme0n1 ", "nvme0n1p1", "nvme0c0", "../nvme0n1", "nvme0n1/../nvme0n1",
                             "nvmen1", "nvme0n1x", "sda", "nvme0n1234567890", "nvme000000000n000000000n000000000", "NVME0N1"})
        EXPECT_EQ(guard->hold(name).error().kind, RefusalKind::invalid) << name;
    EXPECT_EQ(bench.log(), "");
    EXPECT_EQ(guard->hold("nvme0n7").error().kind, RefusalKind::absent);
}

TEST(AGuard, FlushesAPathByTheControllersNode)
{
    const Bench bench;
    bench.remove("nvme0n1");
    bench.remove("ng7n1");
    bench.files.write("nvme0c0n1/nsid", "1\n");
    bench.files.write("nvme0c0n1/queue/write_cache", "");
    const auto guard = bench.guard();
    ASSERT_TRUE(guard->hold("nvme0c0n1"));
    EXPECT_EQ(bench.log(), "flush 1: write back\n");
    EXPECT_TRUE(guard->write_through("nvme0c0n1", 0));
}

TEST(AGuard, DoesNotHoldAPathBesideAnotherNamespace)
{
    const Bench bench;
    bench.files.write("nvme0c0n2/nsid", "2\n");
    bench.files.write("nvme0c0n2/queue/write_cache", "");
    const auto guard = bench.guard();
    EXPECT_EQ(
        guard->hold("nvme0c0n2").error().text(),
        "null: nvme0c0n2, to be write back and flushed first: a Flush cannot be led to this path, since its controller has "
        "several namespaces");
    EXPECT_EQ(bench.written("nvme0c0n2"), "");
}

TEST(AGuard, DoesNotFlushByANodeThatIsNotTheDisks)
{
    {
        const Bench bench;
        bench.files.write("ng7n1/dev", "1:5\n");
        EXPECT_FALSE(bench.guard()->hold("nvme0n1")) << "the name has passed to another device";
    }
    {
        const Bench bench;
        bench.files.write("ng8n1/dev", "1:3\n");
        EXPECT_FALSE(bench.guard()->hold("nvme0n1")) << "two nodes that it could be";
    }
    {
        const Bench bench;
        bench.remove("ng7n1");
        bench.files.write("ng7n11/dev", "1:3\n");
        EXPECT_FALSE(bench.guard()->hold("nvme0n1")) << "another namespace's";
    }
    for (const char* nsid : {"0\n", "4294967295\n", "x\n", "", "-1\n"}) {
        const Bench bench;
        bench.files.write("nvme0n1/nsid", nsid);
        EXPECT_FALSE(bench.guard()->hold("nvme0n1")) << nsid;
        EXPECT_EQ(bench.written(), "");
    }
}

TEST(AGuard, RefusesAControllersNodeThatIsNotItsOwn)
{
    const Bench bench;
    bench.files.write("dev", "1:5\n");
    EXPECT_EQ(bench.guard()->hold("nvme0n1").error().kind, RefusalKind::gone);
}

TEST(AGuard, HasRoomForSixtyFourDisksAndRefusesMore)
{
    const Bench bench;
    for (int n = 2; n <= 65; ++n)
        bench.add_disk(std::to_string(n));
    const auto guard = bench.guard();
    for (int n = 1; n <= 64; ++n)
        ASSERT_TRUE(guard->hold("nvme0n" + std::to_string(n)));
    EXPECT_EQ(guard->hold("nvme0n65").error().kind, RefusalKind::failed);
    EXPECT_TRUE(guard->write_through("nvme0n64", 0));
}

std::string switches_of(int pid)
{
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("voluntary_ctxt_switches"))
            return line;
    return "none";
}

TEST(AGuard, SleepsWhileNothingHappens)
{
    const Bench bench;
    const auto guard = bench.guard_of_one_through();
    std::this_thread::sleep_for(50ms);
    const std::string before = switches_of(child());
    std::this_thread::sleep_for(1s);
    EXPECT_EQ(switches_of(child()), before);
}

TEST(AGuard, IsNotStoppedBySignalsThatAreMeantForTheService)
{
    const Bench bench;
    const auto guard = bench.guard_of_one_through();
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE})
        ASSERT_EQ(::kill(child(), signal), 0);
    EXPECT_TRUE(guard->write_back("nvme0n1"));
    EXPECT_EQ(bench.written(), back_again);
}

// --- what is said --------------------------------------------------------------------------------------------------------

struct Conversation {
    const Bench& bench;
    UniqueFd doubts;
    DeviceProcess process;

    Conversation(const Bench& b, bool as_guard) : bench(b)
    {
        const UniqueFd low(as_guard ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1);
        if (as_guard)
            doubts = duplicate_for_device(low.get());
        const UniqueFd directory = duplicate_for_device(bench.directory().get());
        const UniqueFd node = duplicate_for_device(UniqueFd(::open("/dev/null", O_RDONLY)).get());
        process = *start_device(FAKE_DEVICE, {directory, node, doubts});
        EXPECT_EQ(answer(), "ok 0 0");
    }
    ~Conversation()
    {
        process.socket.reset();
        ::waitpid(process.pid, nullptr, 0);
    }
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;
    Conversation(Conversation&&) = delete;
    Conversation& operator=(Conversation&&) = delete;

    void say(const std::string& text) const
    {
        EXPECT_EQ(::send(process.socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    }
    /// A line; empty at the end.
    [[nodiscard]] std::string answer() const
    {
        std::string line;
        for (char c = 0; ::read(process.socket.get(), &c, 1) == 1 && c != '\n';)
            line += c;
        return line;
    }
    [[nodiscard]] std::string ask(const std::string& request) const
    {
        say(request + "\n");
        std::string line = answer();
        device_protocol::AnswerLine parsed;
        EXPECT_TRUE(device_protocol::parse(line, parsed)) << line;
        for (char c = 0; parsed.length > 0; --parsed.length)
            EXPECT_EQ(::read(process.socket.get(), &c, 1), 1);
        return line;
    }
};

const std::string invalid = "errno " + std::to_string(EINVAL) + " 0";

TEST(AGuardsRequests, AreServedInOrderHoweverTheyCome)
{
    const Bench bench;
    const Conversation guard(bench, true);
    guard.say("hold nvme0n1\nwrite-through nvme0n1 0\ngive-b");
    EXPECT_EQ(guard.answer(), "ok 0 0");
    EXPECT_EQ(guard.answer(), "ok 0 0");
    guard.say("ack nvme0n1\n");
    EXPECT_EQ(guard.answer(), "ok 0 0");
    EXPECT_EQ(bench.written(), back_again);
}

TEST(AGuardsRequests, KeepNobodyFromDoubtingWhileTheyAreHalfThere)
{
    const Bench bench;
    const Conversation guard(bench, true);
    EXPECT_EQ(guard.ask("hold nvme0n1"), "ok 0 0");
    EXPECT_EQ(guard.ask("write-through nvme0n1 0"), "ok 0 0");
    guard.say("write-thr");
    ::eventfd_write(guard.doubts.get(), 1);
    EXPECT_TRUE(eventually([&] { return bench.written() == back_again; }));
    guard.say("ough nvme0n1 0\n");
    EXPECT_EQ(guard.answer(), "errno " + std::to_string(ESTALE) + " 0");
}

TEST(AGuardsRequests, ThatAreTooLongEndItAndPutEverythingBack)
{
    const Bench bench;
    const Conversation guard(bench, true);
    EXPECT_EQ(guard.ask("hold nvme0n1"), "ok 0 0");
    EXPECT_EQ(guard.ask("write-through nvme0n1 0"), "ok 0 0");
    guard.say(std::string(128, 'x'));
    EXPECT_EQ(guard.answer(), "");
    EXPECT_EQ(bench.written(), back_again);
}

TEST(AGuardsRequests, AreItsOwnAndNoOthers)
{
    const Bench bench;
    const Conversation guard(bench, true);
    for (const char* request : {"identify 1 0",
                                "get-feature 6 0 0",
                                "set-write-cache 1 0",
                                "flush nvme0n1",
                                "write-back nvme0n1",
                                "read-tolerance",
                                "read-attribute state",
                                "hold",
                                "hold ",
                                "hold nvme0n1 ",
                                "hold nvme0n1 0",
                                "hold  nvme0n1",
                                "write-through nvme0n1",
                                "write-through nvme0n1 ",
                                "write-through nvme0n1 -1",
                                "write-through nvme0n1 x",
                                "write-through nvme0n1 0 0",
                                "write-through nvme0n1 18446744073709551616",
                                "write-through nvme0n1 0",
                                "give-back",
                                "give-back nvme0",
                                "",
                                " "})
        EXPECT_EQ(guard.ask(request), invalid) << request;
    EXPECT_EQ(bench.log() + bench.written(), "");
    EXPECT_EQ(guard.ask("give-back nvme0n1"), "ok 0 0");
}

TEST(AGuardsRequests, AreNotServedByOthers)
{
    const Bench bench;
    const Conversation device(bench, false);
    for (const char* request : {"hold nvme0n1", "write-through nvme0n1 0", "give-back nvme0n1"})
        EXPECT_EQ(device.ask(request), invalid) << request;
    EXPECT_EQ(bench.log() + bench.written(), "");
}

TEST(ADevicesRequests, ReachTheDriveAsTheyWereMeant)
{
    const Bench bench;
    const Conversation device(bench, false);
    EXPECT_EQ(device.ask("identify 1 0"), "ok 0 4096");
    EXPECT_EQ(device.ask("identify 18 4294967294"), "ok 0 4096");
    EXPECT_EQ(device.ask("get-log 2 512"), "ok 0 512");
    EXPECT_EQ(device.ask("get-log 5 4096"), "ok 0 4096");
    EXPECT_EQ(device.ask("get-feature 6 3 0"), "ok 0 0");
    EXPECT_EQ(device.ask("set-write-cache 0 1"), "ok 0 0");
    EXPECT_EQ(device.ask("read-attribute state"), "ok 0 5");
    EXPECT_EQ(device.ask("write-back nvme0n1"), "ok 0 0");
    EXPECT_EQ(device.ask("flush nvme0n1"), "ok 0 0");
    EXPECT_EQ(bench.log(), "identify 1 0\nidentify 18 4294967294\nget-log 2 512\nget-log 5 4096\nget-feature 6 3\n"
                           "set-write-cache 0 1\nopen ng7n1\nflush 1: write back\n");
}

TEST(ADevicesRequests, ThatAreNotUnderstoodReachNothing)
{
    const Bench bench;
    const Conversation device(bench, false);
    for (const char* request : {"identify",
                                "identify 1",
                                "identify 2 0",
                                "identify 1 0 ",
                                "identify 1 0 0",
                                "identify 1 4294967296",
                                "identify +1 0",
                                "get-log 2",
                                "get-log 2 0",
                                "get-log 2 510",
                                "get-log 2 4100",
                                "get-log 256 512",
                                "get-feature 256 0 0",
                                "get-feature 6 8 0",
                                "get-feature 6 0 4097",
                                "get-feature 6 0",
                                "set-write-cache 2 0",
                                "set-write-cache 1 2",
                                "set-write-cache 1",
                                "write-back nvme0n1 ",
                                "write-back ../nvme0n1",
                                "flush nvme0",
                                "flush",
                                "read-tolerance ",
                                "Flush"})
        EXPECT_EQ(device.ask(request), invalid) << request;
    EXPECT_EQ(bench.log() + bench.written(), "");
}

} // namespace
} // namespace nvmepolicy
