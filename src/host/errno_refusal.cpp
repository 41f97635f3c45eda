// SPDX-License-Identifier: LGPL-2.1-or-later
#include "errno_refusal.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>

namespace nvmepolicy {
namespace {

struct Meaning {
    RefusalKind kind;
    const char* words;
};

Meaning meaning_of(int error)
{
    switch (error) {
    case ENOENT: return {RefusalKind::absent, "there is no such file"};
    case ENODEV: return {RefusalKind::gone, "the controller has left"};
    // After a firmware commit Identify may answer this for a moment although all is well.
    case ENXIO: return {RefusalKind::try_later, "no such device or address"};
    case EAGAIN: return {RefusalKind::try_later, "the controller is not live"};
    case EBUSY: return {RefusalKind::try_later, "busy"};
    case EINTR: return {RefusalKind::try_later, "cancelled"};
    case EIO: return {RefusalKind::try_later, "input/output error"};
    case ENOSPC:
    case EDQUOT: return {RefusalKind::try_later, "no space left"};
    case ENOMEM: return {RefusalKind::try_later, "out of memory"};
    case EINVAL: return {RefusalKind::invalid, "the kernel refused the value"};
    case EACCES:
    case EPERM: return {RefusalKind::denied, "not allowed for this user or in this sandbox; root may"};
    case EROFS: return {RefusalKind::denied, "the file system is read-only"};
    case ENOTTY:
    case EOPNOTSUPP: return {RefusalKind::unsupported, "the kernel does not know this request"};
    case ETIMEDOUT: return {RefusalKind::timed_out, "no answer in time"};
    default: return {RefusalKind::failed, nullptr};
    }
}

} // namespace

Refusal errno_refusal(std::string where, std::string value, int error)
{
    const Meaning meaning = meaning_of(error);
    const char* name = strerrorname_np(error);
    const char* description = strerrordesc_np(error); // none for a number that the C library does not know
    if (!name || !description)
        return {std::move(where), std::move(value), fmt::format("unknown error {}", error), meaning.kind};
    std::string reason = fmt::format("{} ({})", meaning.words ? meaning.words : description, name);
    return {std::move(where), std::move(value), std::move(reason), meaning.kind};
}

Refusal status_refusal(std::string where, std::uint32_t status)
{
    const std::uint32_t code = status & 0x7ffU; // status code type and code, without "more" and "do not retry"
    std::string reason = fmt::format("the controller answered with NVMe status {:03x}h", code);
    constexpr std::uint32_t path_related = 3; // status code type 3h, such as 370h, host path error
    if (code >> 8U == path_related)
        return {std::move(where), "", reason + ": the kernel could not reach it", RefusalKind::try_later};
    switch (code) {
    case 0x001: return {std::move(where), "", reason + " (invalid opcode)", RefusalKind::unsupported};
    case 0x002: return {std::move(where), "", reason + " (invalid field)", RefusalKind::unsupported};
    case 0x006: // internal error
    case 0x007: // abort requested
    case 0x008: // aborted, submission queue deleted
        return {std::move(where), "", reason, RefusalKind::try_later};
    default: return {std::move(where), "", std::move(reason), RefusalKind::unsupported};
    }
}

} // namespace nvmepolicy
