// SPDX-License-Identifier: LGPL-2.1-or-later
// nvmepolicyctl: one file a command.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/usage.h"
#include "commands.h"
#include "foreground.h"

namespace {

/// `run` has a command of its own after --, which is not for us to read. Takes it off the end.
std::vector<std::string> command_to_run(int& argc, char** argv)
{
    if (argc < 2 || std::string_view(argv[1]) != "run")
        return {};
    char** const end = argv + argc;
    char** const separator = std::find(argv, end, std::string_view("--"));
    argc = static_cast<int>(separator - argv);
    return separator == end ? std::vector<std::string>{} : std::vector<std::string>(separator + 1, end);
}

} // namespace

int main(int argc, char** argv)
{
    using namespace nvmepolicy;
    const bool runs = argc > 1 && std::string_view(argv[1]) == "run";
    const std::vector<std::string> command = command_to_run(argc, argv);
    return guarded_main("nvmepolicyctl", [&] {
        CLI::App app("Sees and explains what nvmepolicyd decides for each NVMe drive.", "nvmepolicyctl");
        app.set_version_flag("--version", NVMEPOLICY_VERSION);
        app.require_subcommand(0, 1); // a second command is a mistake, not a replacement
        Chosen chosen;
        add_status(app, chosen);
        add_show(app, chosen);
        add_explain(app, chosen);
        add_plan(app, chosen);
        add_profile(app, chosen);
        add_hold(app, chosen);
        add_run(app, chosen, command);
        add_holds(app, chosen);
        add_reconcile(app, chosen);
        add_reload(app, chosen);
        add_breaker(app, chosen);
        add_monitor(app, chosen);
        add_predict(app, chosen);
        add_capture(app, chosen);
        add_config(app, chosen);
        if (const auto code = parse_command_line(app, argc, argv))
            return runs && *code == exit_usage ? exit_run_failed : *code; // 2 might be the command's
        if (!chosen) {
            complain("nvmepolicyctl", "say what to do; see nvmepolicyctl --help");
            return exit_usage;
        }
        return chosen();
    });
}
