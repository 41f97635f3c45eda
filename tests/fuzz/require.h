// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace nvmepolicy {

/// Ends the fuzzer, and with it says what was wrong.
inline void require(bool holds, const char* what, const std::string& text = {})
{
    if (holds)
        return;
    std::fprintf(stderr, "%s:\n%s\n", what, text.c_str());
    std::abort();
}

/// What comes from a drive, a file or sysfs goes onto terminals, into JSON and over D-Bus.
inline void require_printable(std::string_view text, const char* what)
{
    for (const char c : text)
        require(c >= ' ' && c <= '~', what, std::string(text));
}

} // namespace nvmepolicy
