// SPDX-License-Identifier: LGPL-2.1-or-later
// The door to /sys.
#pragma once

#include <memory>

#include "host.h"
#include "unique_fd.h"

namespace nvmepolicy {

/// A directory of /sys, by descriptor.
class SysfsDirectory : public Directory {
public:
    [[nodiscard]] static Result<std::unique_ptr<SysfsDirectory>> open(const std::string& path);
    [[nodiscard]] const std::string& path() const override { return path_; }
    [[nodiscard]] std::uint64_t object() const override { return object_; }
    [[nodiscard]] Result<std::string> read(const std::string& attribute) const override;
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& below) const override;
    [[nodiscard]] int descriptor() const { return fd_.get(); }

private:
    SysfsDirectory(std::string path, UniqueFd fd, std::uint64_t object)
        : path_(std::move(path))
        , fd_(std::move(fd))
        , object_(object)
    {
    }
    std::string path_;
    UniqueFd fd_;
    std::uint64_t object_;
};

/// Everything that a descriptor yields, up to `largest` bytes; more is refused.
[[nodiscard]] Result<std::string> read_all(int fd, const std::string& where, std::size_t largest);

} // namespace nvmepolicy
