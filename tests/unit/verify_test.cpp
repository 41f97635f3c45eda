// SPDX-License-Identifier: LGPL-2.1-or-later
// The file repeats our wish; the table in the drive is the answer.
#include "nvmepolicy/verify.h"

#include <random>

#include "drives.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

const auto any = LatencyTolerance::any();
const auto automatic = LatencyTolerance::automatic();
constexpr ApstQuirks no_deepest_ps{.no_deepest_ps = true};

ApstFeature off()
{
    return {};
}

Case settled(const std::string& slug, const LatencyTolerance& tolerance = us(25000), ApstQuirks in_the_kernel = {})
{
    Case c = case_of(slug);
    c.ledger.emplace();
    c.ledger->first = us(100000);
    c.ledger->ours = tolerance;
    c.ledger->programmed_with = ApstParameters{};
    return c.kernel_took(tolerance, in_the_kernel);
}

ToleranceChange only_change(const Plan& plan)
{
    EXPECT_EQ(plan.changes.size(), 1U);
    return plan.changes.empty() ? ToleranceChange{} : std::get<ToleranceChange>(plan.changes.front());
}

TEST(ATableAsPredicted, IsVerified)
{
    const Case c = settled("samsung-990-evo-plus-4tb");
    EXPECT_EQ(c.verify(), (Verdict{Agreement::verified, "the drive holds the predicted table: APST on down to PS3", {}}));
    EXPECT_TRUE(c.plan().empty());
}

TEST(ATableThatIsOff, IsVerifiedAtZero)
{
    Case c = settled("samsung-970-evo-plus-2tb", us(0));
    c.wish.profile = "performance";
    EXPECT_EQ(c.verify().reason, "the drive holds the predicted table: APST off");
    EXPECT_TRUE(c.verify().verified());
}

TEST(ADriveThatStaysOnAtZero, IsNotVerified)
{
    // R08: "latency 0" that leaves APST on.
    Case c = settled("samsung-970-evo-plus-2tb", us(0));
    c.wish.profile = "performance";
    ApstFeature on;
    on.enabled = true;
    c.controller.apst = std::optional{on};
    EXPECT_EQ(c.verify().agreement, Agreement::table_differs);
    EXPECT_EQ(c.verify().reason, "the drive holds APST on without any transition, predicted is APST off: it refused the table, "
                                 "or the write met a controller that was being initialised");
    EXPECT_EQ(only_change(c.plan()).through, us(1));
}

TEST(AFileWithAnotherValue, AwaitsTheChange)
{
    const Case c = case_of("samsung-990-evo-plus-4tb");
    EXPECT_EQ(c.verify(), (Verdict{Agreement::awaits_change, "the tolerance is 100 ms, wanted is 25 ms", {}}));
    EXPECT_EQ(only_change(c.plan()),
              (ToleranceChange{
                  c.controller.id, "nvme0", us(100000), us(25000), {}, "profile balanced", "the bound of 25 ms itself"}));
}

TEST(AutoAndAny, AreOne)
{
    Case c = settled("samsung-990-evo-plus-4tb", automatic);
    c.wish.profile = "power-saver";
    EXPECT_EQ(c.verify().agreement, Agreement::verified);
    EXPECT_TRUE(c.plan().empty());
}

// R03: somebody's own table.
TEST(ATableSetByAnotherTool, IsRepairedThroughTheNeighbour)
{
    Case c = settled("samsung-990-evo-plus-4tb");
    c.controller.apst = std::optional{off()};
    EXPECT_EQ(c.verify().agreement, Agreement::table_differs);
    EXPECT_EQ(c.verify().reason,
              "the drive holds APST off, predicted is APST on down to PS3: it refused the table, or the write "
              "met a controller that was being initialised");
    EXPECT_EQ(
        only_change(c.plan()),
        (ToleranceChange{c.controller.id, "nvme0", us(25000), us(25000), us(24999), "repair",
                         "the drive does not hold the table of 25 ms; the kernel sends it again only after another value"}));
}

TEST(ATableSetByAnotherTool, IsOnlyReportedInModeObserve)
{
    Case c = settled("samsung-990-evo-plus-4tb");
    c.policy.apst.mode.value = ManageMode::observe;
    c.controller.apst = std::optional{off()};
    EXPECT_EQ(c.verify().agreement, Agreement::table_differs);
    EXPECT_TRUE(c.plan().empty());
}

