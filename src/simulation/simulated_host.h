// SPDX-License-Identifier: LGPL-2.1-or-later
// A machine in memory behind the same seam as LinuxHost, so everything above runs on it unchanged.
#pragma once

#include <memory>
#include <string>

#include "host/host.h"
#include "host/pm_qos_lane.h"
#include "simulated_line.h"

namespace nvmepolicy {

class SimulatedHost : public Host {
public:
    /// With a kernel of its own, on which everything happens at once.
    SimulatedHost();
    /// What one process sees of a kernel that others see too.
    SimulatedHost(SimulatedKernel& kernel, Waiting& waiting, Patience patience);
    /// The same process with another patience.
    SimulatedHost(const SimulatedHost& same, Patience patience);

    /// Adds a controller as the kernel would: tolerance from the module parameter, table programmed.
    SimulatedController& add(const DriveFile& drive);
    /// Hot-unplug: whatever is open on it answers `gone`.
    void remove(const std::string& name);
    [[nodiscard]] SimulatedController* find(const std::string& name);
    void rename(SimulatedController& controller, const std::string& name);
    /// By somebody else.
    void write_tolerance(SimulatedController& controller, const LatencyTolerance& tolerance);
    Machine& machine;
    /// To be used as its time() allows: others may be inside.
    [[nodiscard]] SimulatedKernel& kernel() const { return kernel_; }

    [[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override;
    [[nodiscard]] std::unique_ptr<ControllerDevice> open_device(const Directory& directory, const std::string& name) override;
    [[nodiscard]] bool simulated() const override { return true; }

private:
    /// What all devices of the process share.
    struct Process {
        explicit Process(Waiting& w) : waiting(w) {}
        Waiting& waiting;
        PendingCalls left_behind;
        PmQosLane lane{[this](std::uint64_t object) { return left_behind.waits_for(object); }, waiting};
    };
    struct OwnKernel {
        Instantly time;
        ThreadWaiting waiting;
        SimulatedKernel kernel{time};
        int drives = 0;
    };
    explicit SimulatedHost(std::shared_ptr<OwnKernel> own);

    std::shared_ptr<OwnKernel> own_;
    SimulatedKernel& kernel_;
    Patience patience_;
    std::shared_ptr<Process> process_;
};

} // namespace nvmepolicy
