// SPDX-License-Identifier: LGPL-2.1-or-later
// Holds: what somebody asks for, for as long as he keeps asking.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nvmepolicy/policy.h"

namespace nvmepolicy {

/// One drive, whatever name it gets later.
struct HeldController {
    ControllerId id;
    std::string name; ///< at the time, for people
    friend bool operator==(const HeldController&, const HeldController&) = default;
};

struct LatencyWish {
    Microseconds max_wake_latency{0};
    std::optional<HeldController> only; ///< none: all drives
    friend bool operator==(const LatencyWish&, const LatencyWish&) = default;
};

struct Hold {
    std::variant<std::string, LatencyWish> wish; ///< a profile's name, or a latency
    std::string reason;                          ///< for people, as the client gave it
    std::string application_id;                  ///< likewise
    std::string sender;                          ///< unique bus name of the client, `:1.42`; the hold ends with it
    /// `org.example.App (reason)`, in characters that can be shown.
    [[nodiscard]] std::string who() const;
    friend bool operator==(const Hold&, const Hold&) = default;
};

using Cookie = std::uint32_t; ///< never 0

/// All holds there are. Not from several threads.
class Holds {
public:
    static constexpr std::size_t most = 1024;
    static constexpr std::size_t most_of_one_sender = 64;

    /// Refuses when there are too many.
    [[nodiscard]] Result<Cookie> add(Hold hold);
    [[nodiscard]] const Hold* find(Cookie cookie) const;
    /// False: there is no such hold.
    bool release(Cookie cookie);
    /// Releases those that `ends` says yes to, and returns their cookies.
    std::vector<Cookie> release_if(const std::function<bool(const Hold&)>& ends);
    /// The oldest first.
    [[nodiscard]] const std::map<Cookie, Hold>& all() const { return holds_; }
    [[nodiscard]] bool of_sender(const std::string& sender) const { return per_sender_.contains(sender); }

    /// What is wanted with all of them on top of `base`. Of profiles power-saver wins, as with power-profiles-daemon, then
    /// performance, then the newest; of latencies the strictest.
    [[nodiscard]] Wish wish(const std::string& base) const;

private:
    std::map<Cookie, Hold> holds_;
    std::map<std::string, std::size_t> per_sender_;
    Cookie last_ = 0;
};

} // namespace nvmepolicy