TEST(ModeObserve, ComparesTheTableWithWhatTheFileHolds)
{
    Case c = case_of("samsung-990-evo-plus-4tb"); // still at 100000
    c.policy.apst.mode.value = ManageMode::observe;
    EXPECT_EQ(c.verify().agreement, Agreement::verified);
    EXPECT_EQ(c.verify().reason, "the drive holds the predicted table: APST on down to PS4");
    EXPECT_TRUE(c.plan().empty());
}

TEST(OneBitInTheReservedHalf, IsAnotherTable)
{
    Case c = settled("samsung-990-evo-plus-4tb");
    ApstFeature table = **c.controller.apst;
    table.entries[0].raw |= 1ULL << 32U;
    c.controller.apst = std::optional{table};
    EXPECT_EQ(c.verify().agreement, Agreement::table_differs);
}

TEST(AnEntryAboveNpss, IsAnotherTable)
{
    Case c = settled("samsung-990-evo-plus-4tb");
    ApstFeature table = **c.controller.apst;
    table.entries[31].raw = 0x6418;
    c.controller.apst = std::optional{table};
    EXPECT_EQ(c.verify().agreement, Agreement::table_differs);
}

// R07: the kernel reads its parameters when it programs a table, not before.
TEST(ParametersThatWereMoved, WaitForTheNextProgramming)
{
    Case c = settled("samsung-990-evo-plus-4tb");
    c.machine.apst.primary_latency_tol_us = 5000;
    EXPECT_EQ(
        c.verify(),
        (Verdict{Agreement::parameters_moved,
                 "the drive holds the table of the module parameters before they were changed; it will change at the next "
                 "programming (another tolerance, or a reset)",
                 {}}));
    EXPECT_TRUE(c.verify().in_order());
    EXPECT_FALSE(c.verify().verified());
    EXPECT_TRUE(c.plan().empty());
    c.kernel_took(us(25000)); // a reset
    EXPECT_EQ(c.verify().agreement, Agreement::verified);
}

TEST(ParametersThatWereMoved, BeforeWeEverWroteAreTheCompiledInOnes)
{
    Case c = case_of("samsung-990-evo-plus-4tb").bound(100ms);
    c.machine.apst.primary_timeout_ms = 0;
    EXPECT_EQ(c.verify().agreement, Agreement::parameters_moved);
}

TEST(ParametersThatWereMoved, AreRememberedFromOurLastWrite)
{
    Case c = settled("samsung-990-evo-plus-4tb");
    c.machine.apst.primary_timeout_ms = 50;
    c.kernel_took(us(25000));
    c.ledger->programmed_with = c.machine.apst;
    c.machine.apst.primary_timeout_ms = 100;
    EXPECT_EQ(c.verify().agreement, Agreement::parameters_moved);
    c.ledger->programmed_with.reset();
    EXPECT_EQ(c.verify().agreement, Agreement::table_differs);
}

TEST(ParametersThatWereMoved, OnADriveWithAnUnlistedQuirkCauseNoWrite)
{
    // PS4 is never used by this kernel, and the parameters were changed meanwhile: both are told from the table.
    Case c = settled("skhynix-bc501a-128gb", us(25000), no_deepest_ps);
    c.machine.apst.primary_timeout_ms = 50;
    EXPECT_EQ(c.verify().agreement, Agreement::parameters_moved) << c.verify().reason;
    EXPECT_TRUE(c.plan().empty());
}

// R10: the quirk that nothing in sysfs names.
TEST(ATableThatStopsAtPs3, IsVerifiedByTheLikelyQuirk)
{
    Case c = settled("wd-blue-sn550-500gb", any, no_deepest_ps);
    c.wish.profile = "power-saver";
    EXPECT_EQ(c.verify(),
              (Verdict{Agreement::verified_by_quirk,
                       "the drive holds the table predicted under the kernel quirk no_deepest_ps: PS4 is never used",
                       "no_deepest_ps"}));
    EXPECT_TRUE(c.verify().verified());
    EXPECT_TRUE(c.plan().empty());
}

TEST(ATableThatGoesToPs4, IsVerifiedWithoutTheListedQuirk)
{
    Case c = settled("wd-blue-sn550-500gb", any);
    c.wish.profile = "power-saver";
    c.controller.quirks = {no_deepest_ps, QuirkKnowledge::Source::device_table};
    EXPECT_EQ(
        c.verify(),
        (Verdict{Agreement::verified_by_quirk,
                 "the drive holds the table predicted without quirk no_deepest_ps, which this kernel does not seem to apply",
                 "not no_deepest_ps"}));
    EXPECT_TRUE(c.plan().empty());
}

