// SPDX-License-Identifier: LGPL-2.1-or-later
// The sentences for the person whose laptop was slow this morning, and who wants to see the numbers.
#include "nvmepolicy/explain.h"

#include "drives.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

std::string told(const Case& c)
{
    std::string text;
    for (const std::string& line : explain_apst(c.question(), c.decide(), c.verify()))
        text += line + "\n";
    return text;
}

void expect_says(const Case& c, const std::string& sentence)
{
    const std::string text = told(c);
    EXPECT_NE(("\n" + text).find("\n" + sentence + "\n"), std::string::npos) << "not said: " << sentence << "\nbut:\n" << text;
}

void expect_silent_about(const Case& c, const std::string& words)
{
    const std::string text = told(c);
    EXPECT_EQ(text.find(words), std::string::npos) << text;
}

TEST(A990EvoPlus, IsExplained)
{
    const Case c = case_of("samsung-990-evo-plus-4tb").kernel_took(us(25000));
    expect_says(c, "The drive has 5 power states. It can sleep in PS3 (at most 80 mW, wakes in 4.6 ms, round trip 6.2 ms) and "
                   "PS4 (at most 7 mW, wakes in 43 ms, round trip 44.6 ms).");
    expect_says(c, "On AC, profile balanced allows a wake latency of 25 ms (built-in default).");
    expect_says(c, "PS4 is unwanted: it advertises a wake latency of 43 ms, above 25 ms.");
    expect_says(c, "So the tolerance is 25 ms: the bound of 25 ms itself.");
    expect_says(c, "From that the kernel makes: PS0-PS2 to PS3 after 100 ms without I/O.");
    expect_says(c, "Verified: the drive holds the predicted table: APST on down to PS3.");
    expect_says(c, "With profile performance the drive would not sleep.");
    expect_says(c, "With profile power-saver it would sleep down to PS4, at most 7 mW, and wake in 43 ms.");
    expect_says(c, "While the machine is suspended to idle, the kernel selects PS4 whatever the tolerance is.");
    expect_silent_about(c, "LIMITED");
}

TEST(A990EvoPlus, OnBatteryIsExplainedSo)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.machine.power_source = PowerSource::battery;
    expect_says(c, "On battery, profile balanced allows a wake latency of 100 ms (built-in default).");
    expect_says(
        c, "From that the kernel makes: PS0-PS2 to PS3 after 100 ms without I/O and PS3 to PS4 after 2000 ms without I/O.");
}

TEST(A990EvoPlus, ThatWasMeasuredIsExplainedByTheMeasurement)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.measured = {{4, 18ms}};
    c.kernel_took(us(43000));
    expect_says(c, "The drive has 5 power states. It can sleep in PS3 (at most 80 mW, wakes in 4.6 ms, round trip 6.2 ms) and "
                   "PS4 (at most 7 mW, wakes in 43 ms, measured 18 ms, round trip 44.6 ms).");
    expect_says(c,
                "So the tolerance is 43 ms: the 43 ms that PS4 advertises, since it was measured to wake in 18 ms, within the "
                "bound of 25 ms.");
}

TEST(AForceMp500, IsToldThatNoToleranceReachesPs4)
{
    Case c = case_of("corsair-mp500-120gb").kernel_took(LatencyTolerance::any());
    c.wish.profile = "power-saver";
    expect_says(c, "On AC, profile power-saver sets no bound on the wake latency (built-in default).");
    expect_says(c, "So the tolerance is any: no constraint is wanted.");
    expect_says(
        c, "PS4 is not reachable at any tolerance: its round trip of 260 ms is above the 100 ms of the kernel's last tier. "
           "No profile decides that, the module parameters of nvme_core do.");
    expect_silent_about(c, "PS4 is unwanted");
}

TEST(AKc3000, IsToldWhichStateSavesNothing)
{
    // KC3000: the same 2500 + 7500 us in both sleep states.
    const DriveFile drive = drive_from("kingston-kc3000-4tb");
    const Case c = case_of(drive).kernel_took(us(25000));
    ASSERT_TRUE(drive.power_states[3].max_power && drive.power_states[4].max_power);
    const bool saves = *drive.power_states[4].max_power < *drive.power_states[3].max_power;
    EXPECT_EQ(told(c).find("By its own figures PS4 (" + show(*drive.power_states[4].max_power) + ") saves nothing over PS3 ("
                           + show(*drive.power_states[3].max_power)
                           + "); such figures are often placeholders, so they decide nothing here.")
                  != std::string::npos,
              !saves);
    expect_says(c, "From that the kernel makes: PS0-PS3 to PS4 after 100 ms without I/O.");
}

