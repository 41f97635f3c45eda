// SPDX-License-Identifier: LGPL-2.1-or-later
#include "left_behind.h"

#include <sys/wait.h>

namespace nvmepolicy {

void LeftBehind::add(std::uint64_t controller_object, int pid)
{
    const std::lock_guard lock(mutex_);
    children_[controller_object] = pid;
}

bool LeftBehind::waits_for(std::uint64_t controller_object)
{
    const std::lock_guard lock(mutex_);
    std::erase_if(children_, [](const auto& child) { return ::waitpid(child.second, nullptr, WNOHANG) != 0; });
    return children_.contains(controller_object);
}

} // namespace nvmepolicy
