// SPDX-License-Identifier: LGPL-2.1-or-later
// nvmepolicyd: read the command line, do the one thing that it asks for.
#include "command_line/usage.h"
#include "once.h"
#include "service.h"

int main(int argc, char** argv)
{
    using namespace nvmepolicy;
    return guarded_main("nvmepolicyd", [&] {
        const auto parsed = parse_options(argc, argv);
        if (const int* code = std::get_if<int>(&parsed))
            return *code;
        const auto& options = std::get<Options>(parsed);
        const Log log(options.log_level);
        switch (options.task) {
        case Options::Task::serve: return run_service(options, log);
        case Options::Task::once: return run_once(options, log);
        case Options::Task::restore: return run_restore(log);
        }
        return exit_failed;
    });
}
