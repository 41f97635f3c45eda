// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ask.h"
#include "command_line/usage.h"
#include "commands.h"
#include "look_options.h"
#include "nvmepolicy/wording.h"
#include "report/fields.h"
#include "report/json.h"
#include "signals.h"

namespace nvmepolicy {
namespace {

struct MonitorOptions {
    std::string bus = "system";
    bool json = false;
};

/// 2026-01-31T12:00:00.123Z
std::string time_now()
{
    const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
    const auto millisecond = now.time_since_epoch().count() % 1000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)), millisecond);
}

std::string value_word(const Document& value)
{
    if (value.is_null())
        return "none";
    return printable(
        value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Document::error_handler_t::replace), 200);
}

/// The event as a line for people.
std::string event_text(const Document& e)
{
    const std::string kind = text_of(e, "event");
    const std::string who = printable(text_of(e, "name", "nvmepolicyd"));
    if (kind == "property-changed")
        return fmt::format("{}: {} {}", who, text_of(e, "property"), value_word(member(e, "value")));
    if (kind == "value-overridden")
        return fmt::format("{}: somebody else wrote {}: {}, ours was {}", who, printable(text_of(e, "attribute")),
                           printable(text_of(e, "theirs")), printable(text_of(e, "ours")));
    if (kind == "hold-released")
        return fmt::format("hold {} released", number_of(e, "cookie").value_or(0));
    if (kind == "object-added")
        return who + " added";
    if (kind == "object-removed")
        return who + " removed";
    return kind == "service-appeared" ? "nvmepolicyd runs" : "nvmepolicyd has ended";
}

int monitor(const MonitorOptions& options)
{
    const Signals signals{{SIGINT, SIGTERM, SIGHUP}};
    ::signal(SIGPIPE, SIG_IGN);
    bool open = true; // somebody reads what we print
    const auto print = [&](const Document& event) {
        if (!options.json && text_of(event, "property") == "Explanation")
            return; // follows from the others, and is a page long
        std::string line;
        if (options.json) {
            Document timed = {{"time", time_now()}};
            timed.update(event);
            line = timed.dump(-1, ' ', false, Document::error_handler_t::replace);
        } else {
            line = time_now() + " " + event_text(event);
        }
        std::fputs((line + "\n").c_str(), stdout);
        if (std::fflush(stdout) != 0 && errno == EPIPE)
            open = false;
    };
    const auto client = ServiceClient::connect(options.bus);
    if (!client)
        return complain_about(client.error());
    if (const auto watched = (*client)->watch(print); !watched)
        return complain_about(watched.error());
    (*client)->on_presence = [&](bool there) { print({{"event", there ? "service-appeared" : "service-vanished"}}); };
    if (!(*client)->is_running())
        complain("nvmepolicyctl", "nvmepolicyd is not running; waiting for it");
    while (open && std::ferror(stdout) == 0) {
        // A reader that has gone is noticed at once, not at the next line.
        pollfd others[] = {{signals.fd(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
        if (const auto served = (*client)->serve_until(others); !served)
            return complain_about(served.error());
        if (others[0].revents != 0 || (others[1].revents & (POLLERR | POLLHUP)) != 0)
            break;
    }
    if (!open)
        std::clearerr(stdout); // whoever read has had enough: that is no failure
    return exit_done;
}

} // namespace

void add_monitor(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("monitor", "Print changes as they come, until it is interrupted");
    const auto options = std::make_shared<MonitorOptions>();
    add_bus_option(command, options->bus);
    command.add_flag("--json", options->json, "Print one JSON object a line");
    command.callback([options, &chosen] { chosen = [options] { return monitor(*options); }; });
}

} // namespace nvmepolicy
