// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/authorization.h"

#include <chrono>
#include <fmt/format.h>

namespace nvmepolicy::bus {
namespace {

constexpr std::size_t most_asked_of_polkit = 1024;
constexpr std::size_t most_waiting_of_one_sender = 64;
constexpr std::uint32_t allow_user_interaction = 1;
/// A person may have to find a password.
constexpr std::chrono::minutes time_to_decide{5};
constexpr std::chrono::seconds time_for_the_bus{25};

} // namespace

Authorization::Authorization(sdbus::IConnection& connection)
    : bus_(make_proxy(connection, "org.freedesktop.DBus", "/org/freedesktop/DBus"))
    , polkit_(make_proxy(connection, "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority"))
{
}

bool Authorization::ask(const std::string& sender, const std::string& action, Answer answer)
{
    const auto client = clients_.find(sender);
    if (client != clients_.end() && client->second.waiting >= most_waiting_of_one_sender)
        return false;
    ++clients_[sender].waiting;
    ++waiting_;
    const Answer counted = [this, sender, answer = std::move(answer)](const std::optional<std::string>& refused) {
        const auto found = clients_.find(sender);
        const bool left = found->second.left;
        if (--found->second.waiting == 0)
            clients_.erase(found);
        --waiting_;
        answer(left ? std::optional<std::string>("whoever asked has left the bus") : refused);
    };
    const std::string method = "GetConnectionUnixUser";
    try {
        bus_->callMethodAsync(method)
            .onInterface("org.freedesktop.DBus")
            .withTimeout(time_for_the_bus)
            .withArguments(sender)
            .uponReplyInvoke([this, sender, action, counted](ReplyError error, std::uint32_t uid) {
                if (error)
                    counted("the bus does not say who is asking: " + error->getMessage());
                else if (uid == 0)
                    counted(std::nullopt);
                else if (asked_polkit_ >= most_asked_of_polkit) // Root is not kept out by those whom polkit lets wait.
                    counted("too many requests wait for polkit already");
                else
                    ask_polkit(sender, action, counted);
            });
    } catch (const sdbus::Error& error) {
        counted("the bus cannot be asked: " + error.getMessage());
    }
    return true;
}

void Authorization::client_left(const std::string& sender)
{
    if (const auto found = clients_.find(sender); found != clients_.end())
        found->second.left = true;
}

/// Source: CheckAuthorization() of org.freedesktop.PolicyKit1.Authority.
void Authorization::ask_polkit(const std::string& sender, const std::string& action, const Answer& answer)
{
    using Verdict = sdbus::Struct<bool, bool, std::map<std::string, std::string>>;
    const sdbus::Struct<std::string, std::map<std::string, sdbus::Variant>> subject{
        "system-bus-name", std::map<std::string, sdbus::Variant>{{"name", sdbus::Variant{sender}}}};
    const std::string method = "CheckAuthorization";
    ++asked_polkit_;
    const Answer counted = [this, answer](const std::optional<std::string>& refused) {
        --asked_polkit_;
        answer(refused);
    };
    try {
        polkit_->callMethodAsync(method)
            .onInterface("org.freedesktop.PolicyKit1.Authority")
            .withTimeout(time_to_decide)
            .withArguments(subject, action, std::map<std::string, std::string>{}, allow_user_interaction, std::string{})
            .uponReplyInvoke([counted, action](ReplyError error, const Verdict& verdict) {
                if (error)
                    counted(fmt::format("polkit cannot be asked for {}: {}", action, error->getMessage()));
                else if (!std::get<0>(verdict))
                    counted(fmt::format("polkit says no to {}", action));
                else
                    counted(std::nullopt);
            });
    } catch (const sdbus::Error& error) {
        counted("polkit cannot be asked: " + error.getMessage());
    }
}

} // namespace nvmepolicy::bus
