// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service_client.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "bus/connection.h"
#include "bus/names.h"
#include "nvmepolicy/wording.h"
#include "variant_json.h"

namespace nvmepolicy {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds time_to_read{5};
constexpr std::chrono::minutes time_to_authorize{5}; ///< a person may have to find a password
constexpr const char* application_id = "nvmepolicyctl";
constexpr const char* properties_interface = "org.freedesktop.DBus.Properties";
constexpr const char* objects_interface = "org.freedesktop.DBus.ObjectManager";

Refusal not_running()
{
    return {"", "", fmt::format("nvmepolicyd is not running: nobody has the name {} on the bus", bus::service_name),
            RefusalKind::absent};
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names)
{
    return std::ranges::find(names, name) != names.end();
}

/// A message with its lines: a configuration has one for each error.
std::string said_by(const sdbus::Error& error)
{
    std::istringstream lines(error.getMessage().empty() ? std::string(error.getName()) : error.getMessage());
    std::string text;
    for (std::string line; std::getline(lines, line);)
        text += (text.empty() ? "" : "\n") + printable(line, 2000);
    return text;
}

/// What the service, or the bus in its place, said.
Refusal refusal_of(const sdbus::Error& error)
{
    const std::string& name = error.getName();
    const std::string said = said_by(error);
    if (is_one_of(name, {"org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner"}))
        return not_running();
    if (is_one_of(name, {bus::error::not_authorized, "org.freedesktop.DBus.Error.AccessDenied"}))
        return {"not authorized", "", said, RefusalKind::denied};
    if (is_one_of(name, {bus::error::no_such_controller, "org.freedesktop.DBus.Error.UnknownObject",
                         "org.freedesktop.DBus.Error.UnknownInterface", "org.freedesktop.DBus.Error.UnknownMethod"}))
        return {"nvmepolicyd", "", said, RefusalKind::gone};
    if (is_one_of(name, {"org.freedesktop.DBus.Error.Timeout", "System.Error.ETIMEDOUT"}))
        return {"", "", "nvmepolicyd runs, but does not answer", RefusalKind::timed_out};
    if (is_one_of(name, {"org.freedesktop.DBus.Error.NoReply"}))
        return {"nvmepolicyd", "", "has ended, or has not answered in time"};
    return {"nvmepolicyd", "", said};
}

std::string name_of(const std::string& path)
{
    const std::string controller = bus::controller_of(path);
    return controller.empty() ? path : controller;
}

std::uint64_t now_us()
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

/// For ppoll: how long until then.
timespec until(std::uint64_t deadline_us)
{
    const std::uint64_t now = now_us();
    const std::uint64_t left = deadline_us > now ? deadline_us - now : 0;
    return {static_cast<time_t>(left / 1'000'000), static_cast<long>(left % 1'000'000) * 1000};
}

/// The service knows a profile and the latency of one drive, or of all, as a hold each.
std::vector<HoldRequest> parts_of(const HoldRequest& request)
{
    std::vector<HoldRequest> parts;
    if (request.profile)
        parts.push_back({request.profile, std::nullopt, {}, request.reason});
    if (!request.max_latency)
        return parts;
    if (request.controllers.empty())
        parts.push_back({std::nullopt, request.max_latency, {}, request.reason});
    for (const std::string& controller : request.controllers)
        parts.push_back({std::nullopt, request.max_latency, {controller}, request.reason});
    return parts;
}

struct Held {
    HoldRequest part;
    std::optional<std::uint32_t> cookie; ///< none: not as yet
};

} // namespace

struct ServiceClient::Connection {
    std::unique_ptr<sdbus::IConnection> bus;
    std::unique_ptr<sdbus::IProxy> manager;
    std::string owner; ///< unique name of the service; empty: it does not run
    std::vector<sdbus::Slot> matches;
    std::function<void(const Json&)> event;
    std::vector<std::shared_ptr<Held>> held;
    std::size_t unanswered = 0;          ///< calls for holds
    std::set<std::uint32_t> ended_early; ///< what ended while there were such: perhaps before the answer that says it is ours
    bool stopped = false;

