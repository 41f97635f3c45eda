// SPDX-License-Identifier: LGPL-2.1-or-later
#include "usage.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "nvmepolicy/wording.h"

namespace nvmepolicy {
namespace {

/// Every word that could have stood where the unknown one does.
std::vector<std::string> known_words(const CLI::App& app)
{
    std::vector<std::string> words;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        words.push_back(command->get_name());
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames())
            words.push_back("--" + name);
    return words;
}

/// The innermost command that was given.
const CLI::App& innermost(const CLI::App& app)
{
    const auto given = app.get_subcommands();
    return given.empty() ? app : innermost(*given.front());
}

int complain_about(const CLI::App& app, const std::string& word)
{
    const CLI::App& command = innermost(app);
    const auto words = known_words(command);
    const std::vector<std::string_view> candidates(words.begin(), words.end());
    fmt::print(stderr, "{}: unknown {} \"{}\"{}; see {} --help\n", app.get_name(), word.starts_with('-') ? "option" : "word",
               printable(word), suggestion(word, candidates), app.get_name());
    return exit_usage;
}

} // namespace

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv)
{
    app.allow_extras();
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
        command->allow_extras();
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& request) {
        return app.exit(request);
    } catch (const CLI::ParseError& error) {
        // An unknown word is the likelier reason for anything that seems to be missing.
        if (const auto extras = app.remaining(true); !extras.empty())
            return complain_about(app, extras.front());
        fmt::print(stderr, "{}: {}; see {} --help\n", app.get_name(), printable(error.what(), 200), app.get_name());
        return exit_usage;
    }
    if (const auto extras = app.remaining(true); !extras.empty())
        return complain_about(app, extras.front());
    return std::nullopt;
}

int guarded_main(const char* program, const std::function<int()>& body)
{
    try {
        return body();
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", program, error.what());
        return exit_failed;
    }
}

} // namespace nvmepolicy
