// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel keeps every device's PM QoS values behind one mutex, and holds it while a drive executes the Set Features
// that a tolerance write causes. So we go there one at a time, and know whom everybody is waiting for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "left_behind.h"
#include "nvmepolicy/result.h"

namespace nvmepolicy {

class PmQosLane {
public:
    explicit PmQosLane(LeftBehind& left_behind) : left_behind_(left_behind) {}
    using Deadline = std::chrono::steady_clock::time_point;

    /// The right to touch a tolerance file; given back by its destructor.
    class Turn {
    public:
        Turn(Turn&& other) noexcept : lane_(std::exchange(other.lane_, nullptr)) {}
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        Turn& operator=(Turn&&) = delete;
        ~Turn();
        /// The call did not come back in time: nobody gets a turn while a child is left behind with that controller.
        void leave_behind(std::uint64_t controller_object);

    private:
        friend class PmQosLane;
        explicit Turn(PmQosLane& lane) : lane_(&lane) {}
        PmQosLane* lane_;
    };

    /// Waits for a turn; timed_out, naming who is in there, once the deadline has passed.
    [[nodiscard]] Result<Turn> wait(const std::string& where, const std::string& controller, Deadline deadline);

private:
    [[nodiscard]] Refusal waited_in_vain(const std::string& where);

    LeftBehind& left_behind_;
    std::mutex mutex_;
    std::condition_variable given_back_;
    // Guarded by mutex_.
    bool taken_ = false;
    std::string inside_; ///< whom the others are waiting for
    std::optional<std::uint64_t> stuck_object_;
};

} // namespace nvmepolicy
