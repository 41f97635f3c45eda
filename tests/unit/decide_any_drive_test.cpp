// SPDX-License-Identifier: LGPL-2.1-or-later
// Decisions about drives that nobody would build, by the hundred thousand; one seed, one run.
#include <random>

#include "drives.h"
#include "nvmepolicy/decide_apst.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

class Dice {
public:
    explicit Dice(std::uint32_t seed) : engine_(seed) {}
    std::size_t below(std::size_t n) { return engine_() % n; }
    bool one_in(std::size_t n) { return below(n) == 0; }
    std::int64_t latency()
    {
        constexpr std::int64_t interesting[] = {0,     1,     2,     999,    1000,   4999,   5000,       9999,       10000,
                                                10001, 24999, 25000, 25001,  42999,  43000,  99999,      100000,     100001,
                                                5499,  5500,  5501,  160000, 500000, 999999, 2147483646, 2147483645, 3};
        return interesting[below(std::size(interesting))];
    }

private:
    std::mt19937 engine_;
};

Case random_case(Dice& dice)
{
    std::vector<PowerState> states;
    const std::size_t count = dice.one_in(20) ? 32 : 1 + dice.below(6);
    for (std::size_t i = 0; i < count; ++i)
        states.push_back(dice.one_in(3) ? operational(static_cast<int>(i))
                                        : sleep_state(static_cast<int>(i), dice.latency(), dice.latency()));
    Case c = case_of(states, dice.one_in(4) ? LatencyTolerance::any() : us(dice.latency()));
    for (std::size_t i = 0; i < count; ++i)
        if (dice.one_in(3))
            c.measured.push_back({static_cast<int>(i), Microseconds{dice.latency()}});
    auto& profile = c.policy.profiles.at("balanced");
    profile.max_wake_latency.value = dice.one_in(6) ? LatencyBound{} : LatencyBound{Microseconds{dice.latency()}};
    profile.max_wake_latency_on_battery.value = {Microseconds{dice.latency()}};
    if (dice.one_in(3))
        c.machine.power_source = PowerSource::battery;
    for (std::size_t holds = dice.below(3); holds > 0; --holds)
        c.wish.holds.push_back({{Microseconds{dice.latency()}}, "somebody"});
    c.machine.default_ps_max_latency_us = dice.one_in(2) ? 100000 : static_cast<std::uint64_t>(dice.latency());
    if (dice.one_in(8))
        c.machine.default_ps_max_latency_us.reset();
    if (dice.one_in(2)) {
        c.ledger.emplace();
        c.ledger->first = dice.one_in(3) ? LatencyTolerance::automatic() : us(dice.latency());
        c.ledger->ours = **c.controller.tolerance;
    }
    c.policy.apst.allow_deeper.value = dice.one_in(3);
    if (dice.one_in(10))
        c.machine.apst.primary_timeout_ms = 0;
    return c;
}

/// The kernel's rule, told again.
bool admits(std::int64_t tolerance, const PowerState& s)
{
    return tolerance > 0 && (s.exit_latency ? s.exit_latency->count() : 0) <= tolerance;
}

std::optional<Microseconds> known_wake(const Case& c, const PowerState& s)
{
    for (const MeasuredWake& m : c.measured)
        if (m.state == s.index)
            return m.wake_latency;
    return s.exit_latency;
}

