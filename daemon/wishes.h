// SPDX-License-Identifier: LGPL-2.1-or-later
// Whose wishes count: the configuration's, the profile that somebody chose, that of a service that is followed, and holds.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "host/profile_store.h"
#include "loop.h"
#include "nvmepolicy/holds.h"
#include "publish.h"
#include "reconciler.h"
#include "workers.h"

namespace nvmepolicy {

/// From the loop's thread only.
class Wishes {
public:
    struct Surroundings {
        Loop& loop;
        Workers& workers;
        Reconciler& reconciler;
        const Publisher& publisher;
        ProfileStore& store;
    };
    /// `chosen`: what an earlier process was told.
    Wishes(const Surroundings& surroundings, Policy policy, std::optional<ChosenProfile> chosen);

    /// What is told of changes, after they were passed on.
    struct Hearer {
        std::function<void()> changed = [] {};
        std::function<void(Cookie)> released = [](Cookie) {};
    };
    void tell(Hearer hearer) { hearer_ = std::move(hearer); }

    /// The configuration was read again. Holds of profiles that it no longer has end.
    void configure(Policy policy);
    /// Becomes the base profile and is kept over a restart. Refuses `absent` without such a profile, `denied` while another
    /// service is followed.
    [[nodiscard]] Result<void> choose(const std::string& profile);
    /// Refuses `absent` where it names a profile that is not there.
    [[nodiscard]] Result<Cookie> hold(Hold hold);
    [[nodiscard]] const Hold* find(Cookie cookie) const { return holds_.find(cookie); }
    /// False: there is no such hold.
    bool release(Cookie cookie);
    void client_left(const std::string& sender);
    /// What the followed service's profile is; none: it is not there. A profile that we do not have changes nothing.
    void follow(const std::optional<std::string>& profile);

    /// Which profile is not there, and which are.
    [[nodiscard]] Refusal no_such_profile(const std::string& name) const;
    [[nodiscard]] const std::string& base() const { return base_; }
    [[nodiscard]] std::string active() const { return holds_.wish(base_).profile; }
    [[nodiscard]] const Holds& holds() const { return holds_; }
    [[nodiscard]] const Policy& policy() const { return policy_; }

private:
    [[nodiscard]] bool following() const { return policy_.daemon.follow.value != Follow::none; }
    [[nodiscard]] std::string find_base();
    void holds_changed();
    void save();

    Surroundings in_;
    Hearer hearer_;
    Policy policy_;
    std::optional<ChosenProfile> chosen_;
    std::optional<std::string> followed_;
    std::string unknown_followed_; ///< the profile that was last followed in vain; told of once
    std::string base_;
    Holds holds_;
};

} // namespace nvmepolicy
