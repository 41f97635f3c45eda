// SPDX-License-Identifier: LGPL-2.1-or-later
// A limit that was there before us is never exceeded, whoever set it and when.
#include "drives.h"
#include "nvmepolicy/decide_apst.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

const auto any = LatencyTolerance::any();

// R16: a limit that was there before us.
struct CeilingRow {
    std::string name;
    std::optional<std::uint64_t> parameter;
    LatencyTolerance found;                ///< in the file
    std::optional<LatencyTolerance> first; ///< in the ledger; none: never touched
    std::string profile;
    bool allow_deeper;
    LatencyTolerance tolerance;
    std::optional<Ceiling> ceiling;
};
void PrintTo(const CeilingRow& row, std::ostream* out)
{
    *out << row.name;
}

class ACeiling : public testing::TestWithParam<CeilingRow> {};

TEST_P(ACeiling, IsNeverExceeded)
{
    const CeilingRow& row = GetParam();
    Case c = case_of("samsung-990-evo-plus-4tb", row.found);
    c.machine.default_ps_max_latency_us = row.parameter;
    c.wish.profile = row.profile;
    c.policy.apst.allow_deeper.value = row.allow_deeper;
    if (row.first) {
        c.ledger.emplace();
        c.ledger->first = *row.first;
        c.ledger->ours = row.found;
    }
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.ceiling, row.ceiling);
    EXPECT_EQ(d.tolerance, row.tolerance);
}

Ceiling by_parameter(std::int64_t limit, bool binds = true, bool lifted = false)
{
    return {Microseconds{limit}, "nvme_core.default_ps_max_latency_us=" + std::to_string(limit), binds, lifted};
}
Ceiling by_first_sight(std::int64_t limit, bool binds = true, bool lifted = false)
{
    return {Microseconds{limit}, std::to_string(limit) + " found in power/pm_qos_latency_tolerance_us at first sight", binds,
            lifted};
}

/// 100000 at boot, 25000 by us, and then somebody else.
Case after_somebody_wrote(const LatencyTolerance& theirs)
{
    Case c = case_of("samsung-990-evo-plus-4tb", us(100000));
    c.kernel_took(us(25000));
    c.controller.tolerance = std::optional{theirs};
    return c;
}

TEST(AValueThatSomebodyLoweredAfterUs, IsNotRaisedAgain)
{
    // What one does when a drive has dropped out.
    const Case c = after_somebody_wrote(us(0));
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.tolerance, us(0));
    ASSERT_TRUE(d.ceiling);
    EXPECT_EQ(d.ceiling->source, "0 written to power/pm_qos_latency_tolerance_us by somebody else");
    EXPECT_TRUE(d.ceiling->binds);
}
TEST(AValueThatSomebodyLoweredAfterUs, IsRaisedAgainWithEnforceOrAllowDeeper)
{
    Case c = after_somebody_wrote(us(0));
    c.policy.apst.on_conflict.value = OnConflict::enforce;
    EXPECT_EQ(c.decide().tolerance, us(25000));
    c.policy.apst.on_conflict.value = OnConflict::yield;
    c.policy.apst.allow_deeper.value = true;
    EXPECT_EQ(c.decide().tolerance, us(25000));
}
TEST(AValueThatSomebodyRaisedAfterUs, IsLoweredToTheBound)
{
    EXPECT_EQ(after_somebody_wrote(us(100001)).decide().tolerance, us(25000));
    EXPECT_EQ(after_somebody_wrote(LatencyTolerance::any()).decide().tolerance, us(25000));
}

