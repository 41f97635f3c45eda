// SPDX-License-Identifier: LGPL-2.1-or-later
// Somebody may write the tolerance file of a controller; whoever is told so looks.
#pragma once

#include <string>

namespace nvmepolicy {

class WriteWatch {
public:
    virtual ~WriteWatch() = default;
    /// Watches the tolerance file of a controller, if there is one; again after the file may have come anew.
    virtual void watch(const std::string& controller) = 0;
    virtual void forget(const std::string& controller) = 0;
};

} // namespace nvmepolicy
