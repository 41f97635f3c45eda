// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdlib>
#include <unistd.h>

namespace nvmepolicy {

/// For as long as it lives, file permissions count: root gives its rights up, and takes them back.
class Unprivileged {
public:
    Unprivileged()
    {
        if (was_root_ && ::seteuid(65534) != 0)
            std::abort();
    }
    ~Unprivileged()
    {
        if (was_root_ && ::seteuid(0) != 0)
            std::abort();
    }
    Unprivileged(const Unprivileged&) = delete;
    Unprivileged& operator=(const Unprivileged&) = delete;
    Unprivileged(Unprivileged&&) = delete;
    Unprivileged& operator=(Unprivileged&&) = delete;

private:
    const bool was_root_ = ::geteuid() == 0;
};

} // namespace nvmepolicy