    /// Calls and turns what is thrown into a refusal.
    template <class Call>
    auto guarded(Call call) -> Result<decltype(call())>
    {
        if (owner.empty())
            return not_running();
        try {
            if constexpr (std::is_void_v<decltype(call())>) {
                call();
                return {};
            } else {
                return call();
            }
        } catch (const sdbus::Error& error) {
            return refusal_of(error);
        }
    }
    template <class... Arguments>
    Result<void> change(const char* method, Arguments... arguments)
    {
        return guarded([&] {
            manager->callMethod(method)
                .onInterface(bus::manager_interface)
                .withTimeout(time_to_authorize)
                .withArguments(arguments...);
        });
    }
    /// A call for that hold, sync or async, before its result is asked for.
    template <class Invoker>
    static void prepare(Invoker& invoker, const HoldRequest& part)
    {
        invoker.onInterface(bus::manager_interface).withTimeout(time_to_authorize);
        if (part.profile)
            invoker.withArguments(*part.profile, part.reason, std::string(application_id));
        else
            invoker.withArguments(
                sdbus::ObjectPath{part.controllers.empty() ? bus::root_path : bus::controller_path(part.controllers.front())},
                static_cast<std::uint64_t>(part.max_latency->count()), part.reason, std::string(application_id));
    }
    static const char* method_of(const HoldRequest& part) { return part.profile ? "HoldProfile" : "HoldLatency"; }
    std::uint32_t take(const HoldRequest& part)
    {
        std::uint32_t cookie = 0;
        auto invoker = manager->callMethod(method_of(part));
        prepare(invoker, part);
        invoker.storeResultsTo(cookie);
        return cookie;
    }
    void tell(const std::string& kind, const std::string& path, const Json& more)
    {
        Json line = {{"event", kind}};
        if (!path.empty()) {
            line["object"] = path;
            line["name"] = path == bus::root_path ? Json(nullptr) : Json(name_of(path));
        }
        line.update(more);
        event(line);
    }
    void signal(sdbus::Message& message);
    /// Forgets what has that cookie, and returns what it was.
    std::optional<HoldRequest> ended(std::uint32_t cookie)
    {
        const auto found = std::ranges::find_if(held, [&](const auto& h) { return h->cookie == cookie; });
        if (found == held.end())
            return std::nullopt;
        HoldRequest part = (*found)->part;
        held.erase(found);
        return part;
    }
    /// Another service, or none: what was held there is not held any more.
    void owner_changed(const std::string& after)
    {
        owner = after;
        ended_early.clear();
        for (const auto& h : held)
            h->cookie.reset();
    }
};

namespace {

/// Reads the signal's arguments into values of those types.
template <class... Arguments>
std::tuple<Arguments...> arguments_of(sdbus::Message& message)
{
    std::tuple<Arguments...> arguments;
    std::apply([&](auto&... argument) { ((message >> argument), ...); }, arguments);
    return arguments;
}

using Values = std::map<std::string, sdbus::Variant>;

} // namespace

/// Anybody may send a signal with our paths; only the service's count.
void ServiceClient::Connection::signal(sdbus::Message& message)
{
    const bus::Envelope envelope = bus::envelope_of(message);
    if (envelope.sender != owner || owner.empty())
        return;
    const std::string& member = envelope.member;
    if (envelope.interface == properties_interface && member == "PropertiesChanged") {
        const auto [interface, changed, invalidated] = arguments_of<std::string, Values, std::vector<std::string>>(message);
        for (const auto& [property, value] : changed)
            tell("property-changed", envelope.path, {{"property", property}, {"value", json_of(value)}});
        for (const std::string& property : invalidated)
            tell("property-changed", envelope.path, {{"property", property}, {"value", nullptr}});
    } else if (envelope.interface == objects_interface && member == "InterfacesAdded") {
        const auto [path, interfaces] = arguments_of<sdbus::ObjectPath, std::map<std::string, Values>>(message);
        tell("object-added", path, Json::object());
    } else if (envelope.interface == objects_interface && member == "InterfacesRemoved") {
        const auto [path, interfaces] = arguments_of<sdbus::ObjectPath, std::vector<std::string>>(message);
        tell("object-removed", path, Json::object());
    } else if (envelope.interface == bus::manager_interface && member == "HoldReleased") {
        tell("hold-released", "", {{"cookie", std::get<0>(arguments_of<std::uint32_t>(message))}});
    } else if (envelope.interface == bus::manager_interface && member == "ValueOverridden") {
        const auto [path, attribute, ours, theirs, writer] =
            arguments_of<sdbus::ObjectPath, std::string, std::string, std::string, std::string>(message);
        tell("value-overridden", path,
             {{"attribute", attribute},
              {"ours", ours},
              {"theirs", theirs},
              {"writer", writer.empty() ? Json(nullptr) : Json(writer)}});
    }
}

