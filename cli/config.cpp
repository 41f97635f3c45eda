// SPDX-License-Identifier: LGPL-2.1-or-later
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "host/installation.h"
#include "host/policy_store.h"
#include "look.h"

namespace nvmepolicy {
namespace {

PolicyReading load(const std::optional<std::string>& file)
{
    return load_policy({.vendor_directory = this_installation().vendor_directory}, file);
}

int check(const std::optional<std::string>& file)
{
    const PolicyReading reading = load(file);
    if (!report_policy_errors(reading)) {
        complain("nvmepolicyctl", fmt::format("{} error{}", reading.errors.size(), reading.errors.size() == 1 ? "" : "s"));
        return exit_failed;
    }
    fmt::print("{}: no errors\n", file ? *file : "configuration");
    return exit_done;
}

int show(const std::optional<std::string>& file)
{
    const PolicyReading reading = load(file);
    if (!report_policy_errors(reading))
        return exit_failed;
    fmt::print("{}", show_policy(reading.policy));
    return exit_done;
}

} // namespace

void add_config(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("config", "Check the configuration, or show the merged result");
    command.require_subcommand(1);
    const auto file = std::make_shared<std::optional<std::string>>();

    CLI::App& check_command = *command.add_subcommand("check", "Report every error, with file, line, column and key");
    check_command.add_option("file", *file, "File to check, with FILE.d/*.toml, instead of the installed configuration")
        ->type_name("FILE");
    check_command.callback([file, &chosen] { chosen = [file] { return check(*file); }; });

    CLI::App& show_command = *command.add_subcommand("show", "Print every value with where it was set");
    show_command.add_option("--config", *file, "Read FILE and FILE.d/*.toml instead of the installed configuration")
        ->type_name("FILE");
    show_command.callback([file, &chosen] { chosen = [file] { return show(*file); }; });
}

} // namespace nvmepolicy
