// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options.h"

#include <CLI/CLI.hpp>
#include <set>

#include "command_line/usage.h"

namespace nvmepolicy {
namespace {

std::set<std::string> level_words()
{
    std::set<std::string> words;
    for (const auto& [word, level] : log_level_names())
        words.insert(word);
    return words;
}

} // namespace

std::variant<Options, int> parse_options(int argc, char** argv)
{
    Options options;
    bool once = false;
    bool restore = false;
    CLI::App app(
        "Gives every NVMe drive the latency tolerance that its power states and the profile call for, and proves it. Keeps "
        "running unless told otherwise.",
        "nvmepolicyd");
    app.set_version_flag("--version", NVMEPOLICY_VERSION);
    auto* once_flag = app.add_flag("--once", once, "Look, decide, apply, verify, print, end");
    auto* restore_flag = app.add_flag("--restore", restore, "Put back what every drive had before our first write, and end");
    once_flag->excludes(restore_flag);
    auto* config =
        app.add_option("--config", options.config, "Read FILE and FILE.d/*.toml instead of the installed configuration")
            ->type_name("FILE");
    auto* dry_run = app.add_flag("--dry-run", options.dry_run, "Say what would be changed, change nothing");
    auto* simulate = app.add_option("--simulate", options.simulate,
                                    "Use simulated controllers, described by a drive file or a directory of them")
                         ->type_name("FILE|DIR");
    restore_flag->excludes(dry_run)->excludes(simulate)->excludes(config);
    std::string level = "info";
    app.add_option("--log-level", level, "error, warning, info or debug")
        ->check(CLI::IsMember(level_words()))
        ->type_name("LEVEL");

    if (const auto code = parse_command_line(app, argc, argv))
        return *code;
    options.log_level = log_level_names().at(level);
    if (once || restore)
        options.task = restore ? Options::Task::restore : Options::Task::once;
    return options;
}

} // namespace nvmepolicy
