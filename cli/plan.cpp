// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "look_options.h"
#include "report/json.h"
#include "report/text.h"

namespace nvmepolicy {

void add_plan(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("plan", "What a reconcile would change now; changes nothing");
    const auto options = add_look_options(command, JsonOption::offered);
    command.callback([options, &chosen] {
        chosen = [options] {
            const auto look = look_around(*options);
            if (!look)
                return exit_failed;
            fmt::print("{}", options->json ? to_text(plan_json(look->round, look->simulated))
                                           : plan_text(plan_json(look->round, look->simulated)));
            return exit_done;
        };
    });
}

} // namespace nvmepolicy
