// SPDX-License-Identifier: LGPL-2.1-or-later
// The service on the bus. Nothing is thrown past here, and nothing here waits once the loop turns.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "bus/manager.h"
#include "bus/objects.h"
#include "bus/profile_follower.h"
#include "event_loop.h"

namespace nvmepolicy::bus {

class Door {
public:
    /// The objects are there, and nobody can see them yet. Throws sdbus::Error where the bus is lost meanwhile.
    Door(std::unique_ptr<sdbus::IConnection> connection, EventLoop& loop, const Inside& inside);
    ~Door();
    Door(const Door&) = delete;
    Door& operator=(const Door&) = delete;
    Door(Door&&) = delete;
    Door& operator=(Door&&) = delete;

    /// Takes the name. Refuses where another has it, or the bus does not let us.
    [[nodiscard]] nvmepolicy::Result<void> open();

private:
    void follow();
    void controller_changed(const std::string& name);
    void refresh_soon();
    void refresh();
    void refresh_controller(const std::string& name);
    void refresh_subsystem(const std::string& name);
    [[nodiscard]] std::string describe(const std::string& name) const;
    [[nodiscard]] std::optional<EventLoop::Interest> prepare();
    void process();
    void lost(const std::string& why);

    std::unique_ptr<sdbus::IConnection> connection_;
    Inside in_;
    Signals signals_;
    Manager manager_;
    ProfileFollower follower_;
    std::map<std::string, std::unique_ptr<ControllerObject>> controllers_;
    std::map<std::string, std::unique_ptr<SubsystemObject>> subsystems_;
    std::map<std::string, std::string> subsystem_of_; ///< by controller
    std::set<std::string> changed_;                   ///< controllers
    bool subsystems_changed_ = false;
    bool is_lost_ = false;
    Loop::Source soon_;
    EventLoop::Source attached_;
};

} // namespace nvmepolicy::bus
