// SPDX-License-Identifier: LGPL-2.1-or-later
// The largest useful tolerance that admits no unwanted state, on captured drives and on drives that nobody would build.
#include "nvmepolicy/decide_apst.h"

#include <random>

#include "drives.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

const auto any = LatencyTolerance::any();

Case on_battery(Case c)
{
    c.machine.power_source = PowerSource::battery;
    return c;
}

Case with_profile(Case c, const std::string& profile)
{
    c.wish.profile = profile;
    return c;
}

std::vector<PowerState> three_and(std::vector<PowerState> sleeping)
{
    std::vector<PowerState> states{operational(0), operational(1), operational(2)};
    states.insert(states.end(), sleeping.begin(), sleeping.end());
    return states;
}

// Samsung 990 EVO Plus: PS3 wakes in 4600 us, PS4 in 43000 us.
TEST(A990EvoPlus, KeepsPs4OutOf25MillisecondsByTheBoundItself)
{
    const ApstDecision d = case_of("samsung-990-evo-plus-4tb").decide();
    EXPECT_EQ(d.support, ApstSupport::supported);
    EXPECT_EQ(d.tolerance, us(25000));
    EXPECT_EQ(d.rule, ToleranceRule::bound);
    EXPECT_EQ(d.reason, "the bound of 25 ms itself");
    EXPECT_EQ(d.origin, "profile balanced");
    EXPECT_EQ(d.written_at, "built-in default");
    EXPECT_EQ(d.unwanted, (std::vector{UnwantedState{4, 43000us, WakeSource::advertised}}));
    EXPECT_EQ(d.ceiling, std::nullopt);
    EXPECT_EQ(raw_entries(d.predicted.feature, 5), (std::vector<std::uint64_t>{0x6418, 0x6418, 0x6418, 0, 0}));
}

TEST(A990EvoPlus, WakesIn4600MicrosecondsAsAdvertised)
{
    const Case c = case_of("samsung-990-evo-plus-4tb");
    const IdleOutlook outlook = idle_outlook(c.decide().predicted.feature, c.controller.identify->power_states, c.measured);
    EXPECT_EQ(outlook.deepest_state, 3);
    EXPECT_EQ(outlook.wake_latency, 4600us);
    EXPECT_EQ(outlook.wake_source, WakeSource::advertised);
    EXPECT_EQ(outlook.round_trip, 6200us);
    EXPECT_EQ(outlook.idle_power, Microwatts{80'000});
    EXPECT_TRUE(outlook.idle_power_is_maximum);
}

TEST(A990EvoPlus, MeasuredAt18MillisecondsMaySleepInPs4)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.measured = {{4, 18ms}};
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.tolerance, us(43000));
    EXPECT_EQ(d.rule, ToleranceRule::reaches_calibrated);
    EXPECT_EQ(d.reason, "the 43 ms that PS4 advertises, since it was measured to wake in 18 ms, within the bound of 25 ms");
    EXPECT_TRUE(d.unwanted.empty());
    const IdleOutlook outlook = idle_outlook(d.predicted.feature, c.controller.identify->power_states, c.measured);
    EXPECT_EQ(outlook.deepest_state, 4);
    EXPECT_EQ(outlook.wake_latency, 18ms);
    EXPECT_EQ(outlook.wake_source, WakeSource::measured);
}

TEST(A990EvoPlus, MeasuredAtTheBoundIsWithinIt)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.measured = {{4, 25000us}};
    EXPECT_EQ(c.decide().tolerance, us(43000));
    c.measured = {{4, 25001us}};
    EXPECT_EQ(c.decide().tolerance, us(25000));
    EXPECT_EQ(c.decide().unwanted, (std::vector{UnwantedState{4, 25001us, WakeSource::measured}}));
}

TEST(A990EvoPlus, OnBatteryMaySleepInPs4)
{
    const ApstDecision d = on_battery(case_of("samsung-990-evo-plus-4tb")).decide();
    EXPECT_EQ(d.tolerance, us(100000));
    EXPECT_EQ(d.predicted.feature.deepest_state(), 4);
    EXPECT_TRUE(d.unwanted.empty());
}

// SK hynix BC501: PS4 advertises 5000 us and was measured at 12 ms.
TEST(ABc501, SleepsInPs4AsLongAsNobodyMeasured)
{
    const ApstDecision d = case_of("skhynix-bc501a-128gb").bound(10ms).decide();
    EXPECT_EQ(d.tolerance, us(10000));
    EXPECT_EQ(d.predicted.feature.deepest_state(), 4);
}

