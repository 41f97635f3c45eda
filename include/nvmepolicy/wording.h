// SPDX-License-Identifier: LGPL-2.1-or-later
// Pieces of messages. Texts from files, drives and command lines end up on terminals, in logs and on D-Bus, so they are
// made harmless here first.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nvmepolicy {

/// Foreign text as one line of valid UTF-8: control and direction characters and broken bytes become `\n`, `\x1b`,
/// `\u202e`; what is longer than `most` characters ends in `…`.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 80);

/// The candidate that was probably meant; empty where none is close enough to be worth mentioning.
[[nodiscard]] std::string_view closest(std::string_view written, const std::vector<std::string_view>& candidates);

/// ` (did you mean "manage"?)`, or nothing where no candidate is close.
[[nodiscard]] std::string suggestion(std::string_view written, const std::vector<std::string_view>& candidates);

} // namespace nvmepolicy
