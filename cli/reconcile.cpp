// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ask.h"
#include "commands.h"
#include "look_options.h"

namespace nvmepolicy {

void add_reconcile(CLI::App& app, Chosen& chosen)
{
    CLI::App& command =
        *app.add_subcommand("reconcile", "Look at every drive now, and claim back what somebody else has written");
    const auto bus = std::make_shared<std::string>("system");
    add_bus_option(command, *bus);
    command.callback([bus, &chosen] {
        chosen = [bus] { return with_service(*bus, [](ServiceClient& client) { return client.reconcile(); }); };
    });
}

} // namespace nvmepolicy
