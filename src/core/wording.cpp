// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/wording.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

namespace nvmepolicy {

namespace {

struct Character {
    std::size_t bytes = 1;
    bool valid = false;
    char32_t code = 0;
};

Character first_character(std::string_view text)
{
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80)
        return {1, true, lead};
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes)
        return {};
    char32_t code = lead & (0xffU >> (bytes + 1));
    for (std::size_t at = 1; at < bytes; ++at) {
        if ((byte(at) & 0xc0) != 0x80)
            return {};
        code = (code << 6) | (byte(at) & 0x3fU);
    }
    const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (overlong || surrogate || code > 0x10ffff)
        return {};
    return {bytes, true, code};
}

// Besides the control characters: what turns the direction of text around, is invisible, or breaks the line. A file
// could use it to show a message that says something else than it does (CVE-2021-42574).
bool shows_as_itself(char32_t code)
{
    return code >= 0x20 && !(code >= 0x7f && code <= 0x9f) && code != 0xad && code != 0x61c
           && !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2060 && code <= 0x206f)
           && code != 0xfeff && code < 0xe0000;
}

std::size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

} // namespace

std::string printable(std::string_view text, std::size_t most)
{
    std::string shown;
    for (std::size_t count = 0; !text.empty(); ++count) {
        if (count == most)
            return shown + "…";
        const Character character = first_character(text);
        if (!character.valid)
            shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
        else if (character.code == U'\n')
            shown += "\\n";
        else if (character.code == U'\t')
            shown += "\\t";
        else if (shows_as_itself(character.code))
            shown += text.substr(0, character.bytes);
        else
            shown += fmt::format(fmt::runtime(character.code < 0x80 ? "\\x{:02x}" : "\\u{:04x}"),
                                 static_cast<std::uint32_t>(character.code));
        text.remove_prefix(character.bytes);
    }
    return shown;
}

std::string_view closest(std::string_view written, const std::vector<std::string_view>& candidates)
{
    std::string_view best;
    std::size_t best_distance = 0;
    for (const std::string_view candidate : candidates) {
        const std::size_t longer = std::max(written.size(), candidate.size());
        if (longer > 64)
            continue;
        const std::size_t distance = edit_distance(written, candidate);
        const bool close = distance <= std::max<std::size_t>(1, (longer + 1) / 3) && distance < longer;
        if (close && (best.empty() || distance < best_distance)) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string suggestion(std::string_view written, const std::vector<std::string_view>& candidates)
{
    const std::string_view meant = closest(written, candidates);
    return meant.empty() ? std::string{} : fmt::format(" (did you mean \"{}\"?)", printable(meant));
}

} // namespace nvmepolicy
