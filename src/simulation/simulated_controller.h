// SPDX-License-Identifier: LGPL-2.1-or-later
// One simulated controller: what the drive holds and what the driver knows. Tests reach into it to make it fail.
#pragma once

#include <map>
#include <string>

#include "nvmepolicy/drive_file.h"
#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// What the next commands of a kind meet.
struct Fate {
    Milliseconds hang{0};     ///< how long the drive takes before it answers
    std::uint32_t status = 0; ///< the NVMe status that it answers with; 0: success
    int times = 1;
};

struct SimulatedController {
    std::string name;
    ControllerId id;
    std::uint64_t object = 0; ///< as the kernel numbers its objects: never again
    DriveFile drive;
    ControllerState state = ControllerState::live;

    LatencyTolerance tolerance;   ///< what the file shows
    LatencyTolerance driver_copy; ///< what the driver compares with; `auto` and `any` are one to it
    ApstFeature apst;             ///< what the drive holds
    std::string cache_mode;       ///< what somebody wrote to the leaf's write_cache; empty: nothing

    bool identified = true;      ///< the driver has read Identify: before, its attributes read (efault)
    ApstQuirks quirks;           ///< as found at the first Identify; newer firmware changes nothing about them
    bool apst_enabled = false;   ///< as found at the last Identify
    bool tolerance_file = false; ///< the driver has exposed the file
    bool leaving = false;        ///< commands are no longer waited for
    bool gone = false;           ///< in its directory, if somebody holds it open, there is nothing any more
    int resets = 0;              ///< a command that was under way then is cancelled

    bool refuses_apst = false;         ///< Set Features 0Ch fails; the kernel drops the status
    int set_features = 0;              ///< Set Features 0Ch received
    Milliseconds command_time{0};      ///< what a command takes that nothing befalls
    std::map<std::string, Fate> fates; ///< by "identify", "get-feature", "set-features"

    /// The error that the next calls of a kind meet, by "identify", "get-feature", "read-tolerance", "write-tolerance",
    /// or an attribute's name.
    std::map<std::string, Refusal> faults;
};

} // namespace nvmepolicy
