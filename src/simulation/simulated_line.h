// SPDX-License-Identifier: LGPL-2.1-or-later
// The line to a simulated controller: as DeviceChild, without a child.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "host/device_line.h"
#include "host/patience.h"
#include "host/waiting.h"
#include "simulated_kernel.h"

namespace nvmepolicy {

/// Calls that were left behind, by the controller's object number.
class PendingCalls {
public:
    void leave(std::uint64_t controller_object, std::shared_ptr<PendingCall> call)
    {
        calls_[controller_object] = std::move(call);
    }
    [[nodiscard]] bool waits_for(std::uint64_t controller_object) const;

private:
    std::map<std::uint64_t, std::shared_ptr<PendingCall>> calls_;
};

class SimulatedLine : public DeviceLine {
public:
    SimulatedLine(SimulatedKernel& kernel, std::string name, SimulatedKernel::Held controller, Waiting& waiting,
                  Patience patience, PendingCalls& left_behind);

    [[nodiscard]] Result<FeatureReply> ask(const std::string& where, const std::string& request) override;
    [[nodiscard]] Result<FeatureReply> ask_drive(const std::string& where, const std::string& request) override;
    [[nodiscard]] bool hangs() const override { return hangs_; }

private:
    [[nodiscard]] Result<void> open_node();

    SimulatedKernel& kernel_;
    std::string name_;
    SimulatedKernel::Held controller_;
    Waiting& waiting_;
    Patience patience_;
    PendingCalls& left_behind_;
    bool node_open_ = false;
    bool hangs_ = false;
};

} // namespace nvmepolicy
