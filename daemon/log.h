// SPDX-License-Identifier: LGPL-2.1-or-later
// The daemon's own words, on standard error.
#pragma once

#include <map>
#include <string>

namespace nvmepolicy {

enum class LogLevel { error, warning, info, debug };

[[nodiscard]] const std::map<std::string, LogLevel>& log_level_names();

/// The priority of syslog(3) and sd-daemon(3).
[[nodiscard]] int syslog_priority(LogLevel level);

/// Whether `descriptor` is the stream that $JOURNAL_STREAM names: the variable is passed on to children whose output has been
/// redirected elsewhere. Source: systemd.exec(5).
[[nodiscard]] bool leads_to_journal(int descriptor);

class Log {
public:
    explicit Log(LogLevel most) : most_(most) {}
    /// One line: to the journal with the priority that it knows, else with the program's name.
    void say(LogLevel level, const std::string& text) const;

private:
    LogLevel most_;
};

} // namespace nvmepolicy
