// SPDX-License-Identifier: LGPL-2.1-or-later
// What a drive calls itself may hold any bytes. Texts of attributes that are safe to show.
#pragma once

#include <functional>
#include <string>

#include "host.h"

namespace nvmepolicy {

/// The text of an attribute, or what `harmless` makes of bytes that are no line of text. Refuses `try_later` while the kernel
/// has not identified the controller.
[[nodiscard]] Result<std::string> text_of(const Directory& directory, const std::string& attribute,
                                          const std::function<std::string(std::string_view)>& harmless);

/// As decode_identify() makes it harmless, so that both can be compared.
[[nodiscard]] Result<std::string> label(const Directory& directory, const std::string& attribute);
/// A text that is good to know and not worth a refusal.
[[nodiscard]] std::string label_or_empty(const Directory& directory, const std::string& attribute);

} // namespace nvmepolicy