// The simulation found it, in a drive that took the name of a listed model with other firmware.
TEST(ADriveOnTheNoApstList, WhoseToleranceFileExistsIsPredictedWithoutTheQuirk)
{
    Case c = settled("wd-blue-sn550-500gb", us(25000));
    ApstQuirks no_apst;
    no_apst.no_apst = true;
    c.controller.quirks = {no_apst, QuirkKnowledge::Source::device_table};
    EXPECT_EQ(c.verify().agreement, Agreement::verified) << c.verify().reason;
    EXPECT_TRUE(c.plan().empty());
}

TEST(AListedQuirk, ThatIsInForceIsPlainlyVerified)
{
    Case c = settled("wd-blue-sn550-500gb", any, no_deepest_ps);
    c.wish.profile = "power-saver";
    c.controller.quirks = {no_deepest_ps, QuirkKnowledge::Source::device_table};
    EXPECT_EQ(c.verify(), (Verdict{Agreement::verified, "the drive holds the predicted table: APST on down to PS3", {}}));
}

TEST(AQuirkThatTheKernelNames, IsNotSecondGuessed)
{
    Case c = settled("wd-blue-sn550-500gb", any, no_deepest_ps);
    c.wish.profile = "power-saver";
    c.controller.quirks = {{}, QuirkKnowledge::Source::kernel};
    EXPECT_EQ(c.verify().agreement, Agreement::table_differs);
    c.controller.quirks = {no_deepest_ps, QuirkKnowledge::Source::kernel};
    EXPECT_EQ(c.verify().agreement, Agreement::verified);
}

TEST(AToleranceThatLeavesTheDeepestOutAnyway, TellsNothingAboutAQuirk)
{
    const Case c = settled("wd-blue-sn550-500gb", us(25000), no_deepest_ps);
    EXPECT_EQ(c.verify().agreement, Agreement::verified);
    EXPECT_EQ(c.verify().inferred_quirk, std::nullopt);
}

// R09: no file.
Case without_file(const std::string& slug, Result<std::optional<ApstFeature>> apst)
{
    Case c = case_of(slug);
    c.controller.tolerance = std::optional<LatencyTolerance>{};
    c.controller.apst = std::move(apst);
    return c;
}

TEST(ADriveWithoutApst, HasNothingToVerify)
{
    const Case c = without_file("adata-sx8000np-256gb", std::optional<ApstFeature>{});
    EXPECT_EQ(c.verify(), (Verdict{Agreement::not_applicable, "not supported by the drive (APSTA is 0)", {}}));
    EXPECT_TRUE(c.verify().in_order());
    EXPECT_TRUE(c.plan().empty());
}

TEST(ADriveSwitchedOffByAQuirk, HasNothingToVerify)
{
    const Case c = without_file("kioxia-cd6-v-6t4", std::optional{off()});
    EXPECT_EQ(c.verify(), (Verdict{Agreement::not_applicable, "switched off by the kernel quirk no_apst", "no_apst"}));
    EXPECT_TRUE(c.plan().empty());
}

TEST(ADriveSwitchedOffByAQuirk, WhoseTableIsUnreadIsNoErrorEither)
{
    const Case c = without_file("kioxia-cd6-v-6t4", Refusal{"nvme0", "", "not allowed", RefusalKind::denied});
    EXPECT_EQ(c.verify().agreement, Agreement::not_applicable);
}

TEST(ADriveSwitchedOffByAQuirk, YetOnByItsOwnDefaultsIsReported)
{
    ApstFeature table;
    table.enabled = true;
    table.entries[0].raw = (6U << 3U) | (500U << 8U);
    const Case c = without_file("kioxia-cd6-v-6t4", std::optional{table});
    EXPECT_EQ(c.verify(),
              (Verdict{Agreement::off_but_enabled,
                       "switched off by the kernel quirk no_apst, yet the drive has APST on down to PS6 from its own "
                       "defaults",
                       "no_apst"}));
    EXPECT_TRUE(c.verify().in_order());
    EXPECT_TRUE(c.plan().empty());
}

TEST(NpssAbove31, IsIgnoredByTheKernel)
{
    Case c = case_of("skhynix-bc501a-128gb");
    IdentifyController id = *c.controller.identify;
    id.npss = 40;
    c.controller.identify = id;
    EXPECT_EQ(c.verify(),
              (Verdict{Agreement::ignored, "APST is not used by the kernel: NPSS is 40, the specification allows 31", {}}));
    EXPECT_FALSE(c.verify().verified());
    EXPECT_TRUE(c.plan().empty());
}

