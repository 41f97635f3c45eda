// SPDX-License-Identifier: LGPL-2.1-or-later
// What the service needs of an event loop: one thread, on which things happen one after the other.
#pragma once

#include <functional>
#include <memory>

#include "nvmepolicy/units.h"

namespace nvmepolicy {

class Loop {
public:
    using Callback = std::function<void()>;
    /// Something that is watched for. Dropping it ends the watching, also from inside its own callback.
    class Watched {
    public:
        virtual ~Watched() = default;
    };
    using Source = std::unique_ptr<Watched>;

    virtual ~Loop() = default;
    /// Once, after at least that long. Time in suspend does not count.
    [[nodiscard]] virtual Source after(Milliseconds delay, Callback callback) = 0;
    /// Before the loop next waits, behind everything that has happened already. From the loop's thread only.
    [[nodiscard]] virtual Source soon(Callback callback) = 0;
    /// From any thread: runs `callback` on the loop's.
    virtual void post(Callback callback) = 0;
};

} // namespace nvmepolicy
