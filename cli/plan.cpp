// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "documents.h"
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
            const auto [document, code] = plan_document(*options);
            if (!document)
                return code;
            fmt::print("{}", options->json ? to_text(*document) : plan_text(*document));
            return exit_done;
        };
    });
}

} // namespace nvmepolicy