TEST(ABc501, MeasuredAt12MillisecondsIsKeptOutOfPs4)
{
    Case c = case_of("skhynix-bc501a-128gb").bound(10ms);
    c.measured = {{4, 12ms}, {3, 2ms}};
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.unwanted, (std::vector{UnwantedState{4, 12ms, WakeSource::measured}}));
    EXPECT_EQ(d.tolerance, us(4999));
    EXPECT_EQ(d.rule, ToleranceRule::excludes_unwanted);
    EXPECT_EQ(d.reason, "one less than the 5000 us that the unwanted PS4 advertises");
    EXPECT_EQ(raw_entries(d.predicted.feature, 5), (std::vector<std::uint64_t>{0x6418, 0x6418, 0x6418, 0, 0}));
}

TEST(ABc501, MeasuredSlowInBothSleepStatesStaysAwake)
{
    Case c = case_of("skhynix-bc501a-128gb").bound(10ms);
    c.measured = {{4, 12ms}, {3, 11ms}};
    const ApstDecision d = c.decide();
    EXPECT_EQ(unwanted_states(d), (std::vector{3, 4}));
    EXPECT_EQ(d.tolerance, us(999));
    EXPECT_EQ(d.predicted.feature.deepest_state(), std::nullopt);
}

TEST(AForceMp500, OnPowerSaverGetsTheKernelsWordForNoConstraint)
{
    const ApstDecision d = with_profile(case_of("corsair-mp500-120gb"), "power-saver").decide();
    EXPECT_EQ(d.tolerance, any);
    EXPECT_EQ(d.rule, ToleranceRule::no_constraint);
    EXPECT_TRUE(d.unwanted.empty());
    EXPECT_EQ(d.predicted.feature.deepest_state(), 3);
}

TEST(A970EvoPlus, OnPerformanceDoesNotSleep)
{
    const ApstDecision d = with_profile(case_of("samsung-970-evo-plus-2tb"), "performance").decide();
    EXPECT_EQ(d.tolerance, us(0));
    EXPECT_EQ(d.rule, ToleranceRule::bound);
    EXPECT_FALSE(d.predicted.feature.enabled);
    EXPECT_TRUE(d.predicted.command_sent);
    EXPECT_EQ(d.predicted.feature, ApstFeature{});
}

TEST(A970EvoPlus, OnPerformanceOnBatteryAdmitsTenMilliseconds)
{
    const ApstDecision d = on_battery(with_profile(case_of("samsung-970-evo-plus-2tb"), "performance")).decide();
    EXPECT_EQ(d.tolerance, us(10000));
    EXPECT_EQ(d.predicted.feature.deepest_state(), 4);
}

TEST(ADriveWithoutToleranceFile, IsNotSupported)
{
    Case c = case_of("adata-sx8000np-256gb");
    c.controller.tolerance = std::optional<LatencyTolerance>{};
    EXPECT_EQ(c.decide().support, ApstSupport::not_supported);
    c = case_of("samsung-pm1733-7t6");
    c.controller.tolerance = std::optional<LatencyTolerance>{};
    EXPECT_EQ(c.decide().support, ApstSupport::not_supported);
}

TEST(ADriveWithApstaAndNoToleranceFile, IsOffByQuirk)
{
    Case c = case_of("kioxia-cd6-v-6t4");
    c.controller.tolerance = std::optional<LatencyTolerance>{};
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.support, ApstSupport::off_by_quirk);
    EXPECT_EQ(d.predicted, PredictedTable{});
}

TEST(ADriveThatGainsApstByItsFirmware, IsPickedUp)
{
    Case c = case_of("adata-sx8000np-256gb");
    c.controller.tolerance = std::optional<LatencyTolerance>{};
    ASSERT_EQ(c.decide().support, ApstSupport::not_supported);
    IdentifyController id = *c.controller.identify;
    id.apsta = 1;
    c.controller.identify = id;
    c.controller.tolerance = std::optional{us(100000)};
    EXPECT_EQ(c.decide().support, ApstSupport::supported);
    EXPECT_EQ(c.decide().tolerance, us(25000));
}

TEST(AController, WhoseIdentifyOrFileCouldNotBeReadIsUnknown)
{
    Case c = case_of("skhynix-bc501a-128gb");
    c.controller.tolerance = Refusal{"nvme0", "", "the controller is not live", RefusalKind::try_later};
    EXPECT_EQ(c.decide().support, ApstSupport::unknown);
    c = case_of("skhynix-bc501a-128gb");
    c.controller.identify = Refusal{"nvme0", "", "the controller is not live", RefusalKind::try_later};
    EXPECT_EQ(c.decide().support, ApstSupport::unknown);
}

