// SPDX-License-Identifier: LGPL-2.1-or-later
// Any bytes as configuration: no crash, messages that can go onto a terminal and over D-Bus, and a good policy that is
// shown as a configuration of the same values.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../unit/without_origins.h"
#include "nvmepolicy/policy_file.h"

using namespace nvmepolicy;

namespace {

void require(bool holds, const char* what, const std::string& text)
{
    if (holds)
        return;
    std::fprintf(stderr, "%s:\n%s\n", what, text.c_str());
    std::abort();
}

bool has_control_characters(const std::string& text)
{
    for (const char c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            return true;
    return false;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    const std::string text(reinterpret_cast<const char*>(bytes), size);
    for (const PolicyText::Role role : {PolicyText::Role::main, PolicyText::Role::drives}) {
        const PolicyReading reading = read_policy({{role, "fuzz.toml", text}});
        for (const Refusal& error : reading.errors)
            require(!has_control_characters(error.text()), "a message with control characters", error.text());
        if (!reading.errors.empty())
            continue;
        const std::string shown = show_policy(reading.policy);
        const PolicyReading again = read_policy({{PolicyText::Role::main, "shown.toml", shown}});
        // The shown text of a file of many short lines can be longer than a file may be.
        if (shown.size() > largest_policy_file)
            continue;
        require(again.errors.empty(), "a shown policy that is refused", shown);
        require(without_origins(again.policy) == without_origins(reading.policy), "a shown policy that differs", shown);
    }
    return 0;
}
