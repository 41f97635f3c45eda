// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ask.h"
#include "commands.h"
#include "look_options.h"

namespace nvmepolicy {

void add_reload(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("reload", "Read the configuration again");
    const auto bus = std::make_shared<std::string>("system");
    add_bus_option(command, *bus);
    command.callback([bus, &chosen] {
        chosen = [bus] { return with_service(*bus, [](ServiceClient& client) { return client.reload(); }); };
    });
}

} // namespace nvmepolicy
