// SPDX-License-Identifier: LGPL-2.1-or-later
#include "pm_qos_lane.h"

namespace nvmepolicy {

using namespace std::chrono_literals;

PmQosLane::Turn::~Turn()
{
    if (!lane_)
        return;
    const std::lock_guard lock(lane_->mutex_);
    lane_->taken_ = false;
    lane_->waiting_.wake();
}

void PmQosLane::Turn::leave_behind(std::uint64_t controller_object)
{
    const std::lock_guard lock(lane_->mutex_);
    lane_->stuck_object_ = controller_object;
}

Refusal PmQosLane::waited_in_vain(const std::string& where)
{
    const std::lock_guard lock(mutex_);
    return {where, "",
            "waited in vain for the kernel's PM QoS lock: " + inside_
                + " has not answered a command sent while the kernel holds it",
            RefusalKind::timed_out};
}

Result<PmQosLane::Turn> PmQosLane::wait(const std::string& where, const std::string& controller, Waiting::Time deadline)
{
    std::unique_lock lock(mutex_);
    if (!waiting_.wait_until(lock, deadline, [this] { return !taken_; })) {
        lock.unlock();
        return waited_in_vain(where);
    }
    taken_ = true;
    const auto stuck = stuck_object_;
    lock.unlock();
    Turn turn(*this);
    while (stuck && still_inside_(*stuck)) {
        if (waiting_.now() >= deadline)
            return waited_in_vain(where);
        waiting_.pause(20ms);
    }
    lock.lock();
    stuck_object_.reset();
    inside_ = controller;
    lock.unlock();
    return Result<Turn>(std::move(turn));
}

} // namespace nvmepolicy
