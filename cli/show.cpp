// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "look_options.h"
#include "report/json.h"
#include "report/text.h"

namespace nvmepolicy {

void add_show(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("show", "Everything about one controller");
    const auto options = add_look_options(command, JsonOption::offered);
    const auto name = add_controller_argument(command);
    command.callback([options, name, &chosen] {
        chosen = [options, name] {
            const auto look = look_around(*options, *name);
            if (!look)
                return exit_failed;
            const Outcome& outcome = look->round.outcomes.front();
            fmt::print("{}", options->json ? to_text(show_json(look->round, outcome, look->simulated))
                                           : show_text(show_json(look->round, outcome, look->simulated), style_of_stdout()));
            return outcome.controller ? exit_done : exit_failed;
        };
    });
}

} // namespace nvmepolicy
