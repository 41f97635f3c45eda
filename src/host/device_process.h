// SPDX-License-Identifier: LGPL-2.1-or-later
// Starts nvmepolicy-device. What is said to it then: device_protocol.h.
#pragma once

#include <chrono>
#include <string>

#include "nvmepolicy/result.h"
#include "unique_fd.h"

namespace nvmepolicy {

/// As device_protocol.h numbers them; borrowed. A missing one is closed in the child.
struct DeviceDescriptors {
    const UniqueFd& directory;
    const UniqueFd& node;
    const UniqueFd& doubts;
};

struct DeviceProcess {
    int pid = -1;
    UniqueFd socket; ///< requests out, answers in; the first answer says that it has started
};

/// Nothing but these descriptors is open in the child. Whoever starts one reaps it.
[[nodiscard]] Result<DeviceProcess> start_device(const std::string& program, const DeviceDescriptors& descriptors);

/// Where start_device() does not overwrite it while the child's descriptors are put in place.
[[nodiscard]] UniqueFd duplicate_for_device(int fd);

/// /dev/NAME, for start_device(). Refuses `gone` where the name has passed to another controller than that whose directory
/// this is.
[[nodiscard]] Result<UniqueFd> open_controller_node(const std::string& name, const UniqueFd& directory);

/// For the program to start on a busy machine; no drive has a part in it.
inline constexpr std::chrono::seconds time_to_start{10};

} // namespace nvmepolicy
