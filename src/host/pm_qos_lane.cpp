// SPDX-License-Identifier: LGPL-2.1-or-later
#include "pm_qos_lane.h"

#include <thread>

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

} // namespace

void PmQosLane::Turn::leave_behind(std::uint64_t controller_object)
{
    lane_->stuck_object_ = controller_object;
}

void PmQosLane::set_inside(const std::string& controller)
{
    const std::lock_guard lock(names_);
    inside_ = controller;
}

Refusal PmQosLane::waited_in_vain(const std::string& where)
{
    const std::lock_guard lock(names_);
    return {where, "",
            "waited in vain for the kernel's PM QoS lock: " + inside_
                + " has not answered a command sent while the kernel holds it",
            RefusalKind::timed_out};
}

Result<PmQosLane::Turn> PmQosLane::wait(const std::string& where, const std::string& controller, Deadline deadline)
{
    std::unique_lock lock(mutex_, deadline);
    if (!lock)
        return waited_in_vain(where);
    while (stuck_object_ && left_behind_.waits_for(*stuck_object_)) {
        if (std::chrono::steady_clock::now() >= deadline)
            return waited_in_vain(where);
        std::this_thread::sleep_for(20ms);
    }
    stuck_object_.reset();
    set_inside(controller);
    return Turn(*this, std::move(lock));
}

} // namespace nvmepolicy
