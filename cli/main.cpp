// SPDX-License-Identifier: LGPL-2.1-or-later
// nvmepolicyctl: one file a command.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"

int main(int argc, char** argv)
{
    using namespace nvmepolicy;
    return guarded_main("nvmepolicyctl", [&] {
        CLI::App app("Sees and explains what nvmepolicyd decides for each NVMe drive.", "nvmepolicyctl");
        app.set_version_flag("--version", NVMEPOLICY_VERSION);
        app.require_subcommand(0, 1); // a second command is a mistake, not a replacement
        Chosen chosen;
        add_status(app, chosen);
        add_show(app, chosen);
        add_explain(app, chosen);
        add_plan(app, chosen);
        add_predict(app, chosen);
        add_capture(app, chosen);
        add_config(app, chosen);
        if (const auto code = parse_command_line(app, argc, argv))
            return *code;
        if (!chosen) {
            complain("nvmepolicyctl", "say what to do; see nvmepolicyctl --help");
            return exit_usage;
        }
        return chosen();
    });
}