TEST(ASn550, IsToldItsQuirk)
{
    Case c = case_of("wd-blue-sn550-500gb");
    c.wish.profile = "power-saver";
    c.controller.quirks = {{.no_deepest_ps = true}, QuirkKnowledge::Source::device_table};
    c.kernel_took(LatencyTolerance::any(), {.no_deepest_ps = true});
    expect_says(c, "PS4 is never used: the kernel quirk no_deepest_ps excludes the last state of this model.");
    expect_says(c, "Verified: the drive holds the predicted table: APST on down to PS3.");
}

TEST(ASn550, WithAnInferredQuirkIsToldSo)
{
    Case c = case_of("wd-blue-sn550-500gb");
    c.wish.profile = "power-saver";
    c.kernel_took(LatencyTolerance::any(), {.no_deepest_ps = true});
    expect_says(c, "Verified: the drive holds the table predicted under the kernel quirk no_deepest_ps: PS4 is never used.");
}

TEST(ACeilingOfZero, IsToldLoudly)
{
    Case c = case_of("samsung-990-evo-plus-4tb", us(0));
    c.machine.default_ps_max_latency_us = 0;
    expect_says(c, "On AC, profile balanced allows a wake latency of 25 ms (built-in default).");
    expect_says(c,
                "LIMITED: nvme_core.default_ps_max_latency_us=0 was set before us and is never exceeded, because it may keep "
                "this drive from dropping off the bus. A [[match]] with allow_deeper = true lifts it.");
    expect_says(c, "So the tolerance is 0: the bound of 0 itself.");
    expect_says(c, "From that the kernel makes: APST off: the drive does not go to sleep by itself.");
    expect_says(c, "Verified: the drive holds the predicted table: APST off.");
}

TEST(ACeiling, ThatIsLiftedIsToldToo)
{
    Case c = case_of("samsung-990-evo-plus-4tb", us(0));
    c.machine.default_ps_max_latency_us = 0;
    c.policy.apst.allow_deeper.value = true;
    expect_says(c, "nvme_core.default_ps_max_latency_us=0 would limit this, but a [[match]] says allow_deeper = true.");
    expect_silent_about(c, "LIMITED");
}

TEST(ACeiling, OverAHoldNamesTheHold)
{
    Case c = case_of("samsung-990-evo-plus-4tb", us(5500));
    c.machine.default_ps_max_latency_us = 5500;
    c.wish.holds = {{{10ms}, "backup"}};
    expect_says(c, "On AC, hold of backup allows a wake latency of 10 ms.");
    expect_silent_about(c, "profile balanced allows");
}

TEST(ACeiling, OverAProfileThatIsNotThereNamesTheOneInForce)
{
    Case c = case_of("samsung-990-evo-plus-4tb", us(5500));
    c.machine.default_ps_max_latency_us = 5500;
    c.wish.profile = "turbo";
    expect_silent_about(c, "profile turbo allows");
}

TEST(ABc501, Is12MillisecondsMeasuredAgainst5Advertised)
{
    Case c = case_of("skhynix-bc501a-128gb").bound(10ms);
    c.measured = {{4, 12ms}, {3, 2ms}};
    c.kernel_took(us(4999));
    expect_says(c, "PS4 is unwanted: it was measured to wake in 12 ms against 5 ms advertised, above 10 ms.");
    expect_says(c, "So the tolerance is 4.999 ms: one less than the 5000 us that the unwanted PS4 advertises.");
    expect_says(c, "From that the kernel makes: PS0-PS2 to PS3 after 100 ms without I/O.");
}

TEST(AHold, IsNamed)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.wish.holds = {{{2ms}, "jackd: low latency audio"}};
    expect_says(c, "On AC, hold of jackd: low latency audio allows a wake latency of 2 ms.");
}

TEST(ADriveThatMustNotSleep, IsToldOnce)
{
    Case c = case_of("samsung-990-evo-plus-4tb", us(0));
    c.wish.profile = "performance";
    expect_says(c, "On AC, profile performance asks for a drive that does not sleep (built-in default).");
    expect_silent_about(c, "is unwanted");
}

