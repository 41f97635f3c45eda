// SPDX-License-Identifier: LGPL-2.1-or-later
#include "left_behind.h"

#include <algorithm>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nvmepolicy {

LeftBehind::LeftBehind() : endings_(::epoll_create1(EPOLL_CLOEXEC)) {}

void LeftBehind::add(std::uint64_t controller_object, int pid)
{
    // glibc 2.36 declares pidfd_open() for C only. Without a descriptor to spare the child stays a zombie until somebody asks.
    UniqueFd ending(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    epoll_event readable{};
    readable.events = EPOLLIN;
    if (ending)
        ::epoll_ctl(endings_.get(), EPOLL_CTL_ADD, ending.get(), &readable);
    const std::lock_guard lock(mutex_);
    children_.push_back({controller_object, pid, std::move(ending)});
}

bool LeftBehind::waits_for(std::uint64_t controller_object)
{
    const std::lock_guard lock(mutex_);
    reap_locked();
    return std::ranges::find(children_, controller_object, &Child::controller_object) != children_.end();
}

void LeftBehind::reap()
{
    const std::lock_guard lock(mutex_);
    reap_locked();
}

void LeftBehind::reap_locked()
{
    std::erase_if(children_, [](const Child& child) { return ::waitpid(child.pid, nullptr, WNOHANG) != 0; });
}

} // namespace nvmepolicy
