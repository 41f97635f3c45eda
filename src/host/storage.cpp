// SPDX-License-Identifier: LGPL-2.1-or-later
#include "storage.h"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

#include "errno_refusal.h"

namespace nvmepolicy {
namespace {

class FileStorage : public Storage {
public:
    [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t largest) override
    {
        return read_text_file(path, largest);
    }
    [[nodiscard]] Result<void> replace(const std::string& path, std::string_view text) override
    {
        return replace_text_file(path, text);
    }
    [[nodiscard]] Result<void> remove(const std::string& path) override
    {
        if (::unlink(path.c_str()) < 0 && errno != ENOENT)
            return errno_refusal(path, "", errno);
        return {};
    }
    [[nodiscard]] Result<void> make_directory(const std::string& path) override
    {
        if (::mkdir(path.c_str(), 0755) < 0 && errno != EEXIST)
            return errno_refusal(path, "", errno);
        return {};
    }
};

} // namespace

Storage& file_storage()
{
    static FileStorage storage;
    return storage;
}

} // namespace nvmepolicy
