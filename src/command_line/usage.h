// SPDX-License-Identifier: LGPL-2.1-or-later
// What the programs' command lines have in common: exit codes, complaints that help, and the last catch.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace nvmepolicy {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;          ///< nvmepolicyd: also a wrong configuration
inline constexpr int exit_no_bus = 3;         ///< nvmepolicyd: D-Bus is not there, does not take us, or was lost
inline constexpr int exit_not_running = 3;    ///< nvmepolicyctl: there is no service to ask
inline constexpr int exit_not_authorized = 4; ///< nvmepolicyctl: the service says that this user may not

/// Parses; prints help, version or what is wrong, with the word that was probably meant. Returns the exit code then.
[[nodiscard]] std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

/// One line on standard error: `program: text`. Never throws and never fails: nobody may be listening.
void complain(const std::string& program, const std::string& text);

/// Runs `body`, with standard descriptors that are open, so that no file of ours takes their place. What is thrown past
/// everything else is printed and ends in exit_failed, and so does output that could not be written.
[[nodiscard]] int guarded_main(const char* program, const std::function<int()>& body);

} // namespace nvmepolicy
