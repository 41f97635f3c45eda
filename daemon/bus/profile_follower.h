// SPDX-License-Identifier: LGPL-2.1-or-later
// What power-profiles-daemon's profile is, or that of a service that has taken its names (tuned-ppd, tlp-pd). Only listens:
// never starts it, and never sets its profile.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "bus/signals.h"
#include "loop.h"

namespace nvmepolicy::bus {

class ProfileFollower {
public:
    /// `heard` gets the profile; none: nobody has had the names for some time.
    using Heard = std::function<void(const std::optional<std::string>& profile)>;
    ProfileFollower(sdbus::IConnection& connection, Signals& signals, Loop& loop, Heard heard)
        : connection_(connection)
        , signals_(signals)
        , loop_(loop)
        , heard_(std::move(heard))
    {
    }
    void follow(bool wanted);

private:
    void owner_changed();
    void ask(const std::string& owner, const char* path, const char* interface);
    void properties_changed(sdbus::Message& message);
    void profile_is(const std::map<std::string, sdbus::Variant>& properties);

    sdbus::IConnection& connection_;
    Signals& signals_;
    Loop& loop_;
    Heard heard_;
    bool following_ = false;
    std::string asked_owner_; ///< who was asked last, and may change that answer
    std::unique_ptr<sdbus::IProxy> service_;
    Loop::Source gone_;
};

} // namespace nvmepolicy::bus
