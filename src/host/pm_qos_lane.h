// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel keeps every device's PM QoS values behind one mutex, and holds it while a drive executes the Set Features
// that a tolerance write causes. So we go there one at a time, and know whom everybody is waiting for.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "nvmepolicy/result.h"
#include "waiting.h"

namespace nvmepolicy {

class PmQosLane {
public:
    /// Whether a call that was left behind with that controller has still not come back.
    using StillInside = std::function<bool(std::uint64_t controller_object)>;
    PmQosLane(StillInside still_inside, Waiting& waiting) : still_inside_(std::move(still_inside)), waiting_(waiting) {}
    [[nodiscard]] Waiting::Time now() const { return waiting_.now(); }

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
    [[nodiscard]] Result<Turn> wait(const std::string& where, const std::string& controller, Waiting::Time deadline);

private:
    [[nodiscard]] Refusal waited_in_vain(const std::string& where);

    StillInside still_inside_;
    Waiting& waiting_;
    std::mutex mutex_;
    // Guarded by mutex_.
    bool taken_ = false;
    std::string inside_; ///< whom the others are waiting for
    std::optional<std::uint64_t> stuck_object_;
};

} // namespace nvmepolicy
