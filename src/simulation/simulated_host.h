// SPDX-License-Identifier: LGPL-2.1-or-later
// A machine in memory: drives from drive files, and a kernel that reacts to a tolerance write as Linux does.
// It stands behind the same seam as LinuxHost, so everything above runs on it unchanged.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/host.h"
#include "nvmepolicy/drive_file.h"
#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// One simulated controller. Tests reach into it to make it fail.
struct SimulatedController {
    std::string name;
    ControllerId id;
    std::uint64_t object = 0; ///< as the kernel numbers its objects: never again
    DriveFile drive;
    ControllerState state = ControllerState::live;

    LatencyTolerance tolerance;   ///< what the file shows
    LatencyTolerance driver_copy; ///< what the driver compares with; `auto` and `any` are one to it
    ApstFeature apst;             ///< what the drive holds
    bool refuses_apst = false;    ///< Set Features 0Ch fails; the kernel drops the status
    int set_features = 0;         ///< Set Features 0Ch received

    /// The error that the next calls of a kind meet, by "identify", "get-feature", "read-tolerance", "write-tolerance",
    /// or an attribute's name.
    std::map<std::string, Refusal> faults;
};

class SimulatedHost : public Host {
public:
    SimulatedHost();

    /// Adds a controller as the kernel would after a probe: tolerance from the module parameter, table programmed.
    SimulatedController& add(const DriveFile& drive);
    /// Hot-unplug: whatever is open on it answers `gone`.
    void remove(const std::string& name);

    [[nodiscard]] SimulatedController* find(const std::string& name);
    Machine machine; ///< module parameters and power source

    [[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override;
    [[nodiscard]] std::unique_ptr<ControllerDevice> open_device(const Directory& directory, const std::string& name) override;
    [[nodiscard]] bool simulated() const override { return true; }

    /// The kernel's side of a tolerance write.
    /// Source: dev_pm_qos_update_user_latency_tolerance(), nvme_set_latency_tolerance().
    void write_tolerance(SimulatedController& controller, const LatencyTolerance& tolerance);

private:
    void program(SimulatedController& controller);

    // Several workers look at the same time.
    std::mutex mutex_;
    std::vector<std::shared_ptr<SimulatedController>> controllers_;
    int next_number_ = 0;
    std::uint64_t next_object_ = 1;

    friend class SimulatedDirectory;
    friend class SimulatedDevice;
};

} // namespace nvmepolicy