TEST(AnUnreportedLatency, IsSaidToBeUnknown)
{
    const Case c = case_of({operational(0), sleep_state(1, 0, 0)});
    expect_says(c, "The drive has 2 power states. It can sleep in PS1 (at most 50 mW, wake latency unreported).");
    expect_says(c, "PS1 is unwanted: it leaves its wake latency unreported, so nobody knows whether it is within 25 ms.");
}

TEST(ADriveWithoutSleepStates, IsSaidToHaveNone)
{
    const Case c = case_of({operational(0)});
    expect_says(c, "The drive has 1 power state, none of them a sleep state.");
    expect_says(c, "From that the kernel makes: APST on, but no state to go to: the drive stays awake.");
    expect_silent_about(c, "suspended to idle");
}

TEST(ADriveWithoutApst, IsExplainedInOneLine)
{
    Case c = case_of("adata-sx8000np-256gb");
    c.controller.tolerance = std::optional<LatencyTolerance>{};
    c.controller.apst = std::optional<ApstFeature>{};
    expect_says(c, "Autonomous power state transitions: not supported by the drive (APSTA is 0).");
}

TEST(AMatch, IsNamedWithItsReason)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    Match match;
    match.origin = {"/usr/lib/nvmepolicyd/drives.toml", 12, 1};
    match.because = "PS4 wakes slowly";
    match.source = "https://example.org/report";
    c.policy.matched = {match};
    expect_says(c, "A [[match]] applies (/usr/lib/nvmepolicyd/drives.toml:12): PS4 wakes slowly [https://example.org/report].");
}

TEST(AMatch, IsNotSaidToApplyWhereAllOfItIsOverridden)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    Match match;
    match.origin = {"/usr/lib/nvmepolicyd/drives.toml", 12, 1};
    match.because = "PS4 wakes slowly";
    match.overridden = {{"profiles.balanced.max_wake_latency", {"/etc/nvmepolicyd/nvmepolicyd.toml", 4, 20}},
                        {"apst.mode", {"/etc/nvmepolicyd/nvmepolicyd.toml", 7, 8}}};
    c.policy.matched = {match};
    expect_says(c, "A [[match]] fits and is overridden (/usr/lib/nvmepolicyd/drives.toml:12): PS4 wakes slowly; set elsewhere: "
                   "profiles.balanced.max_wake_latency (/etc/nvmepolicyd/nvmepolicyd.toml:4) and apst.mode "
                   "(/etc/nvmepolicyd/nvmepolicyd.toml:7).");
    c.policy.matched[0].overridden.pop_back();
    c.policy.matched[0].apst_mode = {ManageMode::manage, match.origin};
    expect_says(c, "A [[match]] applies (/usr/lib/nvmepolicyd/drives.toml:12): PS4 wakes slowly; set elsewhere: "
                   "profiles.balanced.max_wake_latency (/etc/nvmepolicyd/nvmepolicyd.toml:4).");
}

TEST(ModeObserve, IsSaidWithWhereItWasWritten)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.policy.apst.mode = {ManageMode::observe, {"/etc/nvmepolicyd/nvmepolicyd.toml", 9, 8}};
    expect_says(c, "apst.mode is observe (/etc/nvmepolicyd/nvmepolicyd.toml:9), so the 100 ms found in the file stays.");
}

TEST(WhatCouldNotBeRead, IsExplainedAsFarAsItGoes)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.controller.tolerance = Refusal{"nvme0", "", "not live", RefusalKind::try_later};
    expect_says(c, "Autonomous power state transitions: nvme0: not live.");
    c.controller.identify = Refusal{"nvme0", "", "gone", RefusalKind::gone};
    expect_says(c, "Autonomous power state transitions: nvme0: gone.");
}

class AnyDrive : public testing::TestWithParam<std::string> {};
TEST_P(AnyDrive, IsExplainedUnderEveryProfileWithoutAStrayWord)
{
    const DriveFile drive = drive_from(GetParam());
    for (const std::string profile : {"performance", "balanced", "power-saver"}) {
        Case c = case_of(drive);
        c.wish.profile = profile;
        for (const std::string& line : explain_apst(c.question(), c.decide(), c.verify())) {
            EXPECT_TRUE(line.ends_with('.')) << line;
            EXPECT_EQ(line.find('\n'), std::string::npos) << line;
            EXPECT_EQ(line.find("  "), std::string::npos) << line;
            EXPECT_EQ(line.find("-0"), std::string::npos) << line;
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Drive, AnyDrive, testing::ValuesIn(drive_slugs()), slug_name);

} // namespace
} // namespace nvmepolicy
