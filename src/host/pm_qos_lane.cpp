// SPDX-License-Identifier: LGPL-2.1-or-later
#include "pm_qos_lane.h"

#include <sys/wait.h>
#include <thread>

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

/// True once our child has ended; it is reaped then.
bool ended(int pid)
{
    return ::waitpid(pid, nullptr, WNOHANG) != 0;
}

} // namespace

void PmQosLane::Turn::leave_behind(int pid, std::string controller)
{
    lane_->stuck_pid_ = pid;
    lane_->stuck_controller_ = std::move(controller);
}

Result<PmQosLane::Turn> PmQosLane::wait(const std::string& where, Deadline deadline)
{
    std::unique_lock lock(mutex_, deadline);
    if (!lock)
        return Refusal{where, "", "waited in vain for the kernel's PM QoS lock: another drive is being written to",
                       RefusalKind::timed_out};
    while (stuck_pid_ >= 0 && !ended(stuck_pid_)) {
        if (std::chrono::steady_clock::now() >= deadline)
            return Refusal{where, "",
                           "waited in vain for the kernel's PM QoS lock: " + stuck_controller_
                               + " has not answered a command sent while the kernel holds it",
                           RefusalKind::timed_out};
        std::this_thread::sleep_for(20ms);
    }
    stuck_pid_ = -1;
    return Turn(*this, std::move(lock));
}

} // namespace nvmepolicy
