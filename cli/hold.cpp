// SPDX-License-Identifier: LGPL-2.1-or-later
#include <csignal>
#include <fmt/format.h>
#include <optional>

#include "ask.h"
#include "command_line/usage.h"
#include "commands.h"
#include "hold_options.h"
#include "signals.h"

namespace nvmepolicy {
namespace {

int hold(const HoldOptions& options)
{
    const auto request = hold_request(options, "nvmepolicyctl hold");
    if (!request) {
        const int code = complain_about(request.error());
        return request.error().kind == RefusalKind::invalid ? exit_usage : code;
    }
    return with_service(options.bus, [&](ServiceClient& client) -> Result<void> {
        if (const auto held = client.hold(*request); !held)
            return held.error();
        const Signals signals{{SIGINT, SIGTERM, SIGHUP}};
        keep_over_restarts(client);
        std::optional<std::string> ended;
        client.on_hold_ended = [&](const HoldRequest& part) {
            ended = show_ended(part);
            client.stop_serving();
        };
        fmt::print("holding {}; Ctrl-C ends it\n", show(*request));
        std::fflush(stdout);
        pollfd others[] = {{signals.fd(), POLLIN, 0}};
        auto served = client.serve_until(others);
        if (ended)
            return Refusal{"", "", *ended};
        return served;
    });
}

} // namespace

void add_hold(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("hold", "Hold a profile or a latency until it is interrupted");
    const auto options = add_hold_options(command);
    command.callback([options, &chosen] { chosen = [options] { return hold(*options); }; });
}

} // namespace nvmepolicy
