// SPDX-License-Identifier: LGPL-2.1-or-later
#include "current_state.h"

#include <algorithm>

#include "host/object_names.h"
#include "host/observe.h"

namespace nvmepolicy {
namespace {

/// What a subsystem's description depends on.
bool same_place(const Outcome& a, const Outcome& b)
{
    const auto disks = [](const Outcome& o) {
        std::vector<std::string> names;
        if (o.controller)
            for (const Leaf& leaf : o.controller->leaves)
                names.push_back(leaf.name);
        return names;
    };
    return a.controller.has_value() == b.controller.has_value() && (!a.controller || a.controller->id == b.controller->id)
           && disks(a) == disks(b);
}

} // namespace

void CurrentState::looked(const Outcome& outcome)
{
    stuck_.erase(outcome.name);
    auto& slot = outcomes_[outcome.name];
    const bool moved = !slot || !same_place(*slot, outcome);
    slot = std::make_shared<const Outcome>(outcome);
    hearer_.looked(outcome);
    hearer_.changed(outcome.name);
    if (moved)
        look_at_subsystems();
}

void CurrentState::stuck(const std::string& controller)
{
    stuck_.insert(controller);
    if (!outcomes_.contains(controller)) {
        Outcome unknown;
        unknown.name = controller;
        unknown.error = Refusal{controller, "", "has not answered yet", RefusalKind::timed_out};
        outcomes_[controller] = std::make_shared<const Outcome>(std::move(unknown));
    }
    hearer_.changed(controller);
}

void CurrentState::left(const std::string& controller)
{
    stuck_.erase(controller);
    if (outcomes_.erase(controller) == 0)
        return;
    hearer_.changed(controller);
    look_at_subsystems();
}

void CurrentState::circumstances_changed()
{
    hearer_.circumstances_changed();
}

void CurrentState::look_at_subsystems()
{
    subsystems_dirty_ = true;
    if (looking_at_subsystems_ || subsystems_soon_)
        return;
    subsystems_soon_ = loop_.soon([this] {
        subsystems_soon_.reset();
        subsystems_dirty_ = false;
        looking_at_subsystems_ = true;
        workers_.submit([this] {
            auto found = observe_subsystems(host_);
            loop_.post([this, found = std::move(found)] {
                looking_at_subsystems_ = false;
                if (found != subsystems_) {
                    subsystems_ = found;
                    hearer_.subsystems_changed();
                }
                if (subsystems_dirty_)
                    look_at_subsystems();
            });
        });
    });
}

Round CurrentState::round(const Circumstances& circumstances) const
{
    Round round;
    round.circumstances = circumstances;
    for (const auto& [name, outcome] : outcomes_)
        round.outcomes.push_back(*outcome);
    std::ranges::sort(round.outcomes, natural_order, &Outcome::name);
    round.subsystems = subsystems_;
    return round;
}

} // namespace nvmepolicy
