// SPDX-License-Identifier: LGPL-2.1-or-later
#include "look_options.h"

namespace nvmepolicy {

void add_bus_option(CLI::App& command, std::string& bus)
{
    command.add_option("--bus", bus, "Where the service is: system, session, or an address such as unix:path=/run/…")
        ->type_name("system|session|ADDRESS")
        ->capture_default_str();
}

std::shared_ptr<LookOptions> add_look_options(CLI::App& command, JsonOption json, BusOption bus)
{
    auto options = std::make_shared<LookOptions>();
    command.add_option("--config", options->config, "Read FILE and FILE.d/*.toml instead of the installed configuration")
        ->type_name("FILE");
    command
        .add_option("--simulate", options->simulate,
                    "Look at simulated controllers, described by a drive file or a directory of them")
        ->type_name("FILE|DIR");
    if (bus == BusOption::offered)
        add_bus_option(command, options->bus);
    if (json == JsonOption::offered)
        command.add_flag("--json", options->json, "Print one JSON document");
    return options;
}

std::shared_ptr<std::string> add_controller_argument(CLI::App& command)
{
    auto name = std::make_shared<std::string>();
    command.add_option("controller", *name, "Name of the controller, such as nvme0")->required()->type_name("CONTROLLER");
    return name;
}

} // namespace nvmepolicy
