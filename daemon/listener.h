// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "reconcile/reconcile.h"

namespace nvmepolicy {

/// Is told of what is known, as it becomes known. On the loop's thread.
class Listener {
public:
    virtual ~Listener() = default;
    virtual void looked(const Outcome& outcome) = 0;
    /// It has not answered for some time; the next outcome of it says that it does again.
    virtual void stuck(const std::string& controller) = 0;
    virtual void left(const std::string& controller) = 0;
    /// The power source, for one.
    virtual void circumstances_changed() = 0;
};

} // namespace nvmepolicy
