// SPDX-License-Identifier: LGPL-2.1-or-later
// Short stories of what befalls drives: for demonstrations, and for whoever develops a client without hardware.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simulated_kernel.h"

namespace nvmepolicy {

/// The drives of a story, on a simulated machine that may be in use. Nothing here waits.
class Cast {
public:
    /// Around the first controller that can be told how deep to sleep; none: there is no such controller.
    [[nodiscard]] static std::optional<Cast> choose(SimulatedKernel& kernel);

    [[nodiscard]] std::string drive() const; ///< the name that it has, or had last
    [[nodiscard]] std::string other() const; ///< empty until it was plugged in

    // What may befall them.
    void unplug_drive();
    void plug_drive();
    void plug_other();
    void unplug_other();
    void pull_ac_plug();
    void put_back_ac_plug();
    void reset_drive();
    void reset_to_other_firmware();
    void reset_to_first_firmware();
    void forbid_sleep();
    void put_back_tolerance();
    void reset_and_refuse();
    void reset_and_accept();

private:
    Cast(SimulatedKernel& kernel, SimulatedKernel::Held drive, DriveFile other_drive);
    void power(PowerSource source);
    void reset(bool refuses);

    SimulatedKernel* kernel_;
    SimulatedKernel::Held drive_;
    SimulatedKernel::Held other_;
    PluggedDrive as_plugged_;
    PluggedDrive other_as_plugged_;
    LatencyTolerance before_somebody_wrote_;
};

struct StoryStep {
    std::string_view text; ///< told before it happens, with {drive} and {other} for their names
    void (Cast::*happens)();
};

/// The step's sentence, with the names of this moment.
[[nodiscard]] std::string told(const StoryStep& step, const Cast& cast);

/// Ends as it began, so that it can be played again.
struct Story {
    std::string_view name;
    std::string_view shows;
    std::span<const StoryStep> steps;
};

[[nodiscard]] std::span<const Story> stories();
/// None: there is no story of that name.
[[nodiscard]] const Story* find_story(std::string_view name);

} // namespace nvmepolicy
