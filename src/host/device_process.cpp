// SPDX-License-Identifier: LGPL-2.1-or-later
#include "device_process.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "device_protocol.h"
#include "errno_refusal.h"
#include "nvmepolicy/decode.h"
#include "sysfs.h"

extern char** environ;

namespace nvmepolicy {
namespace {

/// Above the numbers that the child knows its descriptors by, so that none is overwritten while they are put in place.
constexpr int first_safe_fd = 10;

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

UniqueFd duplicate_for_device(int fd)
{
    return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, first_safe_fd));
}

Result<UniqueFd> open_controller_node(const std::string& name, const UniqueFd& directory)
{
    const std::string path = "/dev/" + name;
    const UniqueFd node(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!node)
        return errno_refusal(path, "", errno);
    struct stat status {};
    if (::fstat(node.get(), &status) < 0)
        return errno_refusal(path, "", errno);
    // The name may have passed to another controller since the directory was opened.
    const UniqueFd numbers(::openat(directory.get(), "dev", O_RDONLY | O_CLOEXEC));
    if (!numbers)
        return errno_refusal(path, "", errno == ENOENT ? ENODEV : errno);
    const auto text = read_all(numbers.get(), path, 64);
    if (!text)
        return text.error();
    const std::string expected = fmt::format("{}:{}\n", major(status.st_rdev), minor(status.st_rdev));
    if (!S_ISCHR(status.st_mode) || *text != expected)
        return Refusal{path, printable_ascii(*text), "this node belongs to another controller by now", RefusalKind::gone};
    UniqueFd high = duplicate_for_device(node.get());
    if (!high)
        return errno_refusal(path, "", errno);
    return Result<UniqueFd>(std::move(high));
}

Result<DeviceProcess> start_device(const std::string& program, const DeviceDescriptors& descriptors)
{
    // A socket, not pipes: a child that died must not raise SIGPIPE here.
    int ends[2];
    if (!descriptors.directory || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return errno_refusal(program, "", errno);
    UniqueFd ours(ends[0]);
    const UniqueFd low(ends[1]);
    const UniqueFd theirs = duplicate_for_device(low.get());
    if (!theirs)
        return errno_refusal(program, "", errno);
    SpawnActions actions;
    actions.put(theirs, STDIN_FILENO);
    actions.put(theirs, STDOUT_FILENO);
    actions.put(descriptors.directory, device_protocol::directory_fd);
    actions.put(descriptors.node, device_protocol::node_fd);
    actions.put(descriptors.doubts, device_protocol::doubts_fd);
    actions.isolate(descriptors.doubts ? device_protocol::doubts_fd + 1
                    : descriptors.node ? device_protocol::node_fd + 1
                                       : device_protocol::node_fd);
    const SpawnAttributes attributes;
    std::string path = program;
    char* const arguments[] = {path.data(), nullptr};
    int pid = -1;
    const int error = ::posix_spawn(&pid, program.c_str(), actions.get(), attributes.get(), arguments, environ);
    if (error != 0)
        return errno_refusal(program, "", error);
    return DeviceProcess{pid, std::move(ours)}; // Their end is closed here, or the end of a child that dies would not be seen.
}

} // namespace nvmepolicy