ServiceClient::ServiceClient(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
ServiceClient::~ServiceClient() = default;

Result<std::unique_ptr<ServiceClient>> ServiceClient::connect(const std::string& bus)
{
    auto connected = bus::connect(bus);
    if (!connected)
        return Refusal{"", "", fmt::format("there is no bus to reach nvmepolicyd on: {}", connected.error().text()),
                       RefusalKind::absent};
    auto connection = std::make_unique<Connection>();
    connection->bus = std::move(*connected);
    auto client = std::unique_ptr<ServiceClient>(new ServiceClient(std::move(connection)));
    Connection& c = *client->connection_;
    try {
        c.manager = bus::make_proxy(*c.bus, bus::service_name, bus::root_path);
        // First listen, then ask: it may come in between.
        c.matches.push_back(bus::add_match(
            *c.bus,
            fmt::format(
                "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                "arg0='{}'",
                bus::service_name),
            [self = client.get()](sdbus::Message& message) {
                const auto [name, before, after] = arguments_of<std::string, std::string, std::string>(message);
                const bool was_there = !self->connection_->owner.empty();
                const bool another = was_there && !after.empty() && after != self->connection_->owner;
                self->connection_->owner_changed(after);
                if (self->on_presence && another)
                    self->on_presence(false);
                if (self->on_presence && (another || was_there == after.empty()))
                    self->on_presence(!after.empty());
            }));
        const auto driver = bus::make_proxy(*c.bus, "org.freedesktop.DBus", "/org/freedesktop/DBus");
        driver->callMethod("GetNameOwner")
            .onInterface("org.freedesktop.DBus")
            .withTimeout(time_to_read)
            .withArguments(std::string(bus::service_name))
            .storeResultsTo(c.owner);
    } catch (const sdbus::Error& error) {
        if (const Refusal refusal = refusal_of(error); refusal.kind != RefusalKind::absent)
            return refusal;
    }
    return client;
}

bool ServiceClient::is_running() const
{
    return !connection_->owner.empty();
}

Result<std::string> ServiceClient::describe()
{
    return connection_->guarded([&] {
        std::string text;
        connection_->manager->callMethod("Describe")
            .onInterface(bus::manager_interface)
            .withTimeout(time_to_read)
            .storeResultsTo(text);
        return text;
    });
}

Result<std::string> ServiceClient::describe(const std::string& controller)
{
    return connection_->guarded([&] {
        std::string text;
        const auto proxy = bus::make_proxy(*connection_->bus, bus::service_name, bus::controller_path(controller));
        proxy->callMethod("Describe").onInterface(bus::controller_interface).withTimeout(time_to_read).storeResultsTo(text);
        return text;
    });
}

Result<nlohmann::ordered_json> ServiceClient::properties()
{
    return connection_->guarded([&] {
        Values values;
        connection_->manager->callMethod("GetAll")
            .onInterface(properties_interface)
            .withTimeout(time_to_read)
            .withArguments(std::string(bus::manager_interface))
            .storeResultsTo(values);
        Json document = Json::object();
        for (const auto& [name, value] : values)
            document[name] = json_of(value);
        return document;
    });
}

Result<nlohmann::ordered_json> ServiceClient::plan()
{
    using Change = sdbus::Struct<sdbus::ObjectPath, std::string, std::string, std::string, std::string, std::string>;
    const auto manager = properties();
    if (!manager)
        return manager.error();
    return connection_->guarded([&] {
        std::vector<Change> changes;
        connection_->manager->callMethod("Plan")
            .onInterface(bus::manager_interface)
            .withTimeout(time_to_read)
            .storeResultsTo(changes);
        Json document = {{"schema", 1},
                         {"simulated", manager->value("Simulated", false)},
                         {"profile", manager->value("ActiveProfile", "")},
                         {"on_battery", manager->value("OnBattery", false)},
                         {"changes", Json::array()}};
        for (const Change& c : changes)
            document["changes"].push_back({{"object", name_of(std::get<0>(c))},
                                           {"attribute", std::get<1>(c)},
                                           {"from", std::get<2>(c)},
                                           {"to", std::get<3>(c)},
                                           {"through", nullptr},
                                           {"origin", std::get<4>(c)},
                                           {"reason", std::get<5>(c)}});
        return document;
    });
}

Result<void> ServiceClient::set_profile(const std::string& profile)
{
    return connection_->change("SetProfile", profile);
}

Result<void> ServiceClient::reconcile()
{
    return connection_->change("Reconcile");
}

Result<void> ServiceClient::reload()
{
    return connection_->change("Reload");
}

Result<void> ServiceClient::clear_breaker(const std::string& controller)
{
    return connection_->change("ClearBreaker", sdbus::ObjectPath{bus::controller_path(controller)});
}

Result<void> ServiceClient::hold(const HoldRequest& request)
{
    Connection& c = *connection_;
    try {
        c.matches.push_back(bus::add_match(
            *c.bus,
            fmt::format("type='signal',interface='{}',member='HoldReleased',path='{}'", bus::manager_interface, bus::root_path),
            [this](sdbus::Message& message) { hold_released(message); }));
    } catch (const sdbus::Error& error) {
        return refusal_of(error);
    }
    for (HoldRequest& part : parts_of(request)) {
        const auto cookie = c.guarded([&] { return c.take(part); });
        if (!cookie) {
            for (const auto& h : std::exchange(c.held, {}))
                static_cast<void>(c.change("Release", *h->cookie));
            return cookie.error();
        }
        c.held.push_back(std::make_shared<Held>(Held{std::move(part), *cookie}));
    }
    return {};
}

/// Anybody may send such a signal; only the service's count.
void ServiceClient::hold_released(sdbus::Message& message)
{
    Connection& c = *connection_;
    if (c.owner.empty() || bus::envelope_of(message).sender != c.owner)
        return;
    std::uint32_t cookie = 0;
    try {
        message >> cookie;
    } catch (const sdbus::Error&) { // a service of another version, whose signal has other arguments
        return;
    }
    if (const auto part = c.ended(cookie); part && on_hold_ended)
        on_hold_ended(*part);
    else if (!part && c.unanswered != 0)
        c.ended_early.insert(cookie);
}

bool ServiceClient::holds() const
{
    return !connection_->held.empty();
}

void ServiceClient::hold_again(std::function<void(const std::optional<Refusal>&)> done)
{
    struct Pending {
        std::size_t open = 0;
        std::optional<Refusal> first;
        std::function<void(const std::optional<Refusal>&)> done;
    };
    Connection& c = *connection_;
    const auto pending = std::make_shared<Pending>(Pending{c.held.size(), std::nullopt, std::move(done)});
    const auto answered = [this, pending](const std::shared_ptr<Held>& held, const std::optional<Refusal>& refusal,
                                          std::uint32_t cookie) {
        Connection& now = *connection_;
        --now.unanswered;
        if (refusal && !pending->first)
            pending->first = refusal;
        if (!refusal)
            held->cookie = cookie;
        if (--pending->open == 0)
            pending->done(pending->first);
        if (!refusal && now.ended_early.contains(cookie))
            if (const auto part = now.ended(cookie); part && on_hold_ended)
                on_hold_ended(*part);
        if (now.unanswered == 0)
            now.ended_early.clear();
    };
    c.unanswered += c.held.size();
    for (const auto& held : std::vector(c.held)) {
        try {
            auto invoker = c.manager->callMethodAsync(Connection::method_of(held->part));
            Connection::prepare(invoker, held->part);
            static_cast<void>(invoker.uponReplyInvoke([answered, held](bus::ReplyError error, std::uint32_t cookie) {
                answered(held, error ? std::optional(refusal_of(*error)) : std::nullopt, cookie);
            }));
        } catch (const sdbus::Error& error) {
            answered(held, refusal_of(error), 0);
        }
    }
}

Result<void> ServiceClient::watch(std::function<void(const nlohmann::ordered_json&)> event)
{
    connection_->event = std::move(event);
    try {
        connection_->matches.push_back(
            bus::add_match(*connection_->bus, fmt::format("type='signal',path_namespace='{}'", bus::root_path),
                           [c = connection_.get()](sdbus::Message& message) {
                               try {
                                   c->signal(message);
                               } catch (const sdbus::Error&) { // a service of another version, whose signal has other arguments
                               }
                           }));
        return {};
    } catch (const sdbus::Error& error) {
        return refusal_of(error);
    }
}

Result<void> ServiceClient::serve_until(std::span<pollfd> others)
{
    connection_->stopped = false;
    try {
        while (!connection_->stopped) {
            const bus::Poll bus = bus::poll_of(*connection_->bus);
            std::vector<pollfd> all(others.begin(), others.end());
            all.push_back({bus.fd, bus.events, 0});
            all.push_back({bus.wake_fd, POLLIN, 0}); // -1 is ignored
            timespec wait{};
            if (bus.deadline_us)
                wait = until(*bus.deadline_us);
            const int ready = ::ppoll(all.data(), all.size(), bus.deadline_us ? &wait : nullptr, nullptr);
            if (ready < 0 && errno != EINTR)
                return Refusal{"", "", std::string("waiting for the bus: ") + std::strerror(errno)};
            bool said = false;
            for (std::size_t i = 0; ready > 0 && i < others.size(); ++i) {
                others[i].revents = all[i].revents;
                said = said || all[i].revents != 0;
            }
            if (said)
                return {};
            bus::process(*connection_->bus);
        }
        return {};
    } catch (const std::exception& error) {
        return Refusal{"D-Bus", "", std::string("the connection is lost: ") + error.what()};
    }
}

void ServiceClient::stop_serving()
{
    connection_->stopped = true;
}

} // namespace nvmepolicy
