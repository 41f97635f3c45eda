// SPDX-License-Identifier: LGPL-2.1-or-later
// Files that outlive a process, and that may not take what is written to them.
#pragma once

#include <map>

#include "host/storage.h"

namespace nvmepolicy::simulation {

class MemoryStorage : public Storage {
public:
    std::map<std::string, std::string> files;
    bool full = false;

    [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t /*largest*/) override
    {
        const auto found = files.find(path);
        if (found == files.end())
            return Refusal{path, "", "there is no such file (ENOENT)", RefusalKind::absent};
        return found->second;
    }
    [[nodiscard]] Result<void> replace(const std::string& path, std::string_view text) override
    {
        if (full)
            return Refusal{path, "", "No space left on device (ENOSPC)", RefusalKind::failed};
        files[path] = text;
        return {};
    }
    [[nodiscard]] Result<void> remove(const std::string& path) override
    {
        files.erase(path);
        return {};
    }
    [[nodiscard]] Result<void> make_directory(const std::string& /*path*/) override { return {}; }
};

inline constexpr const char* runtime_directory = "/run/nvmepolicyd";
inline constexpr const char* state_directory = "/var/lib/nvmepolicyd";
inline constexpr const char* ledger_file = "/run/nvmepolicyd/originals.json";
inline constexpr const char* breaker_file = "/var/lib/nvmepolicyd/breaker.json";

} // namespace nvmepolicy::simulation
