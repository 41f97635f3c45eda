// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the service keeps what it must not forget.
#pragma once

#include "text_file.h"

namespace nvmepolicy {

class Storage {
public:
    virtual ~Storage() = default;
    [[nodiscard]] virtual Result<std::string> read(const std::string& path, std::size_t largest) = 0;
    /// In one step: the old text or the new one, also after a crash.
    [[nodiscard]] virtual Result<void> replace(const std::string& path, std::string_view text) = 0;
    /// One that is not there already is fine.
    [[nodiscard]] virtual Result<void> remove(const std::string& path) = 0;
    /// Mode 0755. One that is there already is fine.
    [[nodiscard]] virtual Result<void> make_directory(const std::string& path) = 0;
};

/// The file system.
[[nodiscard]] Storage& file_storage();

} // namespace nvmepolicy
