// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/profile_follower.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace nvmepolicy::bus {
namespace {

/// The service may be restarted, or another one take its place.
constexpr Milliseconds owner_may_come_back{10'000};

/// Both its names; where both are there, the first counts. The interface is called like the name.
struct Place {
    const char* name;
    const char* path;
};
constexpr std::array places{Place{"org.freedesktop.UPower.PowerProfiles", "/org/freedesktop/UPower/PowerProfiles"},
                            Place{"net.hadess.PowerProfiles", "/net/hadess/PowerProfiles"}};

Signals::Source changes_of(const Place& place)
{
    return {place.name, place.path, "org.freedesktop.DBus.Properties", "PropertiesChanged"};
}

} // namespace

void ProfileFollower::follow(bool wanted)
{
    if (wanted == following_)
        return;
    following_ = wanted;
    gone_.reset();
    service_.reset();
    asked_owner_.clear();
    for (const Place& place : places) {
        if (wanted) {
            // In this order, or a change slips in between the answer and the first signal.
            signals_.subscribe(changes_of(place), [this](sdbus::Message& message) { properties_changed(message); });
            signals_.watch_name(place.name, [this](const std::string&) { owner_changed(); });
        } else {
            signals_.unsubscribe(changes_of(place));
            signals_.forget_name(place.name);
        }
    }
}

void ProfileFollower::owner_changed()
{
    for (const Place& place : places) {
        const std::string owner = signals_.owner(place.name);
        if (owner.empty())
            continue;
        gone_.reset();
        if (owner == asked_owner_)
            return;
        asked_owner_ = owner;
        ask(owner, place.path, place.name);
        return;
    }
    asked_owner_.clear();
    service_.reset();
    if (!gone_)
        gone_ = loop_.after(owner_may_come_back, [this] {
            gone_.reset();
            heard_(std::nullopt);
        });
}

/// By its unique name: a call to the other one would start the service.
void ProfileFollower::ask(const std::string& owner, const char* path, const char* interface)
{
    unless_lost([&] {
        service_ = make_proxy(connection_, owner, path);
        const std::string method = "GetAll";
        service_->callMethodAsync(method)
            .onInterface("org.freedesktop.DBus.Properties")
            .withArguments(std::string(interface))
            .uponReplyInvoke([this, owner](ReplyError error, const std::map<std::string, sdbus::Variant>& properties) {
                if (!error && owner == asked_owner_)
                    profile_is(properties);
            });
    });
}

void ProfileFollower::properties_changed(sdbus::Message& message)
{
    if (message.getSender() != asked_owner_)
        return; // The other name's owner, where they are two.
    std::string interface;
    std::map<std::string, sdbus::Variant> changed;
    std::vector<std::string> invalidated;
    message >> interface >> changed >> invalidated;
    const auto place = std::ranges::find_if(places, [&](const Place& p) { return interface == p.name; });
    if (place == places.end())
        return;
    if (std::ranges::find(invalidated, "ActiveProfile") != invalidated.end())
        ask(asked_owner_, place->path, place->name);
    else
        profile_is(changed);
}

void ProfileFollower::profile_is(const std::map<std::string, sdbus::Variant>& properties)
{
    const auto found = properties.find("ActiveProfile");
    if (found != properties.end() && found->second.containsValueOfType<std::string>())
        heard_(found->second.get<std::string>());
}

} // namespace nvmepolicy::bus
