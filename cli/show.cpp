// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "documents.h"
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
            const auto [document, code] = show_document(*options, *name);
            if (!document)
                return code;
            fmt::print("{}", options->json ? to_text(*document) : show_text(*document, style_of_stdout()));
            return was_identified(*document) ? exit_done : exit_failed;
        };
    });
}

} // namespace nvmepolicy
