// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel keeps every device's PM QoS values behind one mutex, and holds it while a drive executes the Set Features
// that a tolerance write causes. So we go there one at a time, and know whom everybody is waiting for.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "nvmepolicy/result.h"

namespace nvmepolicy {

class PmQosLane {
public:
    using Deadline = std::chrono::steady_clock::time_point;

    /// The right to touch a tolerance file; given back by its destructor, unless the call hangs.
    class Turn {
    public:
        /// The call did not come back in time. Nobody gets a turn until that process has ended.
        void leave_behind(int pid, std::string controller);

    private:
        friend class PmQosLane;
        Turn(PmQosLane& lane, std::unique_lock<std::timed_mutex> lock) : lane_(&lane), lock_(std::move(lock)) {}
        PmQosLane* lane_;
        std::unique_lock<std::timed_mutex> lock_;
    };

    /// Waits for a turn; timed_out, naming who is in there, once the deadline has passed.
    [[nodiscard]] Result<Turn> wait(const std::string& where, Deadline deadline);

private:
    std::timed_mutex mutex_;
    // Guarded by mutex_.
    int stuck_pid_ = -1;
    std::string stuck_controller_;
};

} // namespace nvmepolicy
