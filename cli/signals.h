// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>
#include <sys/signalfd.h>

#include "host/unique_fd.h"

namespace nvmepolicy {

/// From here on these signals wait in a descriptor instead of ending the program.
class Signals {
public:
    explicit Signals(std::initializer_list<int> which);
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    Signals(Signals&&) = delete;
    Signals& operator=(Signals&&) = delete;

    [[nodiscard]] int fd() const { return fd_.get(); }
    /// The next one; none: no more as yet.
    [[nodiscard]] std::optional<signalfd_siginfo> next() const;
    /// What was blocked before, for a child.
    [[nodiscard]] const sigset_t& before() const { return before_; }

private:
    sigset_t before_{};
    UniqueFd fd_;
};

} // namespace nvmepolicy
