// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <set>
#include <vector>

#include "command_line/usage.h"
#include "nvmepolicy/wording.h"

namespace nvmepolicy {
namespace {

std::set<std::string> level_words()
{
    std::set<std::string> words;
    for (const auto& [word, level] : log_level_names())
        words.insert(word);
    return words;
}

std::vector<std::string_view> story_names()
{
    std::vector<std::string_view> names;
    for (const Story& story : stories())
        names.push_back(story.name);
    return names;
}

std::string stories_for_help()
{
    std::string text = "Stories:\n";
    for (const Story& story : stories())
        text += fmt::format("  {:<16}{}\n", story.name, story.shows);
    return text;
}

/// What is wrong with the wish for a story; empty: nothing.
std::string wrong_with_story(const Options& options, const std::string& name, bool ends_by_itself)
{
    if (ends_by_itself)
        return "--story is for the service that keeps running, not for --once, --dry-run or --restore";
    if (name.empty())
        return "a story needs its name: --story NAME";
    if (!options.story)
        return fmt::format("there is no story \"{}\"{}", printable(name), suggestion(name, story_names()));
    return options.simulate ? "" : "--story needs --simulate FILE|DIR: it is nothing for real drives";
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
    std::string story;
    auto* story_option =
        app.add_option("--story", story, "Play a story on the simulated controllers, then end")->type_name("NAME");
    app.add_flag("--story-loop", options.story_loop, "Begin the story again after its end");
    app.footer(stories_for_help());
    restore_flag->excludes(dry_run)->excludes(simulate)->excludes(config);
    auto* bus =
        app.add_option("--bus", options.bus, "Be there for others on this bus; the default is system, with --simulate none")
            ->type_name("system|session|ADDRESS|none");
    std::string level = "info";
    app.add_option("--log-level", level, "error, warning, info or debug")
        ->check(CLI::IsMember(level_words()))
        ->type_name("LEVEL");

    if (const auto code = parse_command_line(app, argc, argv))
        return *code;
    options.story = find_story(story);
    if (*story_option || options.story_loop)
        if (const auto wrong = wrong_with_story(options, story, once || restore || options.dry_run); !wrong.empty()) {
            complain("nvmepolicyd", fmt::format("{}; the stories are {}", wrong, fmt::join(story_names(), ", ")));
            return exit_usage;
        }
    options.log_level = log_level_names().at(level);
    if (options.simulate && !*bus)
        options.bus = "none";
    if (once || restore)
        options.task = restore ? Options::Task::restore : Options::Task::once;
    return options;
}

} // namespace nvmepolicy
