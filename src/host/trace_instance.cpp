// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace_instance.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/stat.h>
#include <thread>

#include "errno_refusal.h"
#include "sysfs.h"

namespace nvmepolicy {
namespace {

constexpr const char* instance_name = "nvmepolicyd";

struct Event {
    const char* directory;
    const char* filter;
};

/// Everything that goes to an admin queue to read or set a feature, and whatever comes back from one. Which feature it is
/// cannot be filtered: `cdw10 == 6` is taken and never matches.
constexpr Event events[] = {
    {"events/nvme/nvme_setup_cmd", "qid == 0 && (opcode == 9 || opcode == 10)"},
    {"events/nvme/nvme_complete_rq", "qid == 0"},
};

/// An instance begins with what somebody has set for the whole trace; these are the ones that change how a line looks, or which
/// records are kept. Kernels that do not know one refuse it, and then it is not set.
constexpr const char* options[] = {
    "noraw",      "nohex",        "nobin",    "nofields", "noverbose", "nostacktrace", "nouserstacktrace",
    "noannotate", "context-info", "overwrite"};

/// For each CPU. A few hundred records, which are very many Get Features.
constexpr const char* buffer_kilobytes = "16";

constexpr std::size_t longest_line = 1'024;
constexpr int most_reads = 16;

Result<void> write_file(const std::string& path, const std::string& text)
{
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return errno_refusal(path, text, errno);
    return {};
}

Result<std::string> read_file(const std::string& path)
{
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file)
        return errno_refusal(path, "", errno);
    return read_all(file.get(), path, 4'096);
}

bool exists(const std::string& path)
{
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0;
}

bool locked_down(const TraceFiles& files)
{
    const auto lockdown = read_file(files.root() + "/sys/kernel/security/lockdown");
    return lockdown && lockdown->find("[confidentiality]") != std::string::npos;
}

/// Why there is no trace, where more is known than an errno says.
Refusal explained(const TraceFiles& files, Refusal refusal)
{
    if (refusal.kind != RefusalKind::absent && refusal.kind != RefusalKind::denied)
        return refusal;
    if (locked_down(files))
        return {std::move(refusal.where), "", "kernel lockdown (confidentiality) forbids tracing", RefusalKind::denied};
    return refusal;
}

/// The directory of all instances.
Result<std::string> instances(const TraceFiles& files)
{
    for (const char* place : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"})
        if (std::string path = files.root() + place + "/instances"; exists(path))
            return path;
    return explained(files, {files.root() + "/sys/kernel/tracing", "", "tracefs is not mounted there, or the kernel has none",
                             RefusalKind::absent});
}

/// Whoever had it before us may be about to end.
Result<void> remove_instance(const TraceFiles& files, const std::string& path)
{
    using namespace std::chrono_literals;
    for (int attempt = 0;; ++attempt) {
        if (files.remove_directory(path) == 0 || errno == ENOENT)
            return {};
        if (errno != EBUSY)
            return errno_refusal(path, "", errno);
        if (attempt == 20)
            return Refusal{path, "", "somebody else reads this trace, perhaps another nvmepolicyd", RefusalKind::try_later};
        std::this_thread::sleep_for(50ms);
    }
}

} // namespace

int TraceFiles::make_directory(const std::string& path) const
{
    return ::mkdir(path.c_str(), 0700);
}

int TraceFiles::remove_directory(const std::string& path) const
{
    return ::rmdir(path.c_str());
}

Result<TraceInstance> TraceInstance::run(const std::shared_ptr<const TraceFiles>& files)
{
    const auto all = instances(*files);
    if (!all)
        return all.error();
    const std::string path = *all + "/" + instance_name;
    // One that is left over is not taken over: its records, filters and options are anybody's guess.
    if (const auto removed = remove_instance(*files, path); !removed)
        return explained(*files, removed.error());
    if (files->make_directory(path) != 0)
        return explained(*files, errno_refusal(path, "", errno));
    TraceInstance instance(files, path); // Whatever fails from here on, it is removed.
    if (const auto ready = instance.set_up(); !ready)
        return explained(*files, ready.error());
    return Result<TraceInstance>(std::move(instance));
}

Result<void> TraceInstance::set_up()
{
    if (!exists(path_ + "/" + events[0].directory))
        return Refusal{path_ + "/" + events[0].directory, "", "there is no such event: nvme_core is not loaded, or has none",
                       RefusalKind::absent};
    if (auto set = write("buffer_size_kb", buffer_kilobytes); !set)
        return set;
    for (const char* option : options)
        if (auto set = write("trace_options", option); !set && set.error().kind != RefusalKind::invalid)
            return set;
    // Else a reader is not woken before half of the buffer is full.
    if (auto set = write("buffer_percent", "0"); !set)
        return set;
    const std::string pipe = path_ + "/trace_pipe";
    pipe_.reset(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!pipe_)
        return errno_refusal(pipe, "", errno);
    for (const Event& event : events)
        if (auto set = write(std::string(event.directory) + "/filter", event.filter); !set)
            return set;
    if (auto set = write("tracing_on", "1"); !set)
        return set;
    for (const Event& event : events)
        if (auto set = write(std::string(event.directory) + "/enable", "1"); !set)
            return set;
    return {};
}

Result<void> TraceInstance::write(const std::string& file, const std::string& text) const
{
    return write_file(path_ + "/" + file, text);
}

TraceInstance::~TraceInstance()
{
    // What is left of it costs nobody anything but memory, and goes with the next start.
    if (files_) [[maybe_unused]]
        const auto ignored = remove();
}

Result<void> TraceInstance::remove()
{
    const auto files = std::move(files_);
    files_ = nullptr;
    if (!files)
        return {};
    for (const Event& event : events)
        [[maybe_unused]] const auto ignored = write(std::string(event.directory) + "/enable", "0");
    pipe_.reset(); // An instance that is read cannot be removed.
    return remove_instance(*files, path_);
}

Result<void> TraceInstance::remove_left_over(const TraceFiles& files)
{
    const auto all = instances(files);
    return all ? remove_instance(files, *all + "/" + instance_name) : Result<void>{};
}

bool TraceInstance::intact() const
{
    const auto reads = [this](const std::string& file, std::string_view text) {
        const auto content = read_file(path_ + "/" + file);
        return content && std::string_view(*content).substr(0, content->find('\n')) == text;
    };
    if (!files_ || !reads("tracing_on", "1"))
        return false;
    for (const Event& event : events)
        if (!reads(std::string(event.directory) + "/enable", "1")
            || !reads(std::string(event.directory) + "/filter", event.filter))
            return false;
    return true;
}

void TraceInstance::take(const char* text, std::size_t length, std::vector<std::string>& lines)
{
    std::string_view rest(text, length);
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        if (!skipping_)
            partial_ += rest.substr(0, end);
        if (partial_.size() > longest_line) {
            lines.emplace_back(too_long);
            partial_.clear();
            skipping_ = true;
        }
        if (end == std::string_view::npos)
            return;
        if (!skipping_)
            lines.push_back(std::move(partial_));
        partial_.clear();
        skipping_ = false;
        rest.remove_prefix(end + 1);
    }
}

Result<std::vector<std::string>> TraceInstance::read()
{
    std::vector<std::string> lines;
    std::array<char, 4'096> bytes;
    for (int reads = 0; reads < most_reads; ++reads) {
        const ssize_t got = ::read(pipe_.get(), bytes.data(), bytes.size());
        if (got > 0) {
            take(bytes.data(), static_cast<std::size_t>(got), lines);
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (!lines.empty())
            break; // The end is told with the next call.
        return got < 0 ? errno_refusal(path_ + "/trace_pipe", "", errno)
                       : Refusal{path_ + "/trace_pipe", "", "somebody has ended the trace", RefusalKind::failed};
    }
    return lines;
}

} // namespace nvmepolicy
