// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ask.h"
#include "commands.h"
#include "look_options.h"

namespace nvmepolicy {

void add_breaker(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("breaker", "The drop-out breaker, which keeps a drive from sleeping deep");
    command.require_subcommand(1);
    CLI::App& clear = *command.add_subcommand("clear", "Let a drive sleep as deep as the profile allows again");
    const auto name = add_controller_argument(clear);
    const auto bus = std::make_shared<std::string>("system");
    add_bus_option(clear, *bus);
    clear.callback([name, bus, &chosen] {
        chosen = [name, bus] { return with_service(*bus, [&](ServiceClient& client) { return client.clear_breaker(*name); }); };
    });
}

} // namespace nvmepolicy
