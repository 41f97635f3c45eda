// SPDX-License-Identifier: LGPL-2.1-or-later
// Which bus, and everything that differs between the versions of sdbus-c++: 1.2 in Debian 12, 2.x in Debian 13.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <sdbus-c++/sdbus-c++.h>
#include <string>
#include <vector>

#include "nvmepolicy/result.h"

namespace nvmepolicy::bus {

/// `system`, `session`, or an address such as unix:path=/run/…; for the first two the environment may name another one.
[[nodiscard]] Result<std::unique_ptr<sdbus::IConnection>> connect(const std::string& which);
/// Refuses where somebody else has the name, or where the bus does not let us have it.
[[nodiscard]] Result<void> request_name(sdbus::IConnection& connection, const std::string& name);

/// What has to be waited for on behalf of a connection.
struct Poll {
    int fd = -1;
    short events = 0;                         ///< as in poll(2)
    int wake_fd = -1;                         ///< readable when there is something else to do; -1: there is none
    std::optional<std::uint64_t> deadline_us; ///< CLOCK_MONOTONIC; 0: at once
};
/// Throws sdbus::Error once the bus is lost.
[[nodiscard]] Poll poll_of(const sdbus::IConnection& connection);
/// Handles one message, if there is one. Throws sdbus::Error once the bus is lost.
void process(sdbus::IConnection& connection);

/// A proxy whose replies and signals come by way of `connection`, with no thread of its own. Sends nothing.
[[nodiscard]] std::unique_ptr<sdbus::IProxy> make_proxy(sdbus::IConnection& connection, const std::string& service,
                                                        const std::string& path);
/// Waits for the bus to answer: only before the loop turns.
[[nodiscard]] sdbus::Slot add_match(sdbus::IConnection& connection, const std::string& rule,
                                    std::function<void(sdbus::Message&)> handler);
/// Does what sends something. A lost bus is not an error there: it is noticed where the loop waits for it.
template <class Send>
void unless_lost(const Send& send)
{
    try {
        send();
    } catch (const sdbus::Error&) { // NOLINT(bugprone-empty-catch)
    }
}
/// What is written on a message.
struct Envelope {
    std::string sender; ///< the unique name
    std::string path;
    std::string interface;
    std::string member;
};
[[nodiscard]] Envelope envelope_of(const sdbus::Message& message);
[[nodiscard]] sdbus::Error make_error(const char* name, const std::string& text);
/// Who sent the message that is being handled; empty: nobody.
[[nodiscard]] std::string sender_of_current(const sdbus::IObject& object);
void emit_properties_changed(sdbus::IObject& object, const std::string& interface, const std::vector<std::string>& properties);

/// What an asynchronous reply says about what went wrong; false: nothing did.
#if SDBUSCPP_MAJOR >= 2
using ReplyError = std::optional<sdbus::Error>;
#else
using ReplyError = const sdbus::Error*;
#endif

} // namespace nvmepolicy::bus