TEST(ASn550, OnPowerSaverIsPredictedUnderItsQuirk)
{
    Case c = with_profile(case_of("wd-blue-sn550-500gb"), "power-saver");
    EXPECT_EQ(c.decide().predicted.feature.deepest_state(), 4);
    c.controller.quirks = {{.no_deepest_ps = true}, QuirkKnowledge::Source::device_table};
    EXPECT_EQ(c.decide().tolerance, any);
    EXPECT_EQ(c.decide().predicted.feature.deepest_state(), 3);
    c.machine.force_apst = true; // lifts the quirk
    EXPECT_EQ(c.decide().predicted.feature.deepest_state(), 4);
}

// R14: figures that nobody should trust.
TEST(AnEbsVolume, WithOneSecondLatenciesAndAHundredthOfAWattStaysAwake)
{
    PowerState ps0 = operational(0);
    ps0.max_power = Microwatts{10'000};
    ps0.entry_latency = ps0.exit_latency = 1s;
    const Case c = case_of({ps0});
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.tolerance, us(25000));
    EXPECT_TRUE(d.unwanted.empty());
    EXPECT_EQ(idle_outlook(d.predicted.feature, c.controller.identify->power_states, {}), IdleOutlook{});
}

TEST(ADrive, WhoseIdlePowerIsAboveItsMaximumShowsTheIdlePower)
{
    PowerState ps3 = sleep_state(3, 1000, 1000);
    ps3.max_power = Microwatts{20'000};
    ps3.idle_power = Microwatts{900'000};
    const Case c = case_of(three_and({ps3}));
    const IdleOutlook outlook = idle_outlook(c.decide().predicted.feature, c.controller.identify->power_states, {});
    EXPECT_EQ(outlook.idle_power, Microwatts{900'000});
    EXPECT_FALSE(outlook.idle_power_is_maximum);
}

TEST(ADrive, WithoutPowerFiguresHasNone)
{
    PowerState ps3 = sleep_state(3, 1000, 1000);
    ps3.max_power.reset();
    const Case c = case_of(three_and({ps3}));
    const IdleOutlook outlook = idle_outlook(c.decide().predicted.feature, c.controller.identify->power_states, {});
    EXPECT_EQ(outlook.deepest_state, 3);
    EXPECT_EQ(outlook.idle_power, std::nullopt);
    EXPECT_FALSE(outlook.idle_power_is_maximum);
}

TEST(ADrive, WithAnEntryLatencyAlone_HasNoRoundTrip)
{
    const Case c = with_profile(case_of(three_and({sleep_state(3, 1'150'000, 0)})), "power-saver");
    const auto table = predict_apst_table({true, 3, c.controller.identify->power_states, {}, {.primary_timeout_ms = 0}}, any);
    const IdleOutlook outlook = idle_outlook(table.feature, c.controller.identify->power_states, {});
    EXPECT_EQ(outlook.deepest_state, 3);
    EXPECT_EQ(outlook.wake_latency, std::nullopt);
    EXPECT_EQ(outlook.round_trip, std::nullopt);
}

TEST(AnOutlook, ForATableThatNamesAStateThatIsNotThereHasOnlyItsNumber)
{
    ApstFeature table;
    table.enabled = true;
    table.entries[0].raw = (30U << 3U) | (100U << 8U);
    const std::vector<PowerState> states = three_and({});
    const IdleOutlook outlook = idle_outlook(table, states, {});
    EXPECT_EQ(outlook.deepest_state, 30);
    EXPECT_EQ(outlook.wake_latency, std::nullopt);
}

TEST(ADriveWith32SleepStates, IsDecidedAsAnyOther)
{
    std::vector<PowerState> states{operational(0)};
    for (int i = 1; i < 32; ++i)
        states.push_back(sleep_state(i, 1000, 1000 * i));
    const ApstDecision d = case_of(states).bound(10ms).decide();
    EXPECT_EQ(d.tolerance, us(10000));
    EXPECT_EQ(d.unwanted.size(), 21U);
    EXPECT_EQ(d.predicted.feature.deepest_state(), 10);
}

TEST(ADriveWithNpss40, IsNotUsedByTheKernel)
{
    std::vector<PowerState> states{operational(0)};
    for (int i = 1; i < 32; ++i)
        states.push_back(sleep_state(i, 1000, 1000));
    Case c = case_of(states);
    IdentifyController id = *c.controller.identify;
    id.npss = 40;
    c.controller.identify = id;
    EXPECT_EQ(c.decide().support, ApstSupport::npss_invalid);
    EXPECT_EQ(c.decide().predicted, PredictedTable{});
}

TEST(UnreportedLatencies, AreUnwantedUnderEveryNumber)
{
    // The kernel admits 0 at every value but 0.
    const ApstDecision d = case_of(three_and({sleep_state(3, 0, 0), sleep_state(4, 0, 0)})).decide();
    EXPECT_EQ(unwanted_states(d), (std::vector{3, 4}));
    EXPECT_EQ(d.tolerance, us(0));
    EXPECT_EQ(d.rule, ToleranceRule::excludes_unwanted);
    EXPECT_EQ(d.reason, "0, since PS3 is unwanted and leaves its exit latency unreported, which the kernel admits at every "
                        "other value");
}

TEST(UnreportedLatencies, AreFineWithoutABound)
{
    const ApstDecision d = with_profile(case_of(three_and({sleep_state(3, 0, 0)})), "power-saver").decide();
    EXPECT_TRUE(d.unwanted.empty());
    EXPECT_EQ(d.tolerance, any);
}

TEST(UnreportedLatencies, ThatWereMeasuredAreKnown)
{
    Case c = case_of(three_and({sleep_state(3, 0, 0)}));
    c.measured = {{3, 2ms}};
    EXPECT_TRUE(c.decide().unwanted.empty());
    EXPECT_EQ(c.decide().tolerance, us(25000));
    c.measured = {{3, 26ms}};
    EXPECT_EQ(c.decide().tolerance, us(0));
}

TEST(AnExitLatencyOfOneMicrosecond, IsKeptOutByZero)
{
    Case c = case_of(three_and({sleep_state(3, 5, 1)}));
    c.measured = {{3, 30ms}};
    EXPECT_EQ(c.decide().tolerance, us(0));
    EXPECT_FALSE(c.decide().predicted.feature.enabled);
}

TEST(AMeasurement, OfAnOperationalOrAMissingStateSaysNothing)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.measured = {{2, 1us}, {9, 1us}, {-1, 1us}};
    EXPECT_EQ(c.decide().tolerance, us(25000));
    EXPECT_EQ(unwanted_states(c.decide()), (std::vector{4}));
}

TEST(ACalibratedState, BehindAnUnwantedOneIsNotReached)
{
    // PS4 would be fine at 43000, but that would admit PS3, which advertises 30000 and was measured at 40 ms.
    Case c = case_of(three_and({sleep_state(3, 1000, 30000), sleep_state(4, 1000, 43000)}));
    c.measured = {{3, 40ms}, {4, 5ms}};
    EXPECT_EQ(c.decide().tolerance, us(25000));
    EXPECT_EQ(unwanted_states(c.decide()), (std::vector{3}));
}

TEST(ACalibratedState, ThatNoNumberReachesLeavesTheBound)
{
    // 3 s is 3000000 us, but a file holds at most 2147483646: this exit latency is above all of them.
    Case c = case_of(three_and({sleep_state(3, 1000, 1000), sleep_state(4, 1000, 3'000'000'000)}));
    c.measured = {{4, 5ms}};
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.tolerance, us(25000));
    EXPECT_EQ(d.rule, ToleranceRule::bound);
}

TEST(AProfileThatIsNotThere, IsTakenAsBalanced)
{
    const ApstDecision d = with_profile(case_of("samsung-990-evo-plus-4tb"), "turbo").decide();
    EXPECT_EQ(d.tolerance, us(25000));
    EXPECT_EQ(d.origin, "profile balanced");
}

TEST(TheStrictestHold, Wins)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.wish.holds = {{{10ms}, "backup"}, {{2ms}, "audio"}, {{5ms}, "game"}, {{}, "nobody"}};
    const ApstDecision d = c.decide();
    EXPECT_EQ(d.tolerance, us(2000));
    EXPECT_EQ(d.origin, "hold of audio");
    EXPECT_EQ(d.written_at, "");
    EXPECT_EQ(unwanted_states(d), (std::vector{3, 4}));
}

TEST(AHold, DoesNotLoosenTheProfile)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.wish.holds = {{{80ms}, "backup"}, {{25ms}, "the same"}};
    EXPECT_EQ(c.decide().tolerance, us(25000));
    EXPECT_EQ(c.decide().origin, "profile balanced");
}

TEST(AHoldOfZero, SwitchesSleepOff)
{
    Case c = with_profile(case_of("samsung-990-evo-plus-4tb"), "power-saver");
    c.wish.holds = {{{0us}, "audio"}};
    EXPECT_EQ(c.decide().tolerance, us(0));
}

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

TEST(ModeObserve, DecidesAllTheSame)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.policy.apst.mode.value = ManageMode::observe;
    EXPECT_EQ(c.decide().mode, ManageMode::observe);
    EXPECT_EQ(c.decide().tolerance, us(25000));
}

// ---------------------------------------------------------------------------------------------------------------------
// Drives that nobody would build, by the hundred thousand; one seed, one run.

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
