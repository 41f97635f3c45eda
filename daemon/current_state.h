// SPDX-License-Identifier: LGPL-2.1-or-later
// What is known at this moment, for whoever asks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "host/host.h"
#include "listener.h"
#include "loop.h"
#include "reconcile/round.h"
#include "workers.h"

namespace nvmepolicy {

/// From the loop's thread only.
class CurrentState : public Listener {
public:
    CurrentState(Loop& loop, Workers& workers, Host& host) : loop_(loop), workers_(workers), host_(host) {}

    struct Hearer {
        std::function<void(const Outcome&)> looked = [](const Outcome&) {};
        std::function<void(const std::string& controller)> changed = [](const std::string&) {}; ///< or has come, or left
        std::function<void()> subsystems_changed = [] {};
        std::function<void()> circumstances_changed = [] {};
    };
    void tell(Hearer hearer) { hearer_ = std::move(hearer); }

    void looked(const Outcome& outcome) override;
    void stuck(const std::string& controller) override;
    void left(const std::string& controller) override;
    void circumstances_changed() override;

    [[nodiscard]] const std::map<std::string, std::shared_ptr<const Outcome>>& outcomes() const { return outcomes_; }
    [[nodiscard]] bool is_stuck(const std::string& controller) const { return stuck_.contains(controller); }
    [[nodiscard]] const std::vector<Subsystem>& subsystems() const { return subsystems_; }
    /// All of it, controllers in their natural order.
    [[nodiscard]] Round round(const Circumstances& circumstances) const;

private:
    void look_at_subsystems();

    Loop& loop_;
    Workers& workers_;
    Host& host_;
    Hearer hearer_;
    std::map<std::string, std::shared_ptr<const Outcome>> outcomes_;
    std::set<std::string> stuck_;
    std::vector<Subsystem> subsystems_;
    Loop::Source subsystems_soon_;
    bool looking_at_subsystems_ = false;
    bool subsystems_dirty_ = false;
};

} // namespace nvmepolicy
