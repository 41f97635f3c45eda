// SPDX-License-Identifier: LGPL-2.1-or-later
#include "wishes.h"

#include <fmt/format.h>

#include "nvmepolicy/wording.h"

namespace nvmepolicy {
Wishes::Wishes(const Surroundings& surroundings, Policy policy, std::optional<ChosenProfile> chosen)
    : in_(surroundings)
    , policy_(std::move(policy))
    , chosen_(std::move(chosen))
    , base_(find_base())
{
    in_.reconciler.want(holds_.wish(base_));
}

std::string Wishes::find_base()
{
    const std::string& configured = policy_.daemon.profile.value;
    if (following())
        return followed_ && policy_.profiles.contains(*followed_) ? *followed_ : configured;
    if (!chosen_)
        return configured;
    if (chosen_->instead_of != configured) {
        in_.publisher.say(LogLevel::info, Happening::configuration,
                          fmt::format("the profile {} that was chosen instead of {} no longer counts: daemon.profile is {} now",
                                      chosen_->profile, chosen_->instead_of, configured));
        chosen_.reset();
        return configured;
    }
    if (!policy_.profiles.contains(chosen_->profile)) {
        in_.publisher.say(LogLevel::warning, Happening::configuration,
                          no_such_profile(chosen_->profile).text() + "; it was chosen, and does not count");
        chosen_.reset();
        return configured;
    }
    return chosen_->profile;
}

void Wishes::configure(Policy policy)
{
    policy_ = std::move(policy);
    if (!following())
        followed_.reset();
    base_ = find_base();
    const auto ended = holds_.release_if([this](const Hold& hold) {
        const auto* profile = std::get_if<std::string>(&hold.wish);
        return profile && !policy_.profiles.contains(*profile);
    });
    in_.reconciler.configure(policy_, holds_.wish(base_));
    for (const Cookie cookie : ended)
        hearer_.released(cookie);
    hearer_.changed();
}

Result<void> Wishes::choose(const std::string& profile)
{
    if (!policy_.profiles.contains(profile))
        return no_such_profile(profile);
    if (following())
        return Refusal{"profile", profile,
                       "not set: daemon.follow makes power-profiles-daemon's profile count ("
                           + policy_.daemon.follow.origin.text() + "), so set it there",
                       RefusalKind::denied};
    base_ = profile;
    chosen_ = ChosenProfile{profile, policy_.daemon.profile.value};
    in_.publisher.say(LogLevel::info, Happening::profile, "the profile is " + profile + " now");
    in_.reconciler.want(holds_.wish(base_));
    in_.reconciler.claim();
    hearer_.changed();
    save();
    return {};
}

void Wishes::save()
{
    in_.store.choose(*chosen_);
    in_.workers.submit([this] {
        const auto saved = in_.store.save();
        if (!saved)
            in_.loop.post([this, saved] {
                in_.publisher.say(LogLevel::error, Happening::trouble,
                                  "the chosen profile will not outlast a restart: " + saved.error().text());
            });
    });
}

Result<Cookie> Wishes::hold(Hold hold)
{
    if (const auto* profile = std::get_if<std::string>(&hold.wish); profile && !policy_.profiles.contains(*profile))
        return no_such_profile(*profile);
    auto cookie = holds_.add(std::move(hold));
    if (cookie)
        holds_changed();
    return cookie;
}

bool Wishes::release(Cookie cookie)
{
    if (!holds_.release(cookie))
        return false;
    holds_changed();
    hearer_.released(cookie);
    return true;
}

void Wishes::client_left(const std::string& sender)
{
    if (!holds_.of_sender(sender))
        return;
    const auto ended = holds_.release_if([&](const Hold& hold) { return hold.sender == sender; });
    holds_changed();
    for (const Cookie cookie : ended)
        hearer_.released(cookie);
}

void Wishes::follow(const std::optional<std::string>& profile)
{
    if (!following())
        return;
    if (profile && !policy_.profiles.contains(*profile)) {
        if (std::exchange(unknown_followed_, printable(*profile)) == printable(*profile))
            return;
        in_.publisher.say(
            LogLevel::warning, Happening::profile,
            fmt::format("power-profiles-daemon's profile is \"{}\", which we do not have; {} stays", unknown_followed_, base_));
        return;
    }
    unknown_followed_.clear();
    followed_ = profile;
    const std::string base = find_base();
    if (base == base_)
        return;
    base_ = base;
    in_.publisher.say(LogLevel::info, Happening::profile,
                      fmt::format("the profile is {} now, {}", base_,
                                  profile ? "as power-profiles-daemon says" : "since power-profiles-daemon is not there"));
    in_.reconciler.want(holds_.wish(base_));
    if (profile) // Somebody has set it, there instead of here.
        in_.reconciler.claim();
    hearer_.changed();
}

void Wishes::holds_changed()
{
    in_.reconciler.want(holds_.wish(base_));
    hearer_.changed();
}

Refusal Wishes::no_such_profile(const std::string& name) const
{
    std::vector<std::string_view> names;
    for (const auto& [known, profile] : policy_.profiles)
        names.push_back(known);
    return {"profile", printable(name),
            fmt::format("there is none of that name{}; there are {}", suggestion(name, names), fmt::join(names, ", ")),
            RefusalKind::absent};
}

} // namespace nvmepolicy
