// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel keeps every device's PM QoS values behind one mutex, and holds it while a drive executes the Set Features
// that a tolerance write causes. So we go there one at a time, and know whom everybody is waiting for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "left_behind.h"
#include "nvmepolicy/result.h"

namespace nvmepolicy {

class PmQosLane {
public:
    explicit PmQosLane(LeftBehind& left_behind) : left_behind_(left_behind) {}
    using Deadline = std::chrono::steady_clock::time_point;

    /// The right to touch a tolerance file; given back by its destructor, unless the call hangs.
    class Turn {
    public:
        /// The call did not come back in time: nobody gets a turn while a child is left behind with that controller.
        void leave_behind(std::uint64_t controller_object);

    private:
        friend class PmQosLane;
        Turn(PmQosLane& lane, std::unique_lock<std::timed_mutex> lock) : lane_(&lane), lock_(std::move(lock)) {}
        PmQosLane* lane_;
        std::unique_lock<std::timed_mutex> lock_;
    };

    /// Waits for a turn; timed_out, naming who is in there, once the deadline has passed.
    [[nodiscard]] Result<Turn> wait(const std::string& where, const std::string& controller, Deadline deadline);

private:
    Refusal waited_in_vain(const std::string& where);
    void set_inside(const std::string& controller);

    LeftBehind& left_behind_;
    std::mutex names_;
    std::string inside_; ///< whom the others are waiting for; guarded by names_
    std::timed_mutex mutex_;
    // Guarded by mutex_.
    std::optional<std::uint64_t> stuck_object_;
};

} // namespace nvmepolicy