TEST(WhatCouldNotBeRead, IsSaidInItsOwnWords)
{
    const Refusal busy{"nvme0: Get Features 0Ch", "", "the controller is not live (EAGAIN)", RefusalKind::try_later};
    Case c = settled("skhynix-bc501a-128gb");
    c.controller.apst = busy;
    EXPECT_EQ(c.verify(), (Verdict{Agreement::unread, "nvme0: Get Features 0Ch: the controller is not live (EAGAIN)", {}}));
    EXPECT_TRUE(c.plan().empty());

    c = settled("skhynix-bc501a-128gb");
    c.controller.tolerance = busy;
    EXPECT_EQ(c.verify().agreement, Agreement::unread);
    EXPECT_TRUE(c.plan().empty());

    c = settled("skhynix-bc501a-128gb");
    c.controller.identify = busy;
    EXPECT_EQ(c.verify().agreement, Agreement::unread);
    EXPECT_TRUE(c.plan().empty());

    c = settled("skhynix-bc501a-128gb");
    c.controller.apst = std::optional<ApstFeature>{};
    EXPECT_EQ(c.verify(), (Verdict{Agreement::unread, "the drive's APST table was not read", {}}));
}

TEST(NoChange, IsPlannedInModeObserve)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    c.policy.apst.mode.value = ManageMode::observe;
    EXPECT_TRUE(c.plan().empty());
}

// The neighbour: another value in the kernel's eyes that admits no more.
struct NeighbourRow {
    std::string name;
    LatencyTolerance wanted;
    std::optional<LatencyTolerance> neighbour;
    std::vector<PowerState> states;
};
void PrintTo(const NeighbourRow& row, std::ostream* out)
{
    *out << row.name;
}

class ANeighbour : public testing::TestWithParam<NeighbourRow> {};

TEST_P(ANeighbour, IsTheNextValueThatAdmitsNoMore)
{
    EXPECT_EQ(neighbour(GetParam().wanted, GetParam().states), GetParam().neighbour);
}

const std::vector<PowerState> bc501{operational(0), sleep_state(1, 1000, 1000), sleep_state(2, 1000, 5000)};
INSTANTIATE_TEST_SUITE_P(
    Of, ANeighbour,
    testing::Values(NeighbourRow{"of_25000", us(25000), us(24999), bc501}, NeighbourRow{"of_1", us(1), us(0), bc501},
                    NeighbourRow{"of_0", us(0), us(1), bc501},
                    NeighbourRow{
                        "of_0_with_an_unreported_latency", us(0), std::nullopt, {operational(0), sleep_state(1, 0, 0)}},
                    NeighbourRow{"of_0_with_a_latency_of_1", us(0), std::nullopt, {operational(0), sleep_state(1, 0, 1)}},
                    NeighbourRow{"of_0_with_a_latency_of_2", us(0), us(1), {operational(0), sleep_state(1, 0, 2)}},
                    NeighbourRow{"of_0_with_an_unreported_operational_state", us(0), us(1), {operational(0)}},
                    NeighbourRow{"of_any", any, us(2147483646), bc501},
                    NeighbourRow{"of_auto", automatic, us(2147483646), bc501},
                    NeighbourRow{"of_2147483646", us(2147483646), us(2147483645), bc501}),
    [](const auto& row) { return row.param.name; });

TEST(ANeighbour, AdmitsNoStateThatTheWantedValueKeepsOut)
{
    std::mt19937 dice(13);
    for (int run = 0; run < 20'000; ++run) {
        std::vector<PowerState> states{operational(0)};
        for (int i = 1; i < 5; ++i)
            states.push_back(sleep_state(i, dice() % 4, dice() % 6));
        const LatencyTolerance wanted = dice() % 8 == 0 ? any : us(dice() % 7);
        const auto through = neighbour(wanted, states);
        if (!through)
            continue;
        EXPECT_FALSE(through->same_effect(wanted));
        for (const PowerState& s : states) {
            const auto admits = [&](const LatencyTolerance& t) {
                return !s.operational && t.limit() != 0us && (!t.limit() || s.kernel_exit_latency() <= *t.limit());
            };
            EXPECT_FALSE(admits(*through) && !admits(wanted)) << wanted.kernel_text() << " through " << through->kernel_text();
        }
    }
}

TEST(ZeroWithAnUnreportedLatency, StaysUnverified)
{
    Case c = case_of({operational(0), operational(1), sleep_state(2, 0, 0)}, us(0));
    c.wish.profile = "performance";
    c.ledger.emplace();
    c.ledger->first = us(100000);
    ApstFeature table;
    table.enabled = true;
    c.controller.apst = std::optional{table};
    EXPECT_EQ(c.verify().agreement, Agreement::table_differs);
    EXPECT_FALSE(c.verify().in_order());
    EXPECT_TRUE(c.plan().empty());
}

} // namespace
} // namespace nvmepolicy
