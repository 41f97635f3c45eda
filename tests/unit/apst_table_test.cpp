// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel's table, bit for bit. Two sources: what tests/drives expects of Linux 6.12 for each captured drive, and
// tables that the real kernels (Debian 6.1.192 and 6.12.117, NVMe-oF target with chosen power states) sent.
#include "nvmepolicy/apst_table.h"

#include <nlohmann/json.hpp>

#include "drives.h"

namespace nvmepolicy {
namespace {

using nlohmann::json;

json expectations(const std::string& slug)
{
    return json::parse(content(drives_directory() / (slug + ".json"))).value("expected", json::object());
}

LatencyTolerance tolerance_from(const std::string& text)
{
    const auto tolerance = parse_tolerance("expected", text);
    EXPECT_TRUE(tolerance) << tolerance.error().text();
    return *tolerance;
}

std::optional<int> number_or_none(const json& value)
{
    return value.is_null() ? std::nullopt : std::optional{value.get<int>()};
}

void expect_table(const PredictedTable& table, const json& expected, std::size_t states)
{
    EXPECT_EQ(table.command_sent, expected["command_sent"].get<bool>());
    EXPECT_EQ(table.feature.enabled ? 1 : 0, expected["apste"].get<int>());
    EXPECT_EQ(table.feature.deepest_state(), number_or_none(expected["deepest_state"]));
    if (expected.contains("max_round_trip_us")) {
        EXPECT_EQ(table.max_round_trip ? std::optional{static_cast<int>(table.max_round_trip->count())} : std::nullopt,
                  number_or_none(expected["max_round_trip_us"]));
    }
    // Where nothing is sent, there are no entries to expect.
    ASSERT_EQ(expected["entries"].size(), table.command_sent ? states : 0);
    if (!table.command_sent) {
        EXPECT_EQ(table.feature, ApstFeature{});
        return;
    }
    for (std::size_t i = 0; i < states; ++i) {
        const json& entry = expected["entries"][i];
        const ApstEntry& actual = table.feature.entries[i];
        EXPECT_EQ(actual.raw, std::stoull(entry["raw"].get<std::string>(), nullptr, 16)) << "PS" << i;
        if (entry.contains("target_state")) {
            EXPECT_EQ(actual.transitions() ? std::optional{actual.target()} : std::nullopt,
                      number_or_none(entry["target_state"]));
        }
        if (entry.contains("idle_ms") && !entry["idle_ms"].is_null()) {
            EXPECT_EQ(actual.idle_time().count(), entry["idle_ms"].get<std::int64_t>()) << "PS" << i;
        }
    }
    for (std::size_t i = states; i < ApstFeature::states; ++i)
        EXPECT_EQ(table.feature.entries[i].raw, 0U) << "PS" << i;
}

/// A file of `nvmepolicyctl capture` has one table, the one that the drive held, or none; these here have all of it.
bool complete(const json& expected)
{
    return expected.contains("ranges");
}

class ACapturedDrive : public testing::TestWithParam<std::string> {};

TEST_P(ACapturedDrive, GetsTheTableThatLinuxSends)
{
    const DriveFile drive = drive_from(GetParam());
    const json expected = expectations(GetParam());
    if (complete(expected)) {
        EXPECT_EQ(drive.apst_supported(), expected["apst_supported"].get<bool>());
        EXPECT_GE(expected["tables"].size(), 5U);
    }
    const json tables = expected.value("tables", json::object());
    for (const auto& [text, table] : tables.items()) {
        SCOPED_TRACE("tolerance " + text);
        expect_table(predict_apst_table(drive.inputs({}), tolerance_from(text)), table, drive.power_states.size());
    }
}

TEST_P(ACapturedDrive, GetsTheTableOfItsModelWithoutTheQuirk)
{
    DriveFile drive = drive_from(GetParam());
    const json expected = expectations(GetParam());
    EXPECT_EQ(expected.contains("tables_ignoring_quirks"), complete(expected) && !(drive.quirks == ApstQuirks{}));
    if (!expected.contains("tables_ignoring_quirks"))
        return;
    drive.quirks = {};
    for (const auto& [text, table] : expected["tables_ignoring_quirks"].items()) {
        SCOPED_TRACE("tolerance " + text);
        expect_table(predict_apst_table(drive.inputs({}), tolerance_from(text)), table, drive.power_states.size());
    }
}

TEST_P(ACapturedDrive, KeepsItsTableBetweenTwoBorders)
{
    const DriveFile drive = drive_from(GetParam());
    const json expected = expectations(GetParam());
    std::int64_t next = 0;
    const json ranges = expected.value("ranges", json::array());
    for (const json& range : ranges) {
        const auto from = range["from_us"].get<std::int64_t>();
        EXPECT_EQ(from, next) << "ranges follow each other";
        const bool open = range["to_us"].is_null();
        const LatencyTolerance first = us(from);
        const LatencyTolerance last = open ? us(largest_tolerance.count()) : us(range["to_us"].get<std::int64_t>());
        next = open ? 0 : range["to_us"].get<std::int64_t>() + 1;
        const PredictedTable at_first = predict_apst_table(drive.inputs({}), first);
        const PredictedTable at_last = predict_apst_table(drive.inputs({}), last);
        EXPECT_EQ(at_first.feature.deepest_state(), number_or_none(range["deepest_state"])) << "from " << from;
        EXPECT_EQ(at_first, at_last) << "from " << from;
        if (open) {
            EXPECT_EQ(at_last, predict_apst_table(drive.inputs({}), LatencyTolerance::any()));
            EXPECT_EQ(at_last, predict_apst_table(drive.inputs({}), LatencyTolerance::automatic()));
        }
    }
    if (!ranges.empty()) {
        EXPECT_TRUE(ranges.back()["to_us"].is_null());
    }
}

INSTANTIATE_TEST_SUITE_P(Drive, ACapturedDrive, testing::ValuesIn(drive_slugs()), slug_name);

TEST(TheCapturedDrives, AreAllThere)
{
    const auto slugs = drive_slugs();
    EXPECT_GE(std::ranges::count_if(slugs, [](const std::string& slug) { return complete(expectations(slug)); }), 54);
}

TEST(AFileOfCapture, IsHeldAgainstTheTableThatTheDriveHeld)
{
    const DriveFile drive = drive_from("samsung-990-evo-plus-4tb");
    for (const LatencyTolerance& tolerance : {us(0), us(25000), us(100000), LatencyTolerance::any()}) {
        const Controller controller = controller_of(drive, tolerance, machine_at_boot());
        const json file = json::parse(format_drive_file(drive, measured_table(controller, {})));
        ASSERT_EQ(file["expected"]["tables"].size(), 1U);
        const json& table = file["expected"]["tables"][tolerance.kernel_text()];
        EXPECT_EQ(table["deepest_state"], expectations(drive.slug)["tables"][tolerance.kernel_text()]["deepest_state"]);
        expect_table(predict_apst_table(drive.inputs({}), tolerance), table, drive.power_states.size());
    }
}

TEST(AFileOfCapture, ExpectsNothingOfADriveThatTheKernelDoesNotProgram)
{
    const DriveFile drive = drive_from("samsung-990-evo-plus-4tb");
    Controller c = controller_of(drive, us(25000), machine_at_boot());
    EXPECT_TRUE(measured_table(c, {}));
    ApstParameters other;
    other.primary_timeout_ms = 200;
    EXPECT_FALSE(measured_table(c, other)) << "the tests predict by the kernel's own parameters";
    const Controller good = c;
    c.tolerance = std::optional<LatencyTolerance>{};
    EXPECT_FALSE(measured_table(c, {})) << "APST is off by quirk";
    c = good;
    c.apst = Refusal{"nvme0", "", "not allowed", RefusalKind::denied};
    EXPECT_FALSE(measured_table(c, {}));
    c = good;
    c.identify->npss = 40;
    EXPECT_FALSE(measured_table(c, {}));
    EXPECT_FALSE(json::parse(format_drive_file(drive)).contains("expected"));
}

// ---------------------------------------------------------------------------------------------------------------------

/// PS0 to PS2 operational, then what is given.
std::vector<PowerState> client_drive(std::vector<PowerState> sleeping)
{
    std::vector<PowerState> states{operational(0), operational(1), operational(2)};
    states.insert(states.end(), sleeping.begin(), sleeping.end());
    return states;
}

const std::vector<PowerState> bc501 = client_drive({sleep_state(3, 1000, 1000), sleep_state(4, 1000, 5000)});
const std::vector<PowerState> evo_plus = client_drive({sleep_state(3, 4200, 4600), sleep_state(4, 20000, 43000)});

using Raw = std::vector<std::uint64_t>;
const Raw empty{0, 0, 0, 0, 0};

struct Vector {
    std::string name;
    std::vector<PowerState> states;
    LatencyTolerance tolerance;
    bool enabled;
    Raw raw;
    ApstParameters parameters{};
    ApstQuirks quirks{};
};
void PrintTo(const Vector& row, std::ostream* out)
{
    *out << row.name;
}

class AMeasuredTable : public testing::TestWithParam<Vector> {};

TEST_P(AMeasuredTable, IsPredictedBitForBit)
{
    const Vector& row = GetParam();
    const PredictedTable table = predict_apst_table(
        {true, static_cast<int>(row.states.size()) - 1, row.states, row.quirks, row.parameters}, row.tolerance);
    EXPECT_TRUE(table.command_sent);
    EXPECT_EQ(table.feature.enabled, row.enabled);
    EXPECT_EQ(raw_entries(table.feature, row.states.size()), row.raw);
    for (std::size_t i = row.states.size(); i < ApstFeature::states; ++i)
        EXPECT_EQ(table.feature.entries[i].raw, 0U);
}

constexpr ApstParameters no_primary_time{.primary_timeout_ms = 0};
constexpr ApstParameters no_primary_latency{.primary_latency_tol_us = 0};
constexpr ApstParameters no_second_tier{.secondary_timeout_ms = 0};
constexpr ApstParameters long_primary_time{.primary_timeout_ms = 20000000};
constexpr ApstParameters long_secondary_time{.secondary_timeout_ms = 16777216};
constexpr ApstQuirks no_apst{.no_apst = true};
constexpr ApstQuirks no_deepest_ps{.no_deepest_ps = true};

const Raw to_ps3{0x6418, 0x6418, 0x6418, 0, 0};
const Raw to_ps4{0x6420, 0x6420, 0x6420, 0x6420, 0};
const Raw to_ps3_then_ps4{0x6418, 0x6418, 0x6418, 0x7d020, 0};
const Raw late_to_ps4{0x7d020, 0x7d020, 0x7d020, 0x7d020, 0};
const Raw late_to_ps3{0x7d018, 0x7d018, 0x7d018, 0, 0};

const auto any = LatencyTolerance::any();
const auto automatic = LatencyTolerance::automatic();

INSTANTIATE_TEST_SUITE_P(
    Kernel, AMeasuredTable,
    testing::Values(
        // 1. SK hynix BC501
        Vector{"bc501_100000", bc501, us(100000), true, to_ps4}, Vector{"bc501_25000", bc501, us(25000), true, to_ps4},
        Vector{"bc501_5000", bc501, us(5000), true, to_ps4}, Vector{"bc501_any", bc501, any, true, to_ps4},
        Vector{"bc501_auto", bc501, automatic, true, to_ps4}, Vector{"bc501_4999", bc501, us(4999), true, to_ps3},
        Vector{"bc501_1000", bc501, us(1000), true, to_ps3}, Vector{"bc501_999", bc501, us(999), true, empty},
        Vector{"bc501_1", bc501, us(1), true, empty}, Vector{"bc501_0", bc501, us(0), false, empty},
        Vector{"bc501_any_no_deepest_ps", bc501, any, true, to_ps3, {}, no_deepest_ps},
        Vector{"bc501_1000_no_deepest_ps", bc501, us(1000), true, to_ps3, {}, no_deepest_ps},
        Vector{"bc501_999_no_deepest_ps", bc501, us(999), true, empty, {}, no_deepest_ps},
        Vector{"bc501_any_no_apst", bc501, any, false, empty, {}, no_apst},
        Vector{"bc501_25000_no_apst", bc501, us(25000), false, empty, {}, no_apst},
        // 2. Samsung 990 EVO Plus
        Vector{"evo_plus_100000", evo_plus, us(100000), true, to_ps3_then_ps4},
        Vector{"evo_plus_43000", evo_plus, us(43000), true, to_ps3_then_ps4},
        Vector{"evo_plus_any", evo_plus, any, true, to_ps3_then_ps4},
        Vector{"evo_plus_42999", evo_plus, us(42999), true, to_ps3},
        Vector{"evo_plus_25000", evo_plus, us(25000), true, to_ps3}, Vector{"evo_plus_4600", evo_plus, us(4600), true, to_ps3},
        Vector{"evo_plus_4599", evo_plus, us(4599), true, empty}, Vector{"evo_plus_1", evo_plus, us(1), true, empty},
        Vector{"evo_plus_0", evo_plus, us(0), false, empty},
        Vector{"entry_57000_fits_the_second_tier", client_drive({sleep_state(3, 4200, 4600), sleep_state(4, 57000, 43000)}),
               us(100000), true, to_ps3_then_ps4},
        Vector{"entry_57001_fits_no_tier", client_drive({sleep_state(3, 4200, 4600), sleep_state(4, 57001, 43000)}), us(100000),
               true, to_ps3},
        Vector{"entry_10400_fits_the_first_tier", client_drive({sleep_state(3, 10400, 4600), sleep_state(4, 20000, 43000)}),
               us(100000), true, to_ps3_then_ps4},
        Vector{"entry_10401_leaves_ps3_unused", client_drive({sleep_state(3, 10401, 4600), sleep_state(4, 20000, 43000)}),
               us(100000), true, late_to_ps4},
        // 3. like a Samsung 980 PRO
        Vector{"pro_100000", client_drive({sleep_state(3, 2000, 1200), sleep_state(4, 500, 9500)}), us(100000), true, to_ps4},
        Vector{"pro_2000", client_drive({sleep_state(3, 2000, 1200), sleep_state(4, 500, 9500)}), us(2000), true, to_ps3},
        // 4. two states of the second tier
        Vector{"two_secondary_100000", client_drive({sleep_state(3, 10000, 10000), sleep_state(4, 30000, 40000)}), us(100000),
               true, late_to_ps4},
        Vector{"two_secondary_30000", client_drive({sleep_state(3, 10000, 10000), sleep_state(4, 30000, 40000)}), us(30000),
               true, late_to_ps3},
        // 5. three sleep states, the last beyond every tier
        Vector{"three_100000",
               client_drive({sleep_state(3, 2000, 2000), sleep_state(4, 10000, 10000), sleep_state(5, 60000, 60000)}),
               us(100000),
               true,
               {0x6418, 0x6418, 0x6418, 0x7d020, 0, 0}},
        Vector{"three_any",
               client_drive({sleep_state(3, 2000, 2000), sleep_state(4, 10000, 10000), sleep_state(5, 60000, 60000)}),
               any,
               true,
               {0x6418, 0x6418, 0x6418, 0x7d020, 0, 0}},
        // 6. unreported latencies
        Vector{"unreported_100000", client_drive({sleep_state(3, 0, 0), sleep_state(4, 0, 0)}), us(100000), true, to_ps4},
        Vector{"unreported_1", client_drive({sleep_state(3, 0, 0), sleep_state(4, 0, 0)}), us(1), true, to_ps4},
        Vector{"unreported_0", client_drive({sleep_state(3, 0, 0), sleep_state(4, 0, 0)}), us(0), false, empty},
        // 7. operational states below sleep states
        Vector{"operational_below",
               {operational(0), sleep_state(1, 1000, 1000), operational(2), sleep_state(3, 1000, 1000), operational(4)},
               us(100000),
               true,
               to_ps3},
        Vector{"no_deepest_ps_protects_npss_only",
               {operational(0), sleep_state(1, 1000, 1000), operational(2), sleep_state(3, 1000, 1000), operational(4)},
               us(100000),
               true,
               to_ps3,
               {},
               no_deepest_ps},
        // 8. without tiers
        Vector{"bc501_primary_timeout_0", bc501, us(100000), true, {0x6418, 0x6418, 0x6418, 0x12c20, 0}, no_primary_time},
        Vector{"bc501_primary_latency_0", bc501, us(100000), true, {0x6418, 0x6418, 0x6418, 0x12c20, 0}, no_primary_latency},
        Vector{
            "evo_plus_primary_timeout_0", evo_plus, us(100000), true, {0x1b818, 0x1b818, 0x1b818, 0xc4e20, 0}, no_primary_time},
        Vector{"evo_plus_primary_latency_0",
               evo_plus,
               us(100000),
               true,
               {0x1b818, 0x1b818, 0x1b818, 0xc4e20, 0},
               no_primary_latency},
        Vector{"round_trip_1_takes_a_millisecond",
               client_drive({sleep_state(3, 0, 1)}),
               any,
               true,
               {0x118, 0x118, 0x118, 0},
               no_primary_time},
        Vector{"round_trip_20_takes_a_millisecond",
               client_drive({sleep_state(3, 0, 20)}),
               any,
               true,
               {0x118, 0x118, 0x118, 0},
               no_primary_time},
        Vector{"round_trip_21_takes_two",
               client_drive({sleep_state(3, 0, 21)}),
               any,
               true,
               {0x218, 0x218, 0x218, 0},
               no_primary_time},
        // 9. the 24 bits of the idle time
        Vector{"cap",
               client_drive({sleep_state(3, 0, 0), sleep_state(4, 400000000, 99999)}),
               us(100000),
               true,
               {0x18, 0x18, 0x18, 0xffffff20, 0},
               no_primary_time},
        Vector{"largest_latencies_without_tiers",
               client_drive({sleep_state(3, UINT32_MAX, UINT32_MAX)}),
               any,
               true,
               {0xffffff18, 0xffffff18, 0xffffff18, 0},
               no_primary_time},
        Vector{
            "largest_latencies_fit_no_tier", client_drive({sleep_state(3, UINT32_MAX, UINT32_MAX)}), any, true, {0, 0, 0, 0}},
        Vector{"exit_above_every_number",
               client_drive({sleep_state(3, 1000, 2147483647)}),
               us(2147483646),
               true,
               {0, 0, 0, 0},
               no_primary_time},
        // 10. without the second tier
        Vector{"evo_plus_secondary_timeout_0", evo_plus, us(100000), true, to_ps3, no_second_tier},
        // A tier's time runs over into the reserved half.
        Vector{"primary_timeout_20000000",
               bc501,
               us(100000),
               true,
               {0x1312d0020, 0x1312d0020, 0x1312d0020, 0x1312d0020, 0},
               long_primary_time},
        Vector{"secondary_timeout_16777216",
               evo_plus,
               us(100000),
               true,
               {0x6418, 0x6418, 0x6418, 0x100000020, 0},
               long_secondary_time}),
    [](const auto& row) { return row.param.name; });

TEST(APrimaryTierWiderThanTheSecond, TakesTheDeepStateFirst)
{
    const ApstParameters wide{.primary_latency_tol_us = 100000};
    const PredictedTable table = predict_apst_table({true, 4, evo_plus, {}, wide}, us(100000));
    EXPECT_EQ(raw_entries(table.feature, 5), to_ps4);
}

TEST(AnEntryWhoseTimeRanOver, IsNoTransitionForTheDrive)
{
    // 16777216 ms leaves nothing in the 24 bits that the drive looks at.
    const ApstEntry entry{0x100000020};
    EXPECT_EQ(entry.target(), 4);
    EXPECT_EQ(entry.idle_time(), Milliseconds{0});
    EXPECT_FALSE(entry.transitions());
}

TEST(ADriveWithoutApst, IsSentNothing)
{
    for (const LatencyTolerance& tolerance : {us(0), us(25000), any}) {
        const PredictedTable table = predict_apst_table({false, 4, bc501, {}, {}}, tolerance);
        EXPECT_EQ(table, PredictedTable{});
        EXPECT_FALSE(table.command_sent);
    }
}

class AnInvalidNpss : public testing::TestWithParam<int> {};

TEST_P(AnInvalidNpss, IsSentNothing)
{
    std::vector<PowerState> states;
    for (int i = 0; i < 32; ++i)
        states.push_back(i < 3 ? operational(i) : sleep_state(i, 100, 100));
    EXPECT_EQ(predict_apst_table({true, GetParam(), states, {}, {}}, any), PredictedTable{});
}
INSTANTIATE_TEST_SUITE_P(Npss, AnInvalidNpss, testing::Values(32, 40, 255), testing::PrintToStringParamName());

TEST(ADriveWith32States, UsesTheLastOne)
{
    std::vector<PowerState> states;
    for (int i = 0; i < 32; ++i)
        states.push_back(i < 3 ? operational(i) : sleep_state(i, 100, 100));
    const PredictedTable table = predict_apst_table({true, 31, states, {}, {}}, us(100));
    EXPECT_TRUE(table.command_sent);
    EXPECT_EQ(table.feature.deepest_state(), 31);
    EXPECT_EQ(table.feature.entries[30].raw, 0x64f8U);
    EXPECT_EQ(table.feature.entries[31].raw, 0U);
}

TEST(ATableFromADevice, ThatRunsInACircleEnds)
{
    ApstFeature table;
    table.enabled = true;
    table.entries[0].raw = (3U << 3U) | (100U << 8U);
    table.entries[3].raw = (4U << 3U) | (100U << 8U);
    table.entries[4].raw = (3U << 3U) | (100U << 8U);
    const auto deepest = table.deepest_state();
    ASSERT_TRUE(deepest);
    EXPECT_TRUE(*deepest == 3 || *deepest == 4);
}

TEST(ATableFromADevice, ThatPointsAtItselfEnds)
{
    ApstFeature table;
    table.enabled = true;
    table.entries[0].raw = 100U << 8U;
    EXPECT_EQ(table.deepest_state(), std::nullopt);
}

TEST(ATableFromADevice, OfAllOnesIsRead)
{
    ApstFeature table;
    table.enabled = true;
    table.entries.fill({UINT64_MAX});
    EXPECT_EQ(table.deepest_state(), 31);
}

TEST(ATableThatIsOff, LeadsNowhere)
{
    ApstFeature table;
    table.entries.fill({0x6418});
    EXPECT_EQ(table.deepest_state(), std::nullopt);
}

} // namespace
} // namespace nvmepolicy
