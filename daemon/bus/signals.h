// SPDX-License-Identifier: LGPL-2.1-or-later
// What the bus tells of others: who has come and gone, and what they announce. Nothing here waits for an answer once the
// loop turns, and the bus sends only what was asked for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bus/connection.h"

namespace nvmepolicy::bus {

class Signals {
public:
    /// Asks the bus a few things and waits for the answers, so: before the loop turns.
    explicit Signals(sdbus::IConnection& connection);

    /// From now on `on_client_left` is told of every client that leaves the bus; without, of none. Ordered with what is asked
    /// of the bus afterwards.
    void watch_clients(bool wanted);
    void on_client_left(std::function<void(const std::string& unique_name)> handler) { client_left_ = std::move(handler); }

    /// Who has `name`: told now, and whenever that changes; empty: nobody. Never starts anybody.
    void watch_name(const std::string& name, std::function<void(const std::string& owner)> handler);
    void forget_name(const std::string& name);
    /// Empty: nobody, or not known yet.
    [[nodiscard]] std::string owner(const std::string& name) const;

    /// Signals of whoever has `name`, and of nobody else. The name must be watched.
    struct Source {
        std::string name;
        std::string path;
        std::string interface;
        std::string member;
    };
    void subscribe(const Source& source, std::function<void(sdbus::Message&)> handler);
    void unsubscribe(const Source& source);

private:
    struct Watched {
        std::string owner;
        std::function<void(const std::string&)> handler;
    };
    struct Subscription {
        Source source;
        std::function<void(sdbus::Message&)> handler;
    };
    void hear(const std::string& interface, const std::string& member, std::function<void(sdbus::Message&)> handler);
    void tell_bus(const char* method, const std::string& rule);
    void owner_changed(sdbus::Message& message);
    void owner_is(const std::string& name, const std::string& owner);
    void announced(sdbus::Message& message, const std::string& interface, const std::string& member);

    sdbus::IConnection& connection_;
    std::unique_ptr<sdbus::IProxy> bus_;
    std::vector<sdbus::Slot> slots_;
    std::function<void(const std::string&)> client_left_ = [](const std::string&) {};
    std::map<std::string, Watched> names_;
    std::vector<Subscription> subscriptions_;
    bool watching_clients_ = false;
};

} // namespace nvmepolicy::bus
