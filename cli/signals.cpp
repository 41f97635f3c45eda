// SPDX-License-Identifier: LGPL-2.1-or-later
#include "signals.h"

#include <unistd.h>

namespace nvmepolicy {

Signals::Signals(std::initializer_list<int> which)
{
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : which)
        ::sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::~Signals()
{
    while (next()) {
        // What came meanwhile has been acted upon; it must not end the program now.
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<signalfd_siginfo> Signals::next() const
{
    signalfd_siginfo signal{};
    if (::read(fd(), &signal, sizeof signal) != sizeof signal)
        return std::nullopt;
    return signal;
}

} // namespace nvmepolicy
