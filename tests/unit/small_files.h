// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <csignal>
#include <sys/resource.h>

namespace nvmepolicy {

/// Files take only so many bytes: as good as a full /run. A write across that border is torn, as there.
class SmallFiles {
public:
    explicit SmallFiles(std::size_t largest)
    {
        ::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit small{largest, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~SmallFiles() { ::setrlimit(RLIMIT_FSIZE, &before_); }
    SmallFiles(const SmallFiles&) = delete;
    SmallFiles& operator=(const SmallFiles&) = delete;
    SmallFiles(SmallFiles&&) = delete;
    SmallFiles& operator=(SmallFiles&&) = delete;

private:
    rlimit before_{};
};

} // namespace nvmepolicy
