// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "documents.h"
#include "look_options.h"
#include "report/fields.h"
#include "report/text.h"

namespace nvmepolicy {

void add_explain(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("explain", "Why each value of a controller is what it is, with the numbers used");
    const auto options = add_look_options(command, JsonOption::none);
    const auto name = add_controller_argument(command);
    command.callback([options, name, &chosen] {
        chosen = [options, name] {
            const auto [document, code] = show_document(*options, *name);
            if (!document)
                return code;
            if (!was_identified(*document)) {
                complain("nvmepolicyctl", text_of(*document, "last_error", "it could not be read"));
                return exit_failed;
            }
            fmt::print("{}", explain_text(*document));
            return exit_done;
        };
    });
}

} // namespace nvmepolicy
