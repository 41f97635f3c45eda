// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/door.h"

#include <algorithm>

#include "report/json.h"

namespace nvmepolicy::bus {
namespace {

const Signals::Source sleep_is_over{"org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
                                    "PrepareForSleep"};

} // namespace

Door::Door(std::unique_ptr<sdbus::IConnection> connection, EventLoop& loop, const Inside& inside)
    : connection_(std::move(connection))
    , in_(inside)
    , signals_(*connection_)
    , manager_(*connection_, signals_, inside)
    , follower_(*connection_, signals_, loop, [this](const std::optional<std::string>& profile) { in_.wishes.follow(profile); })
{
    in_.state.tell({[this](const Outcome& outcome) {
                        if (outcome.foreign.news)
                            manager_.overridden(outcome);
                    },
                    [this](const std::string& name) { controller_changed(name); },
                    [this] {
                        subsystems_changed_ = true;
                        refresh_soon();
                    },
                    [this] { refresh_soon(); }});
    in_.wishes.tell({[this] {
                         follow();
                         refresh_soon();
                     },
                     [this](Cookie cookie) { manager_.hold_released(cookie); }});
    signals_.subscribe(sleep_is_over, [this](sdbus::Message& message) {
        bool begins = true;
        message >> begins;
        if (!begins)
            in_.resumed();
    });
    signals_.watch_name(sleep_is_over.name, [](const std::string&) {});
    follow();
    attached_ = loop.on_interest([this] { return prepare(); }, [this] { process(); });
}

Door::~Door() = default;

nvmepolicy::Result<void> Door::open()
{
    return request_name(*connection_, service_name);
}

void Door::follow()
{
    follower_.follow(in_.wishes.policy().daemon.follow.value == Follow::power_profiles_daemon);
}

void Door::controller_changed(const std::string& name)
{
    changed_.insert(name);
    refresh_soon();
}

void Door::refresh_soon()
{
    if (!soon_)
        soon_ = in_.loop.soon([this] {
            soon_.reset();
            refresh();
        });
}

void Door::refresh()
{
    manager_.refresh();
    std::set<std::string> subsystems;
    if (std::exchange(subsystems_changed_, false)) {
        for (const auto& [name, object] : subsystems_)
            subsystems.insert(name);
        subsystem_of_.clear();
        for (const Subsystem& s : in_.state.subsystems()) {
            subsystems.insert(s.name);
            for (const std::string& controller : s.controllers)
                subsystem_of_[controller] = s.name;
        }
    }
    for (const std::string& name : std::exchange(changed_, {})) {
        refresh_controller(name);
        if (const auto found = subsystem_of_.find(name); found != subsystem_of_.end())
            subsystems.insert(found->second);
    }
    for (const std::string& name : subsystems)
        refresh_subsystem(name);
}

void Door::refresh_controller(const std::string& name)
{
    const auto outcome = in_.state.outcomes().find(name);
    if (outcome == in_.state.outcomes().end()) {
        controllers_.erase(name);
        return;
    }
    ControllerProperties properties = properties_of(*outcome->second, in_.state.is_stuck(name));
    auto& object = controllers_[name];
    if (object)
        object->become(std::move(properties));
    else
        object =
            std::make_unique<ControllerObject>(*connection_, std::move(properties), [this, name] { return describe(name); });
}

void Door::refresh_subsystem(const std::string& name)
{
    const auto& all = in_.state.subsystems();
    const auto subsystem = std::ranges::find(all, name, &Subsystem::name);
    if (subsystem == all.end()) {
        subsystems_.erase(name);
        return;
    }
    SubsystemProperties properties = properties_of(*subsystem, in_.state);
    auto& object = subsystems_[name];
    if (object)
        object->become(std::move(properties));
    else
        object = std::make_unique<SubsystemObject>(*connection_, std::move(properties));
}

std::string Door::describe(const std::string& name) const
{
    Round round;
    round.circumstances = in_.reconciler.circumstances();
    // It may have left while the object is still there, until the loop next comes to rest.
    const auto found = in_.state.outcomes().find(name);
    if (found == in_.state.outcomes().end())
        throw make_error(error::no_such_controller, name + " has left");
    return to_text(show_json(round, *found->second, in_.simulated));
}

std::optional<EventLoop::Interest> Door::prepare()
{
    if (is_lost_)
        return std::nullopt;
    try {
        const Poll poll = poll_of(*connection_);
        return EventLoop::Interest{poll.fd, static_cast<std::uint32_t>(poll.events), poll.wake_fd, poll.deadline_us};
    } catch (const std::exception& error) {
        lost(error.what());
        return std::nullopt;
    }
}

void Door::process()
{
    try {
        bus::process(*connection_);
    } catch (const std::exception& error) {
        lost(error.what());
    }
}

void Door::lost(const std::string& why)
{
    if (!std::exchange(is_lost_, true))
        in_.lost(why);
}

} // namespace nvmepolicy::bus
