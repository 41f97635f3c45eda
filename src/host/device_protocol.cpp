// SPDX-License-Identifier: LGPL-2.1-or-later
#include "device_protocol.h"

#include <charconv>

namespace nvmepolicy::device_protocol {
namespace {

constexpr std::string_view words[] = {"ok ", "errno ", "status "};

bool take_number(std::string_view& text, std::uint32_t& number)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{})
        return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

} // namespace

std::string format(const AnswerLine& line)
{
    return std::string(words[static_cast<std::size_t>(line.kind)]) + std::to_string(line.number) + " "
           + std::to_string(line.length) + "\n";
}

bool parse(std::string_view text, AnswerLine& line)
{
    for (const AnswerKind kind : {AnswerKind::ok, AnswerKind::error_number, AnswerKind::status}) {
        const std::string_view word = words[static_cast<std::size_t>(kind)];
        if (!text.starts_with(word))
            continue;
        text.remove_prefix(word.size());
        line.kind = kind;
        if (!take_number(text, line.number) || !text.starts_with(' '))
            return false;
        text.remove_prefix(1);
        return take_number(text, line.length) && text.empty() && line.length <= largest_buffer;
    }
    return false;
}

} // namespace nvmepolicy::device_protocol
