// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "log.h"
#include "simulation/stories.h"

namespace nvmepolicy {

/// What nvmepolicyd was asked to do.
struct Options {
    enum class Task { serve, once, restore };
    Task task = Task::serve;
    std::optional<std::string> config;
    std::optional<std::string> simulate;
    const Story* story = nullptr; ///< what is to befall the simulated controllers; none: nothing
    bool story_loop = false;      ///< the story begins again after its end
    bool dry_run = false;
    std::string bus = "system"; ///< or session, an address, none
    LogLevel log_level = LogLevel::info;
};

/// The options, or the exit code once help, version or a complaint was printed.
[[nodiscard]] std::variant<Options, int> parse_options(int argc, char** argv);

} // namespace nvmepolicy
