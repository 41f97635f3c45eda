// SPDX-License-Identifier: LGPL-2.1-or-later
#include "device_child.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "device_protocol.h"
#include "errno_refusal.h"
#include "laned_device.h"
#include "nvmepolicy/decode.h"
#include "sysfs.h"

extern char** environ;

namespace nvmepolicy {
namespace {

using Clock = Patience::Clock;

/// For the program to start on a busy machine; no drive has a part in it.
constexpr std::chrono::seconds time_to_start{10};

/// Above the numbers that the child knows its descriptors by, so that none is overwritten while they are put in place.
constexpr int first_safe_fd = 10;

UniqueFd duplicate(int fd)
{
    return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, first_safe_fd));
}

class SpawnActions {
public:
    SpawnActions() { posix_spawn_file_actions_init(&actions_); }
    ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;
    SpawnActions(SpawnActions&&) = delete;
    SpawnActions& operator=(SpawnActions&&) = delete;
    void put(const UniqueFd& fd, int as)
    {
        if (fd)
            posix_spawn_file_actions_adddup2(&actions_, fd.get(), as);
    }
    /// A child that hangs must not keep anything of ours open: not the pipe that somebody reads our messages from, not what
    /// whoever started us left open, not a directory.
    void isolate(int first_unused)
    {
        posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addclosefrom_np(&actions_, first_unused);
        posix_spawn_file_actions_addchdir_np(&actions_, "/");
    }
    [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

private:
    posix_spawn_file_actions_t actions_{};
};

/// The child starts with no signal blocked and default reactions, whatever our threads have set up.
class SpawnAttributes {
public:
    SpawnAttributes()
    {
        posix_spawnattr_init(&attributes_);
        sigset_t signals;
        sigemptyset(&signals);
        posix_spawnattr_setsigmask(&attributes_, &signals);
        sigaddset(&signals, SIGPIPE);
        posix_spawnattr_setsigdefault(&attributes_, &signals);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
    SpawnAttributes(const SpawnAttributes&) = delete;
    SpawnAttributes& operator=(const SpawnAttributes&) = delete;
    SpawnAttributes(SpawnAttributes&&) = delete;
    SpawnAttributes& operator=(SpawnAttributes&&) = delete;
    [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

private:
    posix_spawnattr_t attributes_{};
};

} // namespace

DeviceChild::DeviceChild(std::string name, int directory, std::uint64_t object, std::string program, Patience patience,
                         LeftBehind& left_behind)
    : name_(std::move(name))
    , object_(object)
    , program_(std::move(program))
    , patience_(patience)
    , left_behind_(left_behind)
    , directory_(duplicate(directory))
{
}

DeviceChild::~DeviceChild()
{
    socket_.reset(); // End of input: the child ends, now or when its call comes back.
    if (pid_ >= 0 && !hangs_)
        ::waitpid(pid_, nullptr, 0);
}

Result<void> DeviceChild::open_node()
{
    if (node_)
        return {};
    const std::string path = "/dev/" + name_;
    if (pid_ >= 0)
        return Refusal{path, "", "not asked: the node could not be opened when this look began", RefusalKind::try_later};
    UniqueFd node(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!node)
        return errno_refusal(path, "", errno);
    struct stat status {};
    if (::fstat(node.get(), &status) < 0)
        return errno_refusal(path, "", errno);
    // The name may have passed to another controller since the directory was opened.
    const UniqueFd numbers(::openat(directory_.get(), "dev", O_RDONLY | O_CLOEXEC));
    if (!numbers)
        return errno_refusal(path, "", errno == ENOENT ? ENODEV : errno);
    const auto text = read_all(numbers.get(), path, 64);
    if (!text)
        return text.error();
    const std::string expected = fmt::format("{}:{}\n", major(status.st_rdev), minor(status.st_rdev));
    if (!S_ISCHR(status.st_mode) || *text != expected)
        return Refusal{path, printable_ascii(*text), "this node belongs to another controller by now", RefusalKind::gone};
    node_ = duplicate(node.get());
    return node_ ? Result<void>{} : Result<void>(errno_refusal(path, "", errno));
}

Result<void> DeviceChild::start()
{
    if (pid_ >= 0)
        return {};
    if (left_behind_.waits_for(object_))
        return still_waited_for(name_);
    // A socket, not pipes: a child that died must not raise SIGPIPE here.
    int ends[2];
    if (!directory_ || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return errno_refusal(program_, "", errno);
    UniqueFd ours(ends[0]);
    UniqueFd low(ends[1]);
    UniqueFd theirs = duplicate(low.get());
    if (!theirs)
        return errno_refusal(program_, "", errno);
    SpawnActions actions;
    actions.put(theirs, STDIN_FILENO);
    actions.put(theirs, STDOUT_FILENO);
    actions.put(directory_, device_protocol::directory_fd);
    actions.put(node_, device_protocol::node_fd);
    actions.isolate(node_ ? device_protocol::node_fd + 1 : device_protocol::node_fd);
    const SpawnAttributes attributes;
    char* const arguments[] = {program_.data(), nullptr};
    int pid = -1;
    const int error = ::posix_spawn(&pid, program_.c_str(), actions.get(), attributes.get(), arguments, environ);
    if (error != 0)
        return errno_refusal(program_, "", error);
    pid_ = pid;
    socket_ = std::move(ours);
    low.reset(); // Or the end of a child that dies would not be seen.
    theirs.reset();
    const auto greeting = read_answer(program_, std::min(Clock::now() + time_to_start, patience_.end));
    return greeting ? Result<void>{} : Result<void>(greeting.error());
}

Refusal DeviceChild::give_up(const std::string& where)
{
    hangs_ = true;
    left_behind_.add(object_, pid_);
    return {where, "",
            fmt::format("no answer within {} s; the request is left to the kernel, which gives it 60 s by default",
                        std::chrono::duration<double>(patience_.per_call).count()),
            RefusalKind::timed_out};
}

Result<void> DeviceChild::read_exactly(const std::string& where, std::uint8_t* to, std::size_t length, Deadline deadline)
{
    while (length > 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd waiting{socket_.get(), POLLIN, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return give_up(where);
        const ssize_t got = ::read(socket_.get(), to, length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return Refusal{where, "", program_ + " ended before it answered", RefusalKind::failed};
        to += got;
        length -= static_cast<std::size_t>(got);
    }
    return {};
}

Result<FeatureReply> DeviceChild::ask(const std::string& where, const std::string& request)
{
    if (hangs_)
        return still_waited_for(where);
    if (const auto started = start(); !started)
        return started.error();
    const std::string line = request + "\n";
    if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
        return Refusal{where, "", program_ + " ended before it was asked", RefusalKind::failed};

    return read_answer(where, patience_.deadline(Clock::now()));
}

Result<FeatureReply> DeviceChild::read_answer(const std::string& where, Deadline deadline)
{
    std::string text;
    for (std::uint8_t c = 0;;) {
        if (const auto read = read_exactly(where, &c, 1, deadline); !read)
            return read.error();
        if (c == '\n')
            break;
        text += static_cast<char>(c);
        if (text.size() > 64)
            break;
    }
    device_protocol::AnswerLine answer;
    if (!device_protocol::parse(text, answer))
        return Refusal{where, printable_ascii(text), "not an answer of " + program_, RefusalKind::failed};
    FeatureReply reply{answer.number, std::vector<std::uint8_t>(answer.length)};
    if (const auto read = read_exactly(where, reply.buffer.data(), reply.buffer.size(), deadline); !read)
        return read.error();
    switch (answer.kind) {
    case device_protocol::AnswerKind::ok: return reply;
    case device_protocol::AnswerKind::error_number: return errno_refusal(where, "", static_cast<int>(answer.number));
    case device_protocol::AnswerKind::status: return status_refusal(where, answer.number);
    }
    return Refusal{where, "", "unreachable", RefusalKind::failed};
}

Result<FeatureReply> DeviceChild::ask_drive(const std::string& where, const std::string& request)
{
    // The node goes to the child when that starts, so it is opened first; a tolerance can be read without it.
    if (const auto opened = open_node(); !opened)
        return opened.error();
    return ask(where, request);
}

} // namespace nvmepolicy
