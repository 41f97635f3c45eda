// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "look_options.h"
#include "nvmepolicy/drive_file.h"

namespace nvmepolicy {

void add_capture(CLI::App& app, Chosen& chosen)
{
    CLI::App& command =
        *app.add_subcommand("capture", "A drive file for reports, predict and --simulate; holds no serial number");
    const auto options = add_look_options(command, JsonOption::none, BusOption::none);
    const auto name = add_controller_argument(command);
    command.callback([options, name, &chosen] {
        chosen = [options, name] {
            const auto look = look_around(*options, *name);
            if (!look)
                return exit_failed;
            const Outcome& outcome = look->round.outcomes.front();
            const auto drive =
                outcome.controller ? capture(*outcome.controller) : Result<DriveFile>(outcome.error.value_or(Refusal{}));
            if (!drive) {
                complain("nvmepolicyctl", drive.error().text());
                return exit_failed;
            }
            fmt::print("{}", format_drive_file(*drive, measured_table(*outcome.controller, outcome.machine.apst)));
            return exit_done;
        };
    });
}

} // namespace nvmepolicy
