// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/connection.h"

#include <limits>

namespace nvmepolicy::bus {

Result<std::unique_ptr<sdbus::IConnection>> connect(const std::string& which)
{
    try {
        if (which == "system")
            return sdbus::createSystemBusConnection();
        if (which == "session")
            return sdbus::createSessionBusConnection();
        return sdbus::createSessionBusConnectionWithAddress(which);
    } catch (const sdbus::Error& error) {
        return Refusal{"D-Bus", which, error.getMessage()};
    }
}

Result<void> request_name(sdbus::IConnection& connection, const std::string& name)
{
    try {
#if SDBUSCPP_MAJOR >= 2
        connection.requestName(sdbus::ServiceName{name});
#else
        connection.requestName(name);
#endif
        return {};
    } catch (const sdbus::Error& error) {
        return Refusal{"D-Bus", name, error.getMessage()};
    }
}

Poll poll_of(const sdbus::IConnection& connection)
{
    const auto data = connection.getEventLoopPollData();
    Poll poll;
    poll.fd = data.fd;
    poll.events = data.events;
#if SDBUSCPP_MAJOR >= 2
    poll.wake_fd = data.eventFd;
    if (data.timeout != decltype(data.timeout)::max())
        poll.deadline_us = static_cast<std::uint64_t>(data.timeout.count());
#else
    if (data.timeout_usec != std::numeric_limits<std::uint64_t>::max())
        poll.deadline_us = data.timeout_usec;
#endif
    return poll;
}

void process(sdbus::IConnection& connection)
{
#if SDBUSCPP_MAJOR >= 2
    connection.processPendingEvent();
#else
    connection.processPendingRequest();
#endif
}

std::unique_ptr<sdbus::IProxy> make_proxy(sdbus::IConnection& connection, const std::string& service, const std::string& path)
{
#if SDBUSCPP_MAJOR >= 2
    return sdbus::createProxy(connection, sdbus::ServiceName{service}, sdbus::ObjectPath{path});
#else
    return sdbus::createProxy(connection, service, path);
#endif
}

sdbus::Slot add_match(sdbus::IConnection& connection, const std::string& rule, std::function<void(sdbus::Message&)> handler)
{
    auto pass_on = [handler = std::move(handler)](auto&& message) { handler(message); };
#if SDBUSCPP_MAJOR >= 2
    return connection.addMatch(rule, std::move(pass_on), sdbus::return_slot);
#else
    return connection.addMatch(rule, std::move(pass_on));
#endif
}

Envelope envelope_of(const sdbus::Message& message)
{
#if SDBUSCPP_MAJOR >= 2
    const auto text = [](const char* t) { return t ? std::string(t) : std::string(); };
    return {text(message.getSender()), text(message.getPath()), text(message.getInterfaceName()),
            text(message.getMemberName())};
#else
    return {message.getSender(), message.getPath(), message.getInterfaceName(), message.getMemberName()};
#endif
}

sdbus::Error make_error(const char* name, const std::string& text)
{
#if SDBUSCPP_MAJOR >= 2
    return {sdbus::Error::Name{name}, text};
#else
    return {name, text};
#endif
}

std::string sender_of_current(const sdbus::IObject& object)
{
#if SDBUSCPP_MAJOR >= 2
    const char* sender = object.getCurrentlyProcessedMessage().getSender();
    return sender ? sender : "";
#else
    const sdbus::Message* message = object.getCurrentlyProcessedMessage();
    return message ? message->getSender() : "";
#endif
}

void emit_properties_changed(sdbus::IObject& object, const std::string& interface, const std::vector<std::string>& properties)
{
#if SDBUSCPP_MAJOR >= 2
    std::vector<sdbus::PropertyName> names(properties.begin(), properties.end());
    object.emitPropertiesChangedSignal(sdbus::InterfaceName{interface}, names);
#else
    object.emitPropertiesChangedSignal(interface, properties);
#endif
}

} // namespace nvmepolicy::bus