TEST(TheLargestUsefulTolerance, AdmitsNoUnwantedStateOnAnyDrive)
{
    Dice dice(20260820);
    for (int run = 0; run < 100'000 && !testing::Test::HasFailure(); ++run) {
        const Case c = random_case(dice);
        const ApstDecision d = c.decide();
        SCOPED_TRACE("run " + std::to_string(run));

        // Effective bound, told again.
        const auto& profile = c.policy.profiles.at("balanced");
        std::optional<Microseconds> bound = c.machine.power_source == PowerSource::battery
                                                ? profile.max_wake_latency_on_battery.value.limit
                                                : profile.max_wake_latency.value.limit;
        for (const LatencyHold& hold : c.wish.holds)
            bound = bound ? std::min(*bound, *hold.bound.limit) : *hold.bound.limit;
        EXPECT_EQ(d.wished.limit, bound);
        std::optional<std::int64_t> ceiling;
        const auto parameter = c.machine.default_ps_max_latency_us;
        if (parameter && *parameter != 100000 && *parameter != 25000)
            ceiling = static_cast<std::int64_t>(*parameter);
        const LatencyTolerance first = c.ledger ? c.ledger->first : **c.controller.tolerance;
        if (first.limit()) {
            const std::int64_t limit = first.limit()->count();
            const bool as_booted =
                parameter ? static_cast<std::int64_t>(*parameter) == limit : limit == 100000 || limit == 25000;
            if (!as_booted)
                ceiling = std::min(ceiling.value_or(limit), limit);
        }
        EXPECT_EQ(d.ceiling.has_value(), ceiling.has_value());
        const bool limited = ceiling && !c.policy.apst.allow_deeper.value;
        if (limited)
            bound = bound ? std::min(bound->count(), *ceiling) * 1us : *ceiling * 1us;
        ASSERT_EQ(d.bound.limit, bound);
        if (!bound) {
            EXPECT_EQ(d.tolerance, LatencyTolerance::any());
            EXPECT_TRUE(d.unwanted.empty());
            continue;
        }

        ASSERT_TRUE(d.tolerance.limit());
        const std::int64_t chosen = d.tolerance.limit()->count();
        std::vector<const PowerState*> unwanted;
        std::vector<std::int64_t> candidates{bound->count()};
        for (const PowerState& s : c.controller.identify->power_states) {
            if (s.operational)
                continue;
            const auto wake = known_wake(c, s);
            if (!wake || *wake > *bound)
                unwanted.push_back(&s);
            else if (s.exit_latency)
                candidates.push_back(s.exit_latency->count()); // Calibrated, where that is above the bound.
        }
        const auto allowed = [&](std::int64_t tolerance) {
            return std::none_of(unwanted.begin(), unwanted.end(), [&](auto* s) { return admits(tolerance, *s); })
                   && (!limited || tolerance <= *ceiling);
        };
        EXPECT_EQ(d.unwanted.size(), unwanted.size());
        EXPECT_TRUE(allowed(chosen)) << chosen;
        EXPECT_LE(chosen, *std::max_element(candidates.begin(), candidates.end()));
        for (const std::int64_t candidate : candidates)
            if (candidate > chosen) {
                EXPECT_FALSE(allowed(candidate)) << "chosen " << chosen << ", larger and useful is " << candidate;
            }
        if (chosen < bound->count()) {
            EXPECT_FALSE(allowed(chosen + 1)) << chosen;
        }

        // And what the kernel makes of it has no unwanted state as a target.
        for (const ApstEntry& entry : d.predicted.feature.entries)
            for (const PowerState* s : unwanted)
                EXPECT_FALSE(entry.raw != 0 && entry.target() == s->index) << "PS" << s->index;
        EXPECT_EQ(d.predicted.feature.enabled, chosen != 0);
    }
}

TEST(ADecision, IsTheSameOnceItWasWritten)
{
    // Otherwise every round would write again.
    Dice dice(878);
    for (int run = 0; run < 20'000 && !testing::Test::HasFailure(); ++run) {
        Case c = random_case(dice);
        const ApstDecision before = c.decide();
        if (!c.ledger) {
            c.ledger.emplace();
            c.ledger->first = **c.controller.tolerance;
        }
        c.kernel_took(before.tolerance);
        EXPECT_EQ(c.decide().tolerance, before.tolerance) << "run " << run;
        EXPECT_EQ(c.verify().agreement, Agreement::verified) << "run " << run << ": " << c.verify().reason;
        EXPECT_TRUE(c.plan().empty()) << "run " << run;
    }
}

} // namespace
} // namespace nvmepolicy
