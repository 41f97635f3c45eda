// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/manager.h"

#include <fmt/format.h>

#include "nvmepolicy/wording.h"
#include "report/json.h"

namespace nvmepolicy::bus {
namespace {

namespace action {
constexpr const char* set_profile = "org.nvmepolicy1.set-profile";
constexpr const char* hold = "org.nvmepolicy1.hold";
constexpr const char* manage = "org.nvmepolicy1.manage";
} // namespace action

const char* error_of(const Refusal& refusal)
{
    return refusal.kind == RefusalKind::absent ? error::no_such_profile : error::failed;
}

std::optional<std::string> wrong_with_texts(const std::string& reason, const std::string& application_id)
{
    if (reason.size() > longest_reason)
        return fmt::format("the reason has {} bytes; at most {} are taken", reason.size(), longest_reason);
    if (application_id.size() > longest_application_id)
        return fmt::format("the application id has {} bytes; at most {} are taken", application_id.size(),
                           longest_application_id);
    return std::nullopt;
}

std::string no_such_controller(const std::string& path)
{
    return fmt::format("there is no controller at \"{}\" now", printable(path, 200));
}

std::string lines_of(const Inside::Errors& errors)
{
    std::string lines;
    for (const Refusal& error : errors)
        lines += (lines.empty() ? "" : "\n") + error.text();
    return lines;
}

} // namespace

Manager::Manager(sdbus::IConnection& connection, Signals& signals, const Inside& inside)
    : AdaptorInterfaces(connection, sdbus::ObjectPath{root_path})
    , signals_(signals)
    , in_(inside)
    , authorization_(connection)
    , announced_(now())
{
    signals_.on_client_left([this](const std::string& name) {
        authorization_.client_left(name);
        in_.wishes.client_left(name);
        watch_those_who_matter();
    });
    registerAdaptor();
}

Manager::~Manager()
{
    unregisterAdaptor();
}

ManagerProperties Manager::now() const
{
    const Circumstances& circumstances = in_.reconciler.circumstances();
    return {circumstances.wish.profile,
            in_.wishes.base(),
            in_.wishes.policy().profiles,
            in_.wishes.holds().all(),
            circumstances.machine.power_source == PowerSource::battery,
            circumstances.policy.daemon.dry_run.value,
            lines_of(in_.configuration_errors())};
}

void Manager::refresh()
{
    ManagerProperties properties = now();
    const auto changed = differences(announced_, properties);
    announced_ = std::move(properties);
    if (!changed.empty())
        unless_lost([&] { emit_properties_changed(getObject(), manager_interface, changed); });
}

void Manager::hold_released(Cookie cookie)
{
    unless_lost([&] { emitHoldReleased(cookie); });
}

void Manager::overridden(const Outcome& o)
{
    unless_lost([&] {
        emitValueOverridden(sdbus::ObjectPath{controller_path(o.name)}, tolerance_attribute, o.decision.tolerance.kernel_text(),
                            o.foreign_value.kernel_text(), "");
    });
}

template <class Asked, class Then>
void Manager::authorized(const Asked& reply, const char* action, Then then)
{
    const bool asked = authorization_.ask(sender(), action, [this, reply, then](const std::optional<std::string>& refused) {
        if (refused)
            reply.refuse(error::not_authorized, *refused);
        else
            then();
        watch_those_who_matter();
    });
    if (asked)
        return;
    reply.refuse(error::failed, "too many requests of this client wait for an authorization already");
    watch_those_who_matter();
}

void Manager::SetProfile(sdbus::Result<>&& result, std::string profile)
{
    const Reply<> reply(std::move(result));
    if (!in_.wishes.policy().profiles.contains(profile))
        return reply.refuse(error::no_such_profile, in_.wishes.no_such_profile(profile).text());
    authorized(reply, action::set_profile, [this, reply, profile] {
        if (const auto chosen = in_.wishes.choose(profile); !chosen)
            return reply.refuse(error_of(chosen.error()), chosen.error().text());
        in_.reconciler.when_settled([reply] { reply.done(); });
    });
}

void Manager::hold(sdbus::Result<std::uint32_t>&& result, Hold hold)
{
    const Reply<std::uint32_t> reply(std::move(result));
    hold.sender = sender();
    // Before the bus is asked anything else about the client, or it leaves unnoticed in between.
    signals_.watch_clients(true);
    authorized(reply, action::hold, [this, reply, hold] {
        const auto cookie = in_.wishes.hold(hold);
        if (!cookie)
            return reply.refuse(error_of(cookie.error()), cookie.error().text());
        in_.reconciler.when_settled([reply, cookie = *cookie] { reply.done(cookie); });
    });
}

void Manager::HoldProfile(sdbus::Result<std::uint32_t>&& result, std::string profile, std::string reason,
                          std::string application_id)
{
    if (const auto wrong = wrong_with_texts(reason, application_id))
        return Reply<std::uint32_t>(std::move(result)).refuse(error::invalid_argument, *wrong);
    if (!in_.wishes.policy().profiles.contains(profile))
        return Reply<std::uint32_t>(std::move(result))
            .refuse(error::no_such_profile, in_.wishes.no_such_profile(profile).text());
    hold(std::move(result), {profile, reason, application_id, ""});
}

void Manager::HoldLatency(sdbus::Result<std::uint32_t>&& result, sdbus::ObjectPath controller, std::uint64_t max_microseconds,
                          std::string reason, std::string application_id)
{
    const auto refuse = [&result](const char* name, const std::string& text) {
        Reply<std::uint32_t>(std::move(result)).refuse(name, text);
    };
    if (const auto wrong = wrong_with_texts(reason, application_id))
        return refuse(error::invalid_argument, *wrong);
    if (max_microseconds > static_cast<std::uint64_t>(largest_tolerance.count()))
        return refuse(error::invalid_argument, fmt::format("a latency of {} us is more than the kernel knows; 0 … {} are taken",
                                                           max_microseconds, largest_tolerance.count()));
    LatencyWish wish{Microseconds{static_cast<std::int64_t>(max_microseconds)}, {}};
    if (controller != root_path) {
        const std::string name = controller_of(controller);
        const auto found = in_.state.outcomes().find(name);
        if (found == in_.state.outcomes().end())
            return refuse(error::no_such_controller, no_such_controller(controller));
        if (!found->second->controller)
            return refuse(error::failed, name + " could not be identified, so nothing can be held on it");
        wish.only = HeldController{found->second->controller->id, name};
    }
    hold(std::move(result), {wish, reason, application_id, ""});
}

void Manager::Release(sdbus::Result<>&& result, std::uint32_t cookie)
{
    const Reply<> reply(std::move(result));
    const auto release = [this, reply, cookie] {
        if (!in_.wishes.release(cookie))
            return reply.refuse(error::no_such_hold, fmt::format("there is no hold {}", cookie));
        watch_those_who_matter();
        in_.reconciler.when_settled([reply] { reply.done(); });
    };
    const Hold* hold = in_.wishes.find(cookie);
    if (!hold || hold->sender == sender())
        release();
    else
        authorized(reply, action::manage, release);
}

void Manager::Reconcile(sdbus::Result<>&& result)
{
    const Reply<> reply(std::move(result));
    authorized(reply, action::manage, [this, reply] {
        in_.reconciler.look_at_power();
        in_.reconciler.enumerate();
        in_.reconciler.claim();
        in_.reconciler.when_settled([reply] { reply.done(); });
    });
}

void Manager::Reload(sdbus::Result<>&& result)
{
    const Reply<> reply(std::move(result));
    authorized(reply, action::manage, [this, reply] {
        in_.reload([this, reply](const Inside::Errors& errors) {
            if (!errors.empty())
                reply.refuse(error::configuration_invalid, lines_of(errors));
            else
                in_.reconciler.when_settled([reply] { reply.done(); });
        });
    });
}

void Manager::ClearBreaker(sdbus::Result<>&& result, sdbus::ObjectPath controller)
{
    const Reply<> reply(std::move(result));
    const std::string name = controller_of(controller);
    if (!in_.state.outcomes().contains(name))
        return reply.refuse(error::no_such_controller, no_such_controller(controller));
    authorized(reply, action::manage, [this, reply, name] {
        in_.reconciler.clear_breaker(name, [reply](const nvmepolicy::Result<void>& cleared) {
            if (!cleared)
                reply.refuse(error::failed, cleared.error().text());
            else
                reply.done();
        });
    });
}

std::vector<Manager::Change> Manager::Plan()
{
    std::vector<Change> changes;
    for (const auto& [name, outcome] : in_.state.outcomes())
        for (const auto& change : in_.plan(*outcome).changes) {
            const auto& c = std::get<ToleranceChange>(change);
            changes.emplace_back(sdbus::ObjectPath{controller_path(c.name)}, tolerance_attribute, c.from.kernel_text(),
                                 c.to.kernel_text(), c.origin, c.reason);
        }
    return changes;
}

std::string Manager::Describe()
{
    return to_text(status_json(in_.state.round(in_.reconciler.circumstances()), in_.simulated));
}

void Manager::watch_those_who_matter()
{
    signals_.watch_clients(authorization_.waits() || !in_.wishes.holds().all().empty());
}

} // namespace nvmepolicy::bus
