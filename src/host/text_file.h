// SPDX-License-Identifier: LGPL-2.1-or-later
// Whole files of text, read and written carefully.
#pragma once

#include <string>
#include <string_view>

#include "nvmepolicy/result.h"
#include "unique_fd.h"

namespace nvmepolicy {

/// Reads a regular file of at most `largest` bytes. /dev/null, or a link to it, reads as empty: that is how a
/// configuration file is masked. Anything else that is not a regular file is refused, so that nothing hangs on a FIFO.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, std::size_t largest);

/// Replaces a file in one step: whoever reads it sees the old text or the new one, also after a crash. Mode 0644. What is
/// written to the descriptor comes after the text.
Result<UniqueFd> replace_text_file(const std::string& path, std::string_view text);

/// All of it. Where that is refused, a beginning may have been written.
[[nodiscard]] Result<void> write_all(const UniqueFd& fd, const std::string& path, std::string_view text);

/// Mode 0755, whatever the umask: others may look. One that is there already stays as it is.
[[nodiscard]] Result<void> make_readable_directory(const std::string& path);

} // namespace nvmepolicy
