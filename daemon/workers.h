// SPDX-License-Identifier: LGPL-2.1-or-later
// Where jobs that may wait long are done: beside the event loop.
#pragma once

#include <functional>

namespace nvmepolicy {

class Workers {
public:
    /// Gets values, and hands its result back by posting to the loop.
    using Job = std::function<void()>;
    virtual ~Workers() = default;
    /// Never waits.
    virtual void submit(Job job) = 0;
};

} // namespace nvmepolicy
