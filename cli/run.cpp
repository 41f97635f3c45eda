// SPDX-License-Identifier: LGPL-2.1-or-later
#include <csignal>
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "foreground.h"
#include "hold_options.h"

namespace nvmepolicy {
namespace {

/// Says why and that nothing was started.
int not_started(const Refusal& refusal)
{
    complain("nvmepolicyctl", refusal.text() + "; the command was not started");
    return exit_run_failed;
}

int run(const HoldOptions& options, const std::vector<std::string>& command)
{
    if (command.empty())
        return not_started({"", "", "say which command to run, after --"});
    const auto request = hold_request(options, fmt::format("{}", fmt::join(command, " ")));
    if (!request)
        return not_started(request.error());
    const auto client = ServiceClient::connect(options.bus);
    if (!client)
        return not_started(client.error());
    if (const auto held = (*client)->hold(*request); !held)
        return not_started(held.error());
    keep_over_restarts(**client);
    (*client)->on_hold_ended = [](const HoldRequest& part) {
        complain("nvmepolicyctl", show_ended(part) + "; the command goes on without it");
    };
    return run_in_foreground(command, **client);
}

} // namespace

void add_run(CLI::App& app, Chosen& chosen, const std::vector<std::string>& arguments)
{
    CLI::App& command = *app.add_subcommand("run", "Hold a profile or a latency for as long as a command runs");
    command.footer("The command and its arguments come after --, as in: nvmepolicyctl run --max-latency 5ms -- COMMAND…");
    const auto options = add_hold_options(command);
    command.callback([options, arguments, &chosen] { chosen = [options, arguments] { return run(*options, arguments); }; });
}

} // namespace nvmepolicy
