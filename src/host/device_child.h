// SPDX-License-Identifier: LGPL-2.1-or-later
// The line to a controller of a real machine: a child process makes its blocking calls. See device_protocol.h.
#pragma once

#include <string>

#include "device_line.h"
#include "left_behind.h"
#include "patience.h"
#include "unique_fd.h"

namespace nvmepolicy {

class DeviceChild : public DeviceLine {
public:
    /// `directory` is duplicated, `object` its number. The child is started with the first call. `left_behind` must outlive
    /// the line.
    DeviceChild(std::string name, int directory, std::uint64_t object, std::string program, Patience patience,
                LeftBehind& left_behind);
    ~DeviceChild() override;
    DeviceChild(const DeviceChild&) = delete;
    DeviceChild& operator=(const DeviceChild&) = delete;
    DeviceChild(DeviceChild&&) = delete;
    DeviceChild& operator=(DeviceChild&&) = delete;

    [[nodiscard]] Result<FeatureReply> ask(const std::string& where, const std::string& request) override;
    [[nodiscard]] Result<FeatureReply> ask_drive(const std::string& where, const std::string& request) override;
    [[nodiscard]] bool hangs() const override { return hangs_; }

private:
    using Deadline = Patience::Clock::time_point;

    Result<void> open_node();
    Result<void> start();
    Result<FeatureReply> read_answer(const std::string& where, Deadline deadline);
    Result<void> read_exactly(const std::string& where, std::uint8_t* to, std::size_t length, Deadline deadline);
    Refusal give_up(const std::string& where);

    std::string name_;
    std::uint64_t object_;
    std::string program_;
    Patience patience_;
    LeftBehind& left_behind_;
    UniqueFd directory_;
    UniqueFd node_;
    UniqueFd socket_; ///< requests out, answers in
    int pid_ = -1;
    bool hangs_ = false;
};

} // namespace nvmepolicy
