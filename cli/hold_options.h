// SPDX-License-Identifier: LGPL-2.1-or-later
// What `hold` and `run` have in common: the options, and a hold that comes back with the service.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "service_client.h"

namespace nvmepolicy {

struct HoldOptions {
    std::string bus = "system";
    std::optional<std::string> profile;
    std::optional<std::string> max_latency;
    std::optional<std::string> path; ///< --for
    std::optional<std::string> reason;
};

[[nodiscard]] std::shared_ptr<HoldOptions> add_hold_options(CLI::App& command);

/// What the options ask for. invalid: they contradict each other; other kinds: the path leads nowhere.
[[nodiscard]] Result<HoldRequest> hold_request(const HoldOptions& options, const std::string& default_reason);

/// `profile performance and a wake latency of at most 5 ms on nvme0, nvme1`
[[nodiscard]] std::string show(const HoldRequest& request);

/// Why a part of it is not held any more: somebody released it, or the configuration has lost its profile.
[[nodiscard]] std::string show_ended(const HoldRequest& part);

/// From now on what is held is taken again whenever the service comes back. Says so once, so that a service which restarts all
/// the time does not fill the screen. Both live as long as the client serves.
void keep_over_restarts(ServiceClient& client);

} // namespace nvmepolicy
