// SPDX-License-Identifier: LGPL-2.1-or-later
#include "usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

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

/// Whether some command knows that word as an option: then it stands in the wrong place.
bool belongs_to_a_command(const CLI::App& app, const std::string& word)
{
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        const auto words = known_words(*command);
        if (std::ranges::find(words, word) != words.end() || belongs_to_a_command(*command, word))
            return true;
    }
    return false;
}

int complain_about(const CLI::App& app, const std::string& word)
{
    const CLI::App& command = innermost(app);
    const auto words = known_words(command);
    const std::vector<std::string_view> candidates(words.begin(), words.end());
    const bool option = word.starts_with('-');
    if (option && belongs_to_a_command(app, word))
        complain(app.get_name(), fmt::format("the option \"{}\" belongs after a command that has it; see {} --help",
                                             printable(word), app.get_name()));
    else
        complain(app.get_name(), fmt::format("unknown {} \"{}\"{}; see {} --help", option ? "option" : "word", printable(word),
                                             suggestion(word, candidates), app.get_name()));
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
        complain(app.get_name(), fmt::format("{}; see {} --help", printable(error.what(), 200), app.get_name()));
        return exit_usage;
    }
    if (const auto extras = app.remaining(true); !extras.empty())
        return complain_about(app, extras.front());
    return std::nullopt;
}

void complain(const std::string& program, const std::string& text)
{
    const std::string line = program + ": " + text + "\n";
    static_cast<void>(::write(STDERR_FILENO, line.data(), line.size()));
}

int guarded_main(const char* program, const std::function<int()>& body)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (::fcntl(fd, F_GETFD) < 0)
            static_cast<void>(::open("/dev/null", O_RDWR)); // takes the lowest free number, which is this one
    try {
        const int code = body();
        if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
            return code;
        complain(program, fmt::format("the output could not be written: {}", std::strerror(errno)));
    } catch (const std::exception& error) {
        complain(program, error.what());
    }
    return exit_failed;
}

} // namespace nvmepolicy
