// SPDX-License-Identifier: LGPL-2.1-or-later
// The door to inotify: tells that somebody wrote a tolerance file. Who and what, a look must tell.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nvmepolicy/result.h"
#include "unique_fd.h"
#include "write_watch.h"

namespace nvmepolicy {

class AttributeWatch : public WriteWatch {
public:
    [[nodiscard]] static Result<AttributeWatch> start();
    [[nodiscard]] int descriptor() const { return fd_.get(); }

    void watch(const std::string& controller) override;
    void forget(const std::string& controller) override;

    /// The controllers whose file was written since the last call, each once. `overflow` is set when some were dropped.
    [[nodiscard]] std::vector<std::string> written(bool& overflow);

private:
    explicit AttributeWatch(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
    std::map<int, std::string> controllers_; ///< by watch descriptor
};

} // namespace nvmepolicy
