// SPDX-License-Identifier: LGPL-2.1-or-later
#include "foreground.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command_line/usage.h"
#include "nvmepolicy/wording.h"
#include "signals.h"

namespace nvmepolicy {
namespace {

struct Started {
    pid_t pid = -1;
    UniqueFd fd;   ///< readable once it has ended
    int error = 0; ///< errno of what failed; 0: it runs
    bool executed = true;
};

[[noreturn]] void become(const std::vector<std::string>& command, const sigset_t& mask, int report)
{
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& argument : command)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::execvp(arguments[0], arguments.data());
    const int error = errno;
    static_cast<void>(::write(report, &error, sizeof error));
    ::_exit(exit_run_failed);
}

Started start(const std::vector<std::string>& command, const sigset_t& mask)
{
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return {-1, {}, errno, false};
    UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    Started started;
    started.pid = ::fork();
    if (started.pid == 0)
        become(command, mask, to.get());
    if (started.pid < 0)
        return {-1, {}, errno, false};
    to.reset();
    // The pipe closes when the command has taken our child's place; until then it may still say why it could not.
    int error = 0;
    if (::read(from.get(), &error, sizeof error) == sizeof error) {
        ::waitpid(started.pid, nullptr, 0);
        return {-1, {}, error, true};
    }
    started.fd.reset(static_cast<int>(::syscall(SYS_pidfd_open, started.pid, 0)));
    return started;
}

int complain_about_start(const std::string& command, const Started& started)
{
    complain("nvmepolicyctl", fmt::format("{}: {}", printable(command), std::strerror(started.error)));
    if (!started.executed)
        return exit_run_failed;
    return started.error == ENOENT ? exit_not_found : exit_not_executable;
}

/// A terminal sends its signals to the whole group, so the command has them already.
bool was_sent_to_us_alone(const signalfd_siginfo& signal)
{
    return signal.ssi_code <= 0;
}

/// As a shell sees it, we died of what the command died of. The core, if any, is the command's and not ours.
int die_by(int signal)
{
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(signal, SIG_DFL);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, signal);
    ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(signal);
    return 128 + signal; // a signal that does not end a process
}

} // namespace

int run_in_foreground(const std::vector<std::string>& command, ServiceClient& client)
{
    ::signal(SIGCHLD, SIG_DFL); // Whoever started us may have ignored it, and then there would be no exit code to wait for.
    const Signals signals{{SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}};
    const Started started = start(command, signals.before());
    if (started.error != 0)
        return complain_about_start(command.front(), started);
    bool bus_lost = false;
    for (;;) {
        pollfd others[] = {{signals.fd(), POLLIN, 0}, {started.fd.get(), POLLIN, 0}};
        if (!bus_lost) {
            if (const auto served = client.serve_until(others); !served) {
                complain("nvmepolicyctl", served.error().text() + "; the hold is gone, the command goes on");
                bus_lost = true;
            }
        } else {
            static_cast<void>(::poll(others, std::size(others), -1));
        }
        while (const auto signal = signals.next())
            if (was_sent_to_us_alone(*signal))
                ::kill(started.pid, static_cast<int>(signal->ssi_signo));
        int status = 0;
        if (::waitpid(started.pid, &status, WNOHANG) != started.pid)
            continue;
        return WIFSIGNALED(status) ? die_by(WTERMSIG(status)) : WEXITSTATUS(status);
    }
}

} // namespace nvmepolicy
