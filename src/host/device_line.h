// SPDX-License-Identifier: LGPL-2.1-or-later
// A line to one controller, on which a call that does not come back can be left behind.
#pragma once

#include <string>

#include "host.h"

namespace nvmepolicy {

class DeviceLine {
public:
    virtual ~DeviceLine() = default;
    /// Makes a request of device_protocol.h and waits for the whole answer, as long as the line's patience lasts. `where` is
    /// what a message calls it.
    [[nodiscard]] virtual Result<FeatureReply> ask(const std::string& where, const std::string& request) = 0;
    /// The same for a request that needs the controller's device node.
    [[nodiscard]] virtual Result<FeatureReply> ask_drive(const std::string& where, const std::string& request) = 0;
    /// A call was left behind: nothing is asked on this line any more.
    [[nodiscard]] virtual bool hangs() const = 0;
};

} // namespace nvmepolicy
