// SPDX-License-Identifier: LGPL-2.1-or-later
#include "log.h"

#include <cstdlib>
#include <fmt/format.h>

namespace nvmepolicy {
namespace {

/// syslog(3) priority, as sd-daemon(3) wants it at the start of a line.
int priority(LogLevel level)
{
    switch (level) {
    case LogLevel::error: return 3;
    case LogLevel::warning: return 4;
    case LogLevel::info: return 6;
    case LogLevel::debug: break;
    }
    return 7;
}

} // namespace

const std::map<std::string, LogLevel>& log_level_names()
{
    static const std::map<std::string, LogLevel> names = {
        {"error", LogLevel::error}, {"warning", LogLevel::warning}, {"info", LogLevel::info}, {"debug", LogLevel::debug}};
    return names;
}

void Log::say(LogLevel level, const std::string& text) const
{
    if (level > most_)
        return;
    static const bool to_journal = std::getenv("JOURNAL_STREAM") != nullptr;
    if (to_journal)
        fmt::print(stderr, "<{}>{}\n", priority(level), text);
    else
        fmt::print(stderr, "nvmepolicyd: {}\n", text);
}

} // namespace nvmepolicy
