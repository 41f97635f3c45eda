// SPDX-License-Identifier: LGPL-2.1-or-later
// The largest useful tolerance that admits no unwanted state, on captured drives and on drives that nobody would build.
#include "nvmepolicy/decide_apst.h"

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

TEST(ModeObserve, DecidesAllTheSame)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.policy.apst.mode.value = ManageMode::observe;
    EXPECT_EQ(c.decide().mode, ManageMode::observe);
    EXPECT_EQ(c.decide().tolerance, us(25000));
}

} // namespace
} // namespace nvmepolicy
