// SPDX-License-Identifier: LGPL-2.1-or-later
// An instance of the kernel's trace, played by ordinary files: making its directory makes them, as in tracefs. What the lines
// of a real one look like, and that its filters do what they say, is for tests/vm.
#include "host/trace_instance.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

#include "temporary_directory.h"

namespace nvmepolicy {
namespace {

namespace fs = std::filesystem;

const std::string instances = "sys/kernel/tracing/instances";
const std::string ours = instances + "/nvmepolicyd";

/// tracefs with as much in it as is needed.
class FakeTrace : public TraceFiles {
public:
    explicit FakeTrace(const std::string& place = instances) { fs::create_directories(files / place); }
    [[nodiscard]] std::string root() const override { return files.path(); }
    [[nodiscard]] int make_directory(const std::string& path) const override
    {
        if (const int made = TraceFiles::make_directory(path); made < 0 || bare)
            return made;
        const std::string base = path.substr(files.path().size() + 1);
        for (const char* file : {"buffer_size_kb", "buffer_percent", "trace_options", "tracing_on"})
            files.write(base + "/" + file, "?");
        if (with_events)
            for (const char* event : {"nvme_setup_cmd", "nvme_complete_rq"})
                for (const char* file : {"filter", "enable"})
                    files.write(base + "/events/nvme/" + event + "/" + file, "?");
        if (::mkfifo((path + "/trace_pipe").c_str(), 0600) < 0)
            std::abort();
        return 0;
    }
    [[nodiscard]] int remove_directory(const std::string& path) const override
    {
        ++removals;
        if (busy > 0) {
            --busy;
            errno = EBUSY;
            return -1;
        }
        if (!fs::exists(path)) {
            errno = ENOENT;
            return -1;
        }
        if (fs::exists(path + "/events/nvme/nvme_setup_cmd/enable"))
            enabled_at_removal = files.read(path.substr(files.path().size() + 1) + "/events/nvme/nvme_setup_cmd/enable");
        fs::remove_all(path);
        return 0;
    }
    [[nodiscard]] UniqueFd writer() const
    {
        return UniqueFd(::open((files / (ours + "/trace_pipe")).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    }

    TemporaryDirectory files;
    bool with_events = true;
    bool bare = false;
    mutable int busy = 0;
    mutable int removals = 0;
    mutable std::string enabled_at_removal;
};

void put(const UniqueFd& pipe, const std::string& text)
{
    ASSERT_EQ(::write(pipe.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

using Lines = std::vector<std::string>;

TEST(ATraceInstance, IsMadeFilteredAndEnabled)
{
    const auto trace = std::make_shared<FakeTrace>();
    auto instance = TraceInstance::run(trace);
    ASSERT_TRUE(instance) << instance.error().text();
    EXPECT_EQ(trace->files.read(ours + "/buffer_size_kb"), "16");
    EXPECT_EQ(trace->files.read(ours + "/buffer_percent"), "0") << "or nobody is woken before half of it is full";
    EXPECT_EQ(trace->files.read(ours + "/events/nvme/nvme_setup_cmd/filter"), "qid == 0 && (opcode == 9 || opcode == 10)");
    EXPECT_EQ(trace->files.read(ours + "/events/nvme/nvme_complete_rq/filter"), "qid == 0");
    EXPECT_EQ(trace->files.read(ours + "/events/nvme/nvme_setup_cmd/enable"), "1");
    EXPECT_EQ(trace->files.read(ours + "/events/nvme/nvme_complete_rq/enable"), "1");
    EXPECT_GE(instance->descriptor(), 0);
    EXPECT_TRUE(instance->intact());
}

TEST(ATraceInstance, IsDisabledAndRemovedWithItsOwner)
{
    const auto trace = std::make_shared<FakeTrace>();
    {
        auto instance = TraceInstance::run(trace);
        ASSERT_TRUE(instance);
        TraceInstance elsewhere = *std::move(instance);
        EXPECT_TRUE(elsewhere.intact());
        EXPECT_TRUE(fs::exists(trace->files / ours));
    }
    EXPECT_FALSE(fs::exists(trace->files / ours));
    EXPECT_EQ(trace->enabled_at_removal, "0");
}

TEST(ATraceInstance, ThatIsLeftOverFromACrashIsReplaced)
{
    const auto trace = std::make_shared<FakeTrace>();
    trace->files.write(ours + "/old", "");
    trace->busy = 2; // Whoever had it is about to end.
    const auto instance = TraceInstance::run(trace);
    ASSERT_TRUE(instance) << instance.error().text();
    EXPECT_FALSE(fs::exists(trace->files / (ours + "/old")));
}

TEST(ATraceInstance, ThatIsLeftOverCanBeRemovedByOthers)
{
    const FakeTrace trace;
    EXPECT_TRUE(TraceInstance::remove_left_over(trace)) << "there is none";
    trace.files.write(ours + "/old", "");
    EXPECT_TRUE(TraceInstance::remove_left_over(trace));
    EXPECT_FALSE(fs::exists(trace.files / ours));
    EXPECT_TRUE(TraceInstance::remove_left_over(FakeTrace("sys"))) << "not even tracefs";
}

TEST(ATraceInstance, IsLookedForWhereOlderSystemsMountIt)
{
    const auto trace = std::make_shared<FakeTrace>("sys/kernel/debug/tracing/instances");
    fs::create_directories(trace->files / "sys/kernel/tracing"); // where nothing is mounted
    EXPECT_TRUE(TraceInstance::run(trace));
}

TEST(ATraceInstance, SaysWhyThereIsNone)
{
    const auto without_tracefs = std::make_shared<FakeTrace>("sys/kernel");
    Refusal refused = TraceInstance::run(without_tracefs).error();
    EXPECT_EQ(refused.kind, RefusalKind::absent);
    EXPECT_EQ(refused.reason, "tracefs is not mounted there, or the kernel has none");

    without_tracefs->files.write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
    refused = TraceInstance::run(without_tracefs).error();
    EXPECT_EQ(refused.kind, RefusalKind::denied);
    EXPECT_EQ(refused.reason, "kernel lockdown (confidentiality) forbids tracing");
    without_tracefs->files.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    EXPECT_EQ(TraceInstance::run(without_tracefs).error().kind, RefusalKind::absent);

    const auto without_driver = std::make_shared<FakeTrace>();
    without_driver->with_events = false;
    refused = TraceInstance::run(without_driver).error();
    EXPECT_EQ(refused.kind, RefusalKind::absent);
    EXPECT_EQ(refused.reason, "there is no such event: nvme_core is not loaded, or has none");
    EXPECT_FALSE(fs::exists(without_driver->files / ours)) << "nothing is left of it";

    const auto read_by_others = std::make_shared<FakeTrace>();
    read_by_others->busy = 1000;
    refused = TraceInstance::run(read_by_others).error();
    EXPECT_EQ(refused.kind, RefusalKind::try_later);
    EXPECT_EQ(refused.reason, "somebody else reads this trace, perhaps another nvmepolicyd");
}

TEST(ATraceInstance, GivesWholeLinesHoweverTheyCome)
{
    const auto trace = std::make_shared<FakeTrace>();
    auto instance = TraceInstance::run(trace);
    ASSERT_TRUE(instance);
    const UniqueFd pipe = trace->writer();
    EXPECT_EQ(*instance->read(), Lines{});
    put(pipe, "one\ntw");
    EXPECT_EQ(*instance->read(), Lines{"one"});
    EXPECT_EQ(*instance->read(), Lines{});
    put(pipe, "o\n");
    put(pipe, "\nthree\n");
    EXPECT_EQ(*instance->read(), (Lines{"two", "", "three"}));
}

TEST(ATraceInstance, TellsOfALineThatIsTooLongOnce)
{
    const auto trace = std::make_shared<FakeTrace>();
    auto instance = TraceInstance::run(trace);
    ASSERT_TRUE(instance);
    const UniqueFd pipe = trace->writer();
    put(pipe, std::string(1024, 'x') + "\n");
    EXPECT_EQ(*instance->read(), Lines{std::string(1024, 'x')});
    put(pipe, std::string(1025, 'x'));
    EXPECT_EQ(*instance->read(), Lines{TraceInstance::too_long}) << "at once, as it is taken for a lost record";
    put(pipe, std::string(3000, 'x'));
    EXPECT_EQ(*instance->read(), Lines{});
    put(pipe, "x\nnext\n");
    EXPECT_EQ(*instance->read(), Lines{"next"});
    put(pipe, std::string(5000, 'x') + "\nnext\n");
    EXPECT_EQ(*instance->read(), (Lines{TraceInstance::too_long, "next"}));
}

TEST(ATraceInstance, TakesNoMoreAtOnceThanTheLoopCanBear)
{
    const auto trace = std::make_shared<FakeTrace>();
    auto instance = TraceInstance::run(trace);
    ASSERT_TRUE(instance);
    const UniqueFd pipe = trace->writer();
    ::fcntl(pipe.get(), F_SETPIPE_SZ, 1 << 20);
    for (int i = 0; i < 2'000; ++i)
        put(pipe, std::string(99, 'x') + "\n");
    std::size_t lines = instance->read()->size();
    EXPECT_GT(lines, 500U);
    EXPECT_LT(lines, 700U);
    for (int i = 0; i < 3; ++i)
        lines += instance->read()->size();
    EXPECT_EQ(lines, 2'000U);
}

TEST(ATraceInstance, TellsThatItHasEnded)
{
    const auto trace = std::make_shared<FakeTrace>();
    auto instance = TraceInstance::run(trace);
    ASSERT_TRUE(instance);
    {
        const UniqueFd pipe = trace->writer();
        put(pipe, "last\n");
    }
    EXPECT_EQ(*instance->read(), Lines{"last"});
    EXPECT_EQ(instance->read().error().reason, "somebody has ended the trace");
}

TEST(ATraceInstance, NoticesThatSomebodyHasMeddled)
{
    for (const char* file : {"events/nvme/nvme_setup_cmd/enable", "events/nvme/nvme_setup_cmd/filter",
                             "events/nvme/nvme_complete_rq/enable", "events/nvme/nvme_complete_rq/filter", "tracing_on"}) {
        const auto trace = std::make_shared<FakeTrace>();
        auto instance = TraceInstance::run(trace);
        ASSERT_TRUE(instance);
        EXPECT_TRUE(instance->intact());
        trace->files.write(ours + "/" + file, "0\n");
        EXPECT_FALSE(instance->intact()) << file;
    }
}

TEST(ATraceInstance, SaysWhereItCouldNotBeRemoved)
{
    const auto trace = std::make_shared<FakeTrace>();
    auto instance = TraceInstance::run(trace);
    ASSERT_TRUE(instance);
    trace->busy = 1000;
    EXPECT_EQ(instance->remove().error().kind, RefusalKind::try_later);
    EXPECT_TRUE(instance->remove()) << "that was it";
}

} // namespace
} // namespace nvmepolicy
