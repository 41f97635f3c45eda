// SPDX-License-Identifier: LGPL-2.1-or-later
#include "attribute_watch.h"

#include <cerrno>
#include <cstring>
#include <set>
#include <sys/inotify.h>

#include "errno_refusal.h"
#include "nvmepolicy/plan.h"

namespace nvmepolicy {

Result<AttributeWatch> AttributeWatch::start()
{
    UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!fd)
        return errno_refusal("inotify", "", errno);
    return AttributeWatch(std::move(fd));
}

void AttributeWatch::watch(const std::string& controller)
{
    const std::string path = "/sys/class/nvme/" + controller + "/" + tolerance_attribute;
    const int watch = ::inotify_add_watch(fd_.get(), path.c_str(), IN_MODIFY);
    if (watch >= 0)
        controllers_[watch] = controller; // Without a file there is nothing to watch, and that is no error.
}

void AttributeWatch::forget(const std::string& controller)
{
    std::erase_if(controllers_, [&](const auto& entry) {
        if (entry.second != controller)
            return false;
        ::inotify_rm_watch(fd_.get(), entry.first);
        return true;
    });
}

std::vector<std::string> AttributeWatch::written(bool& overflow)
{
    std::set<std::string> names;
    alignas(inotify_event) char buffer[4096];
    for (;;) {
        const ssize_t got = ::read(fd_.get(), buffer, sizeof buffer);
        if (got <= 0)
            break;
        for (const char* at = buffer; at < buffer + got;) {
            inotify_event event{};
            std::memcpy(&event, at, sizeof event);
            at += sizeof event + event.len;
            overflow = overflow || (event.mask & IN_Q_OVERFLOW) != 0;
            const auto found = controllers_.find(event.wd);
            if (found == controllers_.end())
                continue;
            if ((event.mask & IN_IGNORED) != 0)
                controllers_.erase(found);
            else
                names.insert(found->second);
        }
    }
    return {names.begin(), names.end()};
}

} // namespace nvmepolicy
