// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "documents.h"
#include "look_options.h"
#include "report/json.h"
#include "report/text.h"

namespace nvmepolicy {

void add_status(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("status", "One line a controller: what it was asked to do, and whether it does");
    const auto options = add_look_options(command, JsonOption::offered);

    command.callback([options, &chosen] {
        chosen = [options] {
            const auto [document, code] = status_document(*options);
            if (!document)
                return code;
            fmt::print("{}", options->json ? to_text(*document) : status_text(*document, style_of_stdout()));
            return exit_done;
        };
    });
}

} // namespace nvmepolicy
