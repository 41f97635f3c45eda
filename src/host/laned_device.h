// SPDX-License-Identifier: LGPL-2.1-or-later
// A controller's calls, each on its line; those to the tolerance file one at a time for the whole machine.
#pragma once

#include <memory>
#include <string>

#include "device_line.h"
#include "patience.h"
#include "pm_qos_lane.h"

namespace nvmepolicy {

class LanedDevice : public ControllerDevice {
public:
    /// `object` is the number of the controller's directory. `lane` must outlive the device.
    LanedDevice(std::string name, std::uint64_t object, std::unique_ptr<DeviceLine> line, PmQosLane& lane, Patience patience);

    [[nodiscard]] Result<std::vector<std::uint8_t>> identify_controller() override;
    [[nodiscard]] Result<FeatureReply> get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length) override;
    [[nodiscard]] Result<std::string> read_attribute(const std::string& attribute) override;
    [[nodiscard]] Result<std::string> read_tolerance() override;
    [[nodiscard]] Result<void> write_tolerance(const LatencyTolerance& tolerance, const StillWanted& still_wanted) override;

private:
    Result<FeatureReply> ask_in_lane(const std::string& request, const StillWanted& still_wanted = {});

    std::string name_;
    std::uint64_t object_;
    std::unique_ptr<DeviceLine> line_;
    PmQosLane& lane_;
    Patience patience_;
};

/// What is said of a request that is not made, since the line hangs.
[[nodiscard]] Refusal still_waited_for(const std::string& where);

} // namespace nvmepolicy
