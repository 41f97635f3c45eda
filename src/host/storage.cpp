// SPDX-License-Identifier: LGPL-2.1-or-later
#include "storage.h"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "errno_refusal.h"

namespace nvmepolicy {
namespace {

class GrowingFile : public AppendOnlyFile {
public:
    GrowingFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) { remember(); }

    [[nodiscard]] Result<void> append(std::string_view text) override
    {
        if (!is_as_left())
            return Refusal{path_, "", "somebody else has changed or removed it", RefusalKind::gone};
        auto written = write_all(fd_, path_, text);
        // What is left of an append that cannot be taken back makes the next one refuse.
        if (written || ::ftruncate(fd_.get(), left_.st_size) == 0)
            remember();
        return written;
    }

    [[nodiscard]] Result<void> sync() override
    {
        return ::fdatasync(fd_.get()) < 0 ? errno_refusal(path_, "", errno) : Result<void>{};
    }

private:
    void remember() { static_cast<void>(::fstat(fd_.get(), &left_)); }

    /// The descriptor alone would not tell that the file has another name by now, or none.
    [[nodiscard]] bool is_as_left() const
    {
        struct stat found {};
        return ::lstat(path_.c_str(), &found) == 0 && found.st_dev == left_.st_dev && found.st_ino == left_.st_ino
               && found.st_size == left_.st_size && found.st_mtim.tv_sec == left_.st_mtim.tv_sec
               && found.st_mtim.tv_nsec == left_.st_mtim.tv_nsec;
    }

    std::string path_;
    UniqueFd fd_;
    struct stat left_ {};
};

class FileStorage : public Storage {
public:
    [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t largest) override
    {
        return read_text_file(path, largest);
    }
    [[nodiscard]] Result<void> replace(const std::string& path, std::string_view text) override
    {
        const auto replaced = replace_text_file(path, text);
        return replaced ? Result<void>{} : Result<void>{replaced.error()};
    }
    [[nodiscard]] Result<std::unique_ptr<AppendOnlyFile>> begin(const std::string& path, std::string_view text) override
    {
        auto replaced = replace_text_file(path, text);
        if (!replaced)
            return replaced.error();
        return std::unique_ptr<AppendOnlyFile>(std::make_unique<GrowingFile>(path, *std::move(replaced)));
    }
    [[nodiscard]] Result<void> remove(const std::string& path) override
    {
        if (::unlink(path.c_str()) < 0 && errno != ENOENT)
            return errno_refusal(path, "", errno);
        return {};
    }
    [[nodiscard]] Result<void> make_directory(const std::string& path) override { return make_readable_directory(path); }
};

} // namespace

Storage& file_storage()
{
    static FileStorage storage;
    return storage;
}

} // namespace nvmepolicy
