// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/holds.h"

#include <fmt/format.h>

#include "nvmepolicy/wording.h"

namespace nvmepolicy {
namespace {

/// Which of two held profiles is in force. Source: power-profiles-daemon, where saving power outranks performance.
int rank(const std::string& profile)
{
    return profile == "power-saver" ? 2 : profile == "performance" ? 1 : 0;
}

bool is_stricter(const LatencyHold& a, const LatencyHold& b)
{
    return a.bound != b.bound && stricter(a.bound, b.bound) == a.bound;
}

} // namespace

std::string Hold::who() const
{
    const std::string name = printable(application_id.empty() ? sender : application_id);
    return reason.empty() ? name : fmt::format("{} ({})", name, printable(reason));
}

Result<Cookie> Holds::add(Hold hold)
{
    if (holds_.size() >= most)
        return Refusal{"hold", "", fmt::format("there are {} holds already, and no more are taken", most)};
    std::size_t& of_sender = per_sender_[hold.sender];
    if (of_sender >= most_of_one_sender)
        return Refusal{"hold", hold.sender,
                       fmt::format("this client has {} holds already, and no more are taken from one", most_of_one_sender)};
    do
        ++last_;
    while (last_ == 0 || holds_.contains(last_));
    ++of_sender;
    holds_.emplace(last_, std::move(hold));
    return last_;
}

const Hold* Holds::find(Cookie cookie) const
{
    const auto found = holds_.find(cookie);
    return found == holds_.end() ? nullptr : &found->second;
}

bool Holds::release(Cookie cookie)
{
    const auto found = holds_.find(cookie);
    if (found == holds_.end())
        return false;
    const auto of_sender = per_sender_.find(found->second.sender);
    if (--of_sender->second == 0)
        per_sender_.erase(of_sender);
    holds_.erase(found);
    return true;
}

std::vector<Cookie> Holds::release_if(const std::function<bool(const Hold&)>& ends)
{
    std::vector<Cookie> released;
    for (const auto& [cookie, hold] : holds_)
        if (ends(hold))
            released.push_back(cookie);
    for (const Cookie cookie : released)
        release(cookie);
    return released;
}

Wish Holds::wish(const std::string& base) const
{
    Wish wish;
    wish.profile = base;
    const Hold* profile = nullptr;
    std::optional<LatencyHold> everywhere;
    for (const auto& [cookie, hold] : holds_) {
        if (const auto* name = std::get_if<std::string>(&hold.wish)) {
            if (!profile || rank(*name) >= rank(std::get<std::string>(profile->wish)))
                profile = &hold;
            continue;
        }
        const auto& latency = std::get<LatencyWish>(hold.wish);
        const LatencyHold held{{latency.max_wake_latency}, hold.who()};
        if (!latency.only) {
            if (!everywhere || is_stricter(held, *everywhere))
                everywhere = held;
            continue;
        }
        const auto [there, is_new] = wish.holds_on.try_emplace(latency.only->id, held);
        if (!is_new && is_stricter(held, there->second))
            there->second = held;
    }
    if (profile) {
        wish.profile = std::get<std::string>(profile->wish);
        wish.held_by = profile->who();
    }
    if (everywhere)
        wish.holds.push_back(*std::move(everywhere));
    return wish;
}

} // namespace nvmepolicy
