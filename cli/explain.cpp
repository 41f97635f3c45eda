// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "look_options.h"
#include "report/json.h"
#include "report/text.h"

namespace nvmepolicy {

void add_explain(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("explain", "Why each value of a controller is what it is, with the numbers used");
    const auto options = add_look_options(command, JsonOption::none);
    const auto name = add_controller_argument(command);
    command.callback([options, name, &chosen] {
        chosen = [options, name] {
            const auto look = look_around(*options, *name);
            if (!look)
                return exit_failed;
            const Outcome& outcome = look->round.outcomes.front();
            if (!outcome.controller) {
                complain("nvmepolicyctl", outcome.error ? outcome.error->text() : "it could not be read");
                return exit_failed;
            }
            fmt::print("{}", explain_text(show_json(look->round, outcome, look->simulated)));
            return exit_done;
        };
    });
}

} // namespace nvmepolicy
