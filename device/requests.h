// SPDX-License-Identifier: LGPL-2.1-or-later
// What is asked of this process, each request done at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "device_protocol.h"

namespace nvmepolicy {

/// The words of a request.
class Words {
public:
    explicit Words(std::string_view text) : rest_(text) {}
    /// Up to the next blank; empty at the end, and where two follow each other.
    std::string_view word();
    /// The next word as a plain decimal number up to `largest`.
    std::optional<std::uint64_t> number(std::uint64_t largest);
    /// The next word as the name of a leaf, ended by a NUL in `name`.
    bool leaf(char (&name)[32]);
    /// Whatever is left, blanks and all.
    [[nodiscard]] std::string_view rest() const { return rest_; }
    [[nodiscard]] bool at_end() const { return rest_.empty() && !blank_behind_; }

private:
    std::string_view rest_;
    bool blank_behind_ = false;
};

/// Serves a request. The answer's bytes are left in `page`, which has room for largest_buffer. EINVAL for what is not known.
[[nodiscard]] device_protocol::AnswerLine serve(const char* request, std::uint8_t* page);

/// Writes an answer and its bytes to whoever asked; false where nobody listens any more.
[[nodiscard]] bool answer(const device_protocol::AnswerLine& line, const std::uint8_t* page);

} // namespace nvmepolicy
