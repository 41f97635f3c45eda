// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command_line/usage.h"

namespace nvmepolicy {

std::variant<Options, int> parse_options(int argc, char** argv)
{
    Options options;
    bool once = false;
    bool restore = false;
    CLI::App app("Gives every NVMe drive the latency tolerance that its power states and the profile call for, and proves it.",
                 "nvmepolicyd");
    app.set_version_flag("--version", NVMEPOLICY_VERSION);
    auto* once_flag = app.add_flag("--once", once, "Look, decide, apply, verify, print, end");
    auto* restore_flag = app.add_flag("--restore", restore, "Put back what every drive had before our first write, and end");
    once_flag->excludes(restore_flag);
    app.add_option("--config", options.config, "Read FILE and FILE.d/*.toml instead of the installed configuration")
        ->type_name("FILE");
    auto* dry_run = app.add_flag("--dry-run", options.dry_run, "Say what would be changed, change nothing");
    auto* simulate = app.add_option("--simulate", options.simulate,
                                    "Use simulated controllers, described by a drive file or a directory of them")
                         ->type_name("FILE|DIR");
    restore_flag->excludes(dry_run)->excludes(simulate);
    app.add_option("--log-level", options.log_level, "error, warning, info or debug")
        ->transform(CLI::CheckedTransformer(log_level_names()))
        ->type_name("LEVEL")
        ->default_str("info");

    if (const auto code = parse_command_line(app, argc, argv))
        return *code;
    if (!once && !restore) {
        fmt::print(stderr, "nvmepolicyd: say what to do: --once or --restore. This version does not stay running yet\n");
        return exit_usage;
    }
    options.task = restore ? Options::Task::restore : Options::Task::once;
    return options;
}

} // namespace nvmepolicy