INSTANTIATE_TEST_SUITE_P(
    Set, ACeiling,
    testing::Values(
        CeilingRow{"parameter_0", 0, us(0), {}, "balanced", false, us(0), by_parameter(0)},
        CeilingRow{"parameter_0_power_saver", 0, us(0), {}, "power-saver", false, us(0), by_parameter(0)},
        CeilingRow{"parameter_0_lifted", 0, us(0), {}, "balanced", true, us(25000), by_parameter(0, true, true)},
        CeilingRow{"parameter_0_lifted_power_saver", 0, us(0), {}, "power-saver", true, any, by_parameter(0, true, true)},
        CeilingRow{"parameter_0_performance", 0, us(0), {}, "performance", false, us(0), by_parameter(0, false)},
        CeilingRow{"parameter_0_after_our_write", 0, us(25000), us(0), "balanced", false, us(0), by_parameter(0)},
        CeilingRow{"parameter_5500", 5500, us(5500), {}, "balanced", false, us(5500), by_parameter(5500)},
        CeilingRow{"parameter_15000", 15000, us(15000), {}, "balanced", false, us(15000), by_parameter(15000)},
        CeilingRow{
            "parameter_15000_performance", 15000, us(15000), {}, "performance", false, us(0), by_parameter(15000, false)},
        CeilingRow{
            "parameter_15000_lifted", 15000, us(15000), {}, "balanced", true, us(25000), by_parameter(15000, true, true)},
        CeilingRow{"parameter_24999", 24999, us(24999), {}, "balanced", false, us(24999), by_parameter(24999)},
        CeilingRow{"parameter_25000_is_compiled_in", 25000, us(25000), {}, "power-saver", false, any, {}},
        CeilingRow{"parameter_25001", 25001, us(25001), {}, "power-saver", false, us(25001), by_parameter(25001)},
        CeilingRow{"parameter_99999", 99999, us(99999), {}, "power-saver", false, us(99999), by_parameter(99999)},
        CeilingRow{"parameter_100000_is_compiled_in", 100000, us(100000), {}, "power-saver", false, any, {}},
        CeilingRow{"parameter_100001", 100001, us(100001), {}, "power-saver", false, us(100001), by_parameter(100001)},
        CeilingRow{"parameter_2147483646",
                   2147483646,
                   us(2147483646),
                   {},
                   "power-saver",
                   false,
                   us(2147483646),
                   by_parameter(2147483646)},
        CeilingRow{"parameter_2147483647_reads_any", 2147483647, any, {}, "power-saver", false, any, {}},
        CeilingRow{"parameter_2_to_the_32", 4294967296, any, {}, "power-saver", false, any, {}},
        CeilingRow{"parameter_2_to_the_64", UINT64_MAX, any, {}, "balanced", false, us(25000), {}},
        CeilingRow{"parameter_absent_file_100000", {}, us(100000), {}, "power-saver", false, any, {}},
        CeilingRow{"parameter_absent_file_25000", {}, us(25000), {}, "power-saver", false, any, {}},
        CeilingRow{"parameter_absent_file_5500", {}, us(5500), {}, "power-saver", false, us(5500), by_first_sight(5500)},
        CeilingRow{"parameter_absent_file_0", {}, us(0), {}, "balanced", false, us(0), by_first_sight(0)},
        CeilingRow{"parameter_absent_file_auto", {}, LatencyTolerance::automatic(), {}, "power-saver", false, any, {}},
        CeilingRow{"first_sight_0", 100000, us(0), {}, "balanced", false, us(0), by_first_sight(0)},
        CeilingRow{"first_sight_5500", 100000, us(5500), {}, "balanced", false, us(5500), by_first_sight(5500)},
        CeilingRow{
            "first_sight_5500_lifted", 100000, us(5500), {}, "balanced", true, us(25000), by_first_sight(5500, true, true)},
        CeilingRow{"first_sight_any_over_100000", 100000, any, {}, "power-saver", false, any, {}},
        CeilingRow{"first_sight_above_the_parameter", 5500, us(100000), {}, "balanced", false, us(5500), by_parameter(5500)},
        CeilingRow{"first_sight_below_the_parameter", 15000, us(5500), {}, "balanced", false, us(5500), by_first_sight(5500)},
        CeilingRow{
            "first_sight_25000_of_100000", 100000, us(25000), {}, "power-saver", false, us(25000), by_first_sight(25000)},
        CeilingRow{"ledger_keeps_first_sight", 100000, us(25000), us(5500), "balanced", false, us(5500), by_first_sight(5500)},
        CeilingRow{"ledger_0_after_the_parameter_was_changed", 100000, us(0), us(0), "balanced", false, us(0),
                   by_first_sight(0)},
        CeilingRow{"our_own_value_is_no_ceiling", 100000, us(25000), us(100000), "power-saver", false, any, {}},
        CeilingRow{
            "ledger_auto_is_no_ceiling", 100000, us(25000), LatencyTolerance::automatic(), "power-saver", false, any, {}}),
    [](const auto& row) { return row.param.name; });

TEST(ACeilingThatBinds, IsTheOrigin)
{
    Case c = case_of("samsung-990-evo-plus-4tb", us(0));
    c.machine.default_ps_max_latency_us = 0;
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.origin, "ceiling nvme_core.default_ps_max_latency_us=0");
    EXPECT_EQ(d.wished, LatencyBound{25ms});
    EXPECT_EQ(d.bound, LatencyBound{0us});
}

TEST(ACalibratedState, AboveTheCeilingIsNotReached)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.machine.default_ps_max_latency_us = 42999;
    c.measured = {{4, 18ms}};
    EXPECT_EQ(c.decide().tolerance, us(25000));
    c.machine.default_ps_max_latency_us = 43000;
    c.controller.tolerance = std::optional{us(43000)};
    EXPECT_EQ(c.decide().tolerance, us(43000));
    c.machine.default_ps_max_latency_us = 30000;
    c.controller.tolerance = std::optional{us(30000)};
    c.policy.apst.allow_deeper.value = true;
    EXPECT_EQ(c.decide().tolerance, us(43000));
}

} // namespace
} // namespace nvmepolicy
