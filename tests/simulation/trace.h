// SPDX-License-Identifier: LGPL-2.1-or-later
// What happened, in order: printed when a run is replayed, and boiled down to a number by which two runs are compared.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <string_view>

#include "nvmepolicy/units.h"

namespace nvmepolicy::simulation {

class Trace {
public:
    explicit Trace(bool print) : print_(print) {}
    /// Formatting costs more than a step of the simulation; so it is done only to be read, or for the number where asked.
    template <class... Arguments>
    void say(Milliseconds now, fmt::format_string<Arguments...> format, Arguments&&... arguments)
    {
        if (!print_ && !fingerprinted_)
            return;
        const std::string line = fmt::format("{:>9.3f}  ", static_cast<double>(now.count()) / 1000)
                                 + fmt::format(format, std::forward<Arguments>(arguments)...);
        for (const char c : line)
            fingerprint_ = (fingerprint_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
        if (print_)
            std::puts(line.c_str());
    }
    void take_fingerprint() { fingerprinted_ = true; }
    [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

private:
    bool print_;
    bool fingerprinted_ = false;
    std::uint64_t fingerprint_ = 0xcbf29ce484222325U; ///< FNV-1a
};

} // namespace nvmepolicy::simulation
