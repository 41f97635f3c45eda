// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the service keeps what it must not forget.
#pragma once

#include <memory>

#include "text_file.h"

namespace nvmepolicy {

/// A file that grows at its end, as long as nobody else changes it.
class AppendOnlyFile {
public:
    AppendOnlyFile() = default;
    virtual ~AppendOnlyFile() = default;
    AppendOnlyFile(const AppendOnlyFile&) = delete;
    AppendOnlyFile& operator=(const AppendOnlyFile&) = delete;
    AppendOnlyFile(AppendOnlyFile&&) = delete;
    AppendOnlyFile& operator=(AppendOnlyFile&&) = delete;

    /// All of `text` or nothing of it; only a crash leaves a beginning. Refuses `gone` where the file is no longer as it was
    /// left: then somebody else has removed, replaced or changed it. It reaches no disk by itself, which is fine in
    /// /run.
    [[nodiscard]] virtual Result<void> append(std::string_view text) = 0;
    /// What was appended is on disk. After a refusal that is not known of any of it, and never will be.
    [[nodiscard]] virtual Result<void> sync() = 0;
};

class Storage {
public:
    virtual ~Storage() = default;
    [[nodiscard]] virtual Result<std::string> read(const std::string& path, std::size_t largest) = 0;
    /// In one step: the old text or the new one, also after a crash.
    [[nodiscard]] virtual Result<void> replace(const std::string& path, std::string_view text) = 0;
    /// As replace(), and what it holds is only the beginning.
    [[nodiscard]] virtual Result<std::unique_ptr<AppendOnlyFile>> begin(const std::string& path, std::string_view text) = 0;
    /// One that is not there already is fine.
    [[nodiscard]] virtual Result<void> remove(const std::string& path) = 0;
    /// Mode 0755, whatever the umask. One that is there already is fine.
    [[nodiscard]] virtual Result<void> make_directory(const std::string& path) = 0;
};

/// The file system.
[[nodiscard]] Storage& file_storage();

} // namespace nvmepolicy
