// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "look.h"

namespace nvmepolicy {

enum class JsonOption { offered, none };
enum class BusOption { offered, none };

/// Adds --config, --simulate, --bus and, where offered, --json to a command. The result lives as long as somebody keeps it.
[[nodiscard]] std::shared_ptr<LookOptions> add_look_options(CLI::App& command, JsonOption json,
                                                            BusOption bus = BusOption::offered);

/// Adds --bus to a command. The text lives as long as somebody keeps it.
void add_bus_option(CLI::App& command, std::string& bus);

/// Adds the controller's name as the argument of a command.
[[nodiscard]] std::shared_ptr<std::string> add_controller_argument(CLI::App& command);

} // namespace nvmepolicy
