// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "ask.h"
#include "commands.h"
#include "look_options.h"
#include "nvmepolicy/units.h"
#include "nvmepolicy/wording.h"
#include "report/fields.h"
#include "report/json.h"
#include "report/table.h"

namespace nvmepolicy {
namespace {

Document holds_json(const Document& manager)
{
    Document document = {{"schema", 1}, {"holds", Document::array()}};
    for (const Document& hold : member(manager, "ActiveHolds"))
        document["holds"].push_back({{"cookie", member(hold, "Cookie")},
                                     {"profile", member(hold, "Profile")},
                                     {"max_wake_latency_us", member(hold, "MaxWakeLatencyMicroseconds")},
                                     {"controller", member(hold, "Controller")},
                                     {"reason", member(hold, "Reason")},
                                     {"application_id", member(hold, "ApplicationId")},
                                     {"sender", member(hold, "Sender")}});
    return document;
}

std::string holds_text(const Document& document)
{
    Table table({"COOKIE", "HOLDS", "DRIVES", "BY", "SENDER", "REASON"});
    for (const Document& hold : document["holds"]) {
        const auto latency = number_of(hold, "max_wake_latency_us");
        table.add({fmt::format("{}", number_of(hold, "cookie").value_or(0)),
                   latency ? "at most " + show(Microseconds{*latency}) : "profile " + printable(text_of(hold, "profile", "-")),
                   printable(text_of(hold, "controller", "all")), printable(text_of(hold, "application_id", "-")),
                   printable(text_of(hold, "sender", "-")), printable(text_of(hold, "reason"))});
    }
    return document["holds"].empty() ? "no holds\n" : table.text();
}

} // namespace

void add_holds(CLI::App& app, Chosen& chosen)
{
    struct Options {
        std::string bus = "system";
        bool json = false;
    };
    CLI::App& command = *app.add_subcommand("holds", "Who holds what");
    const auto options = std::make_shared<Options>();
    add_bus_option(command, options->bus);
    command.add_flag("--json", options->json, "Print one JSON document");
    command.callback([options, &chosen] {
        chosen = [options] {
            return with_service(options->bus, [&](ServiceClient& client) -> Result<void> {
                const auto manager = client.properties();
                if (!manager)
                    return manager.error();
                const Document document = holds_json(*manager);
                fmt::print("{}", options->json ? to_text(document) : holds_text(document));
                return {};
            });
        };
    });
}

} // namespace nvmepolicy
