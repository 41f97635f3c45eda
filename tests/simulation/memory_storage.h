// SPDX-License-Identifier: LGPL-2.1-or-later
// Files that outlive a process, and that may not take what is written to them.
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include "host/errno_refusal.h"
#include "host/storage.h"

namespace nvmepolicy::simulation {

class MemoryStorage : public Storage {
public:
    std::map<std::string, std::string> files;
    std::optional<std::size_t> room; ///< for so many bytes more; none: for any number

    /// An append that its process may still be in: killed there, it leaves a beginning of the text.
    struct Append {
        std::string path;
        std::size_t end; ///< of the file, before it
        std::string text;
    };
    std::optional<Append> latest;

    void tear(const Append& append, std::size_t kept)
    {
        std::string& file = files[append.path];
        file.resize(append.end);
        file += append.text.substr(0, kept);
    }

    [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t /*largest*/) override
    {
        const auto found = files.find(path);
        if (found == files.end())
            return errno_refusal(path, "", ENOENT);
        return found->second;
    }
    [[nodiscard]] Result<void> replace(const std::string& path, std::string_view text) override
    {
        latest.reset();
        if (!takes(text.size())) // beside the old one, until that can go
            return errno_refusal(path + ".new", "", ENOSPC);
        if (room)
            *room += files[path].size();
        files[path] = text;
        return {};
    }
    [[nodiscard]] Result<std::unique_ptr<AppendOnlyFile>> begin(const std::string& path, std::string_view text) override
    {
        if (const auto replaced = replace(path, text); !replaced)
            return replaced.error();
        return std::unique_ptr<AppendOnlyFile>(std::make_unique<GrowingFile>(*this, path, text.size()));
    }
    [[nodiscard]] Result<void> remove(const std::string& path) override
    {
        latest.reset();
        if (const auto found = files.find(path); found != files.end()) {
            if (room)
                *room += found->second.size();
            files.erase(found);
        }
        return {};
    }
    [[nodiscard]] Result<void> make_directory(const std::string& /*path*/) override { return {}; }

private:
    class GrowingFile : public AppendOnlyFile {
    public:
        GrowingFile(MemoryStorage& storage, std::string path, std::size_t size)
            : storage_(storage)
            , path_(std::move(path))
            , size_(size)
        {
        }
        [[nodiscard]] Result<void> append(std::string_view text) override
        {
            const auto found = storage_.files.find(path_);
            if (found == storage_.files.end() || found->second.size() != size_)
                return Refusal{path_, "", "somebody else has changed or removed it", RefusalKind::gone};
            const std::size_t written = std::min(text.size(), storage_.room.value_or(text.size()));
            storage_.latest = Append{path_, size_, std::string(text.substr(0, written))};
            if (!storage_.takes(text.size()))
                return errno_refusal(path_, "", ENOSPC);
            found->second += text;
            size_ += text.size();
            return {};
        }
        [[nodiscard]] Result<void> sync() override { return {}; }

    private:
        MemoryStorage& storage_;
        std::string path_;
        std::size_t size_;
    };

    bool takes(std::size_t size)
    {
        if (room && *room < size)
            return false;
        if (room)
            *room -= size;
        return true;
    }
};

inline constexpr const char* runtime_directory = "/run/nvmepolicyd";
inline constexpr const char* state_directory = "/var/lib/nvmepolicyd";
inline constexpr const char* ledger_file = "/run/nvmepolicyd/originals.json";
inline constexpr const char* breaker_file = "/var/lib/nvmepolicyd/breaker.json";

} // namespace nvmepolicy::simulation
