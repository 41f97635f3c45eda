// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/signals.h"

#include <algorithm>
#include <fmt/format.h>

namespace nvmepolicy::bus {
namespace {

constexpr const char* bus_name = "org.freedesktop.DBus";
constexpr const char* bus_path = "/org/freedesktop/DBus";

/// `with`: further conditions.
std::string owner_rule(const std::string& with)
{
    return fmt::format("type='signal',sender='{0}',path='{1}',interface='{0}',member='NameOwnerChanged'{2}", bus_name, bus_path,
                       with);
}

/// Only of those that vanish.
std::string clients_rule()
{
    return owner_rule(",arg2=''");
}

std::string rule_of(const Signals::Source& s)
{
    return fmt::format("type='signal',sender='{}',path='{}',interface='{}',member='{}'", s.name, s.path, s.interface, s.member);
}

bool same(const Signals::Source& a, const Signals::Source& b)
{
    return rule_of(a) == rule_of(b);
}

} // namespace

Signals::Signals(sdbus::IConnection& connection) : connection_(connection), bus_(make_proxy(connection, bus_name, bus_path))
{
    hear(bus_name, "NameOwnerChanged", [this](sdbus::Message& m) { owner_changed(m); });
    for (const auto& [interface, member] : {std::pair{"org.freedesktop.DBus.Properties", "PropertiesChanged"},
                                            std::pair{"org.freedesktop.login1.Manager", "PrepareForSleep"}})
        hear(interface, member, [this, interface = std::string(interface), member = std::string(member)](sdbus::Message& m) {
            announced(m, interface, member);
        });
}

/// The library waits for the bus when it is to hear of something. So it is made to hear of everything of a kind at the start,
/// the bus is told that nothing of it is wanted, and what is wanted later is asked for without waiting.
void Signals::hear(const std::string& interface, const std::string& member, std::function<void(sdbus::Message&)> handler)
{
    const std::string rule = fmt::format("type='signal',interface='{}',member='{}'", interface, member);
    slots_.push_back(add_match(connection_, rule, [handler = std::move(handler)](sdbus::Message& message) {
        unless_lost([&] { handler(message); }); // One that does not hold what its name promises says nothing.
    }));
    tell_bus("RemoveMatch", rule);
}

void Signals::tell_bus(const char* method, const std::string& rule)
{
    const std::string name = method;
    unless_lost(
        [&] { bus_->callMethodAsync(name).onInterface(bus_name).withArguments(rule).uponReplyInvoke([](ReplyError) {}); });
}

void Signals::watch_clients(bool wanted)
{
    if (wanted == watching_clients_)
        return;
    watching_clients_ = wanted;
    tell_bus(wanted ? "AddMatch" : "RemoveMatch", clients_rule());
}

void Signals::watch_name(const std::string& name, std::function<void(const std::string&)> handler)
{
    names_[name] = {"", std::move(handler)};
    tell_bus("AddMatch", owner_rule(fmt::format(",arg0='{}'", name)));
    const std::string method = "GetNameOwner";
    unless_lost([&] {
        bus_->callMethodAsync(method).onInterface(bus_name).withArguments(name).uponReplyInvoke(
            [this, name](ReplyError error, const std::string& owner) { owner_is(name, error ? "" : owner); });
    });
}

void Signals::forget_name(const std::string& name)
{
    if (names_.erase(name) != 0)
        tell_bus("RemoveMatch", owner_rule(fmt::format(",arg0='{}'", name)));
}

std::string Signals::owner(const std::string& name) const
{
    const auto found = names_.find(name);
    return found == names_.end() ? "" : found->second.owner;
}

void Signals::owner_is(const std::string& name, const std::string& owner)
{
    const auto found = names_.find(name);
    if (found == names_.end())
        return;
    found->second.owner = owner;
    const auto handler = found->second.handler;
    handler(owner);
}

void Signals::owner_changed(sdbus::Message& message)
{
    if (std::string(message.getSender()) != bus_name)
        return; // Anybody may send a signal of any name to us alone.
    std::string name;
    std::string before;
    std::string after;
    message >> name >> before >> after;
    if (names_.contains(name))
        owner_is(name, after);
    if (after.empty() && name.starts_with(':'))
        client_left_(name);
}

void Signals::subscribe(const Source& source, std::function<void(sdbus::Message&)> handler)
{
    subscriptions_.push_back({source, std::move(handler)});
    tell_bus("AddMatch", rule_of(source));
}

void Signals::unsubscribe(const Source& source)
{
    if (std::erase_if(subscriptions_, [&](const Subscription& s) { return same(s.source, source); }) != 0)
        tell_bus("RemoveMatch", rule_of(source));
}

void Signals::announced(sdbus::Message& message, const std::string& interface, const std::string& member)
{
    const std::string sender = message.getSender();
    for (const Subscription& s : subscriptions_)
        if (s.source.interface == interface && s.source.member == member && owner(s.source.name) == sender) {
            const auto handler = s.handler;
            return handler(message);
        }
}

} // namespace nvmepolicy::bus
