// SPDX-License-Identifier: LGPL-2.1-or-later
// The service as nvmepolicyctl sees it on D-Bus; no other file here knows the bus. Calls wait for their answer: some
// seconds where they only read, minutes where polkit may have to ask a person. Nothing is thrown, and nothing starts the
// service.
//
// Kinds of refusals: absent: it does not run, or there is no bus; denied: not authorized; gone: no such controller;
// timed_out: no answer; failed: everything else, with what the service said.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

#include "nvmepolicy/result.h"
#include "nvmepolicy/units.h"

namespace sdbus {
class Message;
}

namespace nvmepolicy {

/// What a hold asks for; at least one of the two.
struct HoldRequest {
    std::optional<std::string> profile;
    std::optional<Microseconds> max_latency;
    std::vector<std::string> controllers; ///< for which the latency holds; empty: all
    std::string reason;
};

class ServiceClient {
public:
    /// `bus`: system, session, or an address. Refuses where there is no such bus; whether the service is on it, is_running
    /// says.
    [[nodiscard]] static Result<std::unique_ptr<ServiceClient>> connect(const std::string& bus);
    ~ServiceClient(); ///< Holds end here.
    ServiceClient(const ServiceClient&) = delete;
    ServiceClient& operator=(const ServiceClient&) = delete;
    ServiceClient(ServiceClient&&) = delete;
    ServiceClient& operator=(ServiceClient&&) = delete;

    [[nodiscard]] bool is_running() const;

    /// The text of the status document.
    [[nodiscard]] Result<std::string> describe();
    /// The text of the show document of a controller.
    [[nodiscard]] Result<std::string> describe(const std::string& controller);
    /// The document of `plan`.
    [[nodiscard]] Result<nlohmann::ordered_json> plan();
    /// The properties of the manager by name, as JSON; null where the bus has the number for "unknown" or "no constraint".
    [[nodiscard]] Result<nlohmann::ordered_json> properties();

    [[nodiscard]] Result<void> set_profile(const std::string& profile);
    [[nodiscard]] Result<void> reconcile();
    [[nodiscard]] Result<void> reload();
    [[nodiscard]] Result<void> clear_breaker(const std::string& controller);

    /// Takes all that is asked for, or nothing. It lasts as long as this object, until the service ends, or until somebody else
    /// ends it. Once.
    [[nodiscard]] Result<void> hold(const HoldRequest& request);
    /// Takes again, without waiting, what hold() took and nobody else has ended; `done` is called, once, with the first refusal
    /// or none, and not at all where nothing is left. From serve_until.
    void hold_again(std::function<void(const std::optional<Refusal>&)> done);
    /// Something is held, or will be again when the service is back.
    [[nodiscard]] bool holds() const;
    /// Called from serve_until when somebody else has ended a part of what is held: a profile, or the latency of one drive or
    /// of all.
    std::function<void(const HoldRequest& part)> on_hold_ended;

    /// Called from serve_until: true when the service has come (back), false when it has left.
    std::function<void(bool there)> on_presence;

    /// From now on `event` is called, from serve_until, with each change, in the form that `monitor --json` prints (without the
    /// time).
    [[nodiscard]] Result<void> watch(std::function<void(const nlohmann::ordered_json&)> event);

    /// Handles what comes in on the bus until one of `others` has something to say (revents), or until stop_serving(). Refuses
    /// once the bus is lost.
    [[nodiscard]] Result<void> serve_until(std::span<pollfd> others);
    /// For what is called from serve_until: it returns after that.
    void stop_serving();

private:
    struct Connection;
    void hold_released(sdbus::Message& message);
    explicit ServiceClient(std::unique_ptr<Connection> connection);
    std::unique_ptr<Connection> connection_;
};

} // namespace nvmepolicy
