// SPDX-License-Identifier: LGPL-2.1-or-later
// The answer to a method call, which may come later.
#pragma once

#include <memory>

#include "bus/connection.h"
#include "bus/names.h"

namespace nvmepolicy::bus {

/// Can be copied into callbacks. The first answer counts; nobody may be there any more to hear it.
template <class... Values>
class Reply {
public:
    explicit Reply(sdbus::Result<Values...>&& result)
        : result_(std::make_shared<std::optional<sdbus::Result<Values...>>>(std::move(result)))
    {
    }
    void done(const Values&... values) const
    {
        answer([&](const sdbus::Result<Values...>& result) { result.returnResults(values...); });
    }
    void refuse(const char* error, const std::string& text) const
    {
        answer([&](const sdbus::Result<Values...>& result) { result.returnError(make_error(error, text)); });
    }

private:
    template <class Answer>
    void answer(const Answer& with) const
    {
        if (!*result_)
            return;
        try {
            with(**result_);
        } catch (const sdbus::Error&) { // NOLINT(bugprone-empty-catch): a lost bus is noticed where it is waited for
        }
        result_->reset();
    }
    std::shared_ptr<std::optional<sdbus::Result<Values...>>> result_;
};

} // namespace nvmepolicy::bus
