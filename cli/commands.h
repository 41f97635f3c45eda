// SPDX-License-Identifier: LGPL-2.1-or-later
// One function a command. Each adds its part of the command line and says, in `chosen`, what to run if it was asked for.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace nvmepolicy {

/// Set by the command that was given; returns the exit code.
using Chosen = std::function<int()>;

void add_status(CLI::App& app, Chosen& chosen);
void add_show(CLI::App& app, Chosen& chosen);
void add_explain(CLI::App& app, Chosen& chosen);
void add_plan(CLI::App& app, Chosen& chosen);
void add_profile(CLI::App& app, Chosen& chosen);
void add_hold(CLI::App& app, Chosen& chosen);
/// `command`: what came after --.
void add_run(CLI::App& app, Chosen& chosen, const std::vector<std::string>& command);
void add_holds(CLI::App& app, Chosen& chosen);
void add_reconcile(CLI::App& app, Chosen& chosen);
void add_reload(CLI::App& app, Chosen& chosen);
void add_breaker(CLI::App& app, Chosen& chosen);
void add_monitor(CLI::App& app, Chosen& chosen);
void add_predict(CLI::App& app, Chosen& chosen);
void add_capture(CLI::App& app, Chosen& chosen);
void add_config(CLI::App& app, Chosen& chosen);

} // namespace nvmepolicy
