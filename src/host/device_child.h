// SPDX-License-Identifier: LGPL-2.1-or-later
// One controller's blocking calls, made by a child process that can be left behind. See device_protocol.h.
#pragma once

#include <string>

#include "host.h"
#include "left_behind.h"
#include "patience.h"
#include "pm_qos_lane.h"
#include "unique_fd.h"

namespace nvmepolicy {

class DeviceChild : public ControllerDevice {
public:
    /// What all children of a host share.
    struct Shared {
        LeftBehind left_behind;
        PmQosLane lane{left_behind};
    };
    /// `directory` is duplicated, `object` its number. The child is started with the first call.
    DeviceChild(std::string name, int directory, std::uint64_t object, std::string program, Patience patience,
                std::shared_ptr<Shared> shared);
    ~DeviceChild() override;
    DeviceChild(const DeviceChild&) = delete;
    DeviceChild& operator=(const DeviceChild&) = delete;
    DeviceChild(DeviceChild&&) = delete;
    DeviceChild& operator=(DeviceChild&&) = delete;

    [[nodiscard]] Result<std::vector<std::uint8_t>> identify_controller() override;
    [[nodiscard]] Result<FeatureReply> get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length) override;
    [[nodiscard]] Result<std::string> read_attribute(const std::string& attribute) override;
    [[nodiscard]] Result<std::string> read_tolerance() override;
    [[nodiscard]] Result<void> write_tolerance(const LatencyTolerance& tolerance, const StillWanted& still_wanted) override;

private:
    using Deadline = Patience::Clock::time_point;

    Result<void> open_node();
    Result<void> start();
    /// Sends a request line and waits for the whole answer.
    Result<FeatureReply> ask(const std::string& where, const std::string& request);
    Result<FeatureReply> read_answer(const std::string& where, Deadline deadline);
    Result<FeatureReply> ask_drive(const std::string& where, const std::string& request);
    Result<FeatureReply> ask_in_lane(const std::string& where, const std::string& request,
                                     const StillWanted& still_wanted = {});
    Result<void> read_exactly(const std::string& where, std::uint8_t* to, std::size_t length, Deadline deadline);
    Refusal give_up(const std::string& where);

    std::string name_;
    std::uint64_t object_;
    std::string program_;
    Patience patience_;
    std::shared_ptr<Shared> shared_;
    UniqueFd directory_;
    UniqueFd node_;
    UniqueFd socket_; ///< requests out, answers in
    int pid_ = -1;
    bool hangs_ = false;
};

} // namespace nvmepolicy
