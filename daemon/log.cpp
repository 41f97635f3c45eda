// SPDX-License-Identifier: LGPL-2.1-or-later
#include "log.h"

#include <cstdlib>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nvmepolicy {
int syslog_priority(LogLevel level)
{
    switch (level) {
    case LogLevel::error: return 3;
    case LogLevel::warning: return 4;
    case LogLevel::info: return 6;
    case LogLevel::debug: break;
    }
    return 7;
}

const std::map<std::string, LogLevel>& log_level_names()
{
    static const std::map<std::string, LogLevel> names = {
        {"error", LogLevel::error}, {"warning", LogLevel::warning}, {"info", LogLevel::info}, {"debug", LogLevel::debug}};
    return names;
}

bool leads_to_journal(int descriptor)
{
    const char* stream = std::getenv("JOURNAL_STREAM");
    struct stat status {};
    return stream && ::fstat(descriptor, &status) == 0 && stream == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

void Log::say(LogLevel level, const std::string& text) const
{
    if (level > most_)
        return;
    static const bool to_journal = leads_to_journal(STDERR_FILENO);
    const std::string line =
        to_journal ? fmt::format("<{}>{}\n", syslog_priority(level), text) : fmt::format("nvmepolicyd: {}\n", text);
    static_cast<void>(::write(STDERR_FILENO, line.data(), line.size())); // Nobody may be listening.
}

} // namespace nvmepolicy
