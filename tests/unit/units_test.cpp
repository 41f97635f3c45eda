// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/units.h"

#include <limits>
#include <ostream>

#include <gtest/gtest.h>

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

const std::string allowed_duration = R"(; allowed: a duration with its unit (us, ms or s), for example "25ms", or 0)";
const std::string allowed_bound = R"(; allowed: a duration with its unit (us, ms or s), for example "25ms", "any", or 0)";
const std::string allowed_tolerance = "; allowed: a duration with its unit (us, ms or s), for example 25ms, a whole number "
                                      "of microseconds, any, or auto";

struct Read {
    std::string name;
    std::string text;
    Microseconds latency;
};
struct Refused {
    std::string name;
    std::string text;
    std::string message; ///< without what is allowed
};
void PrintTo(const Read& row, std::ostream* out)
{
    *out << row.text;
}
void PrintTo(const Refused& row, std::ostream* out)
{
    *out << row.text;
}
template <class Row>
std::string row_name(const testing::TestParamInfo<Row>& row)
{
    return row.param.name;
}

class ADuration : public testing::TestWithParam<Read> {};

TEST_P(ADuration, IsReadExactly)
{
    const Result<Microseconds> read = parse_duration("--max-latency", GetParam().text);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, GetParam().latency);
}
TEST_P(ADuration, IsABoundAndATolerance)
{
    EXPECT_EQ(parse_bound("", GetParam().text), LatencyBound{GetParam().latency});
    EXPECT_EQ(parse_tolerance("", GetParam().text), LatencyTolerance::of(GetParam().latency));
}
TEST_P(ADuration, ReadsBackAsItIsShown)
{
    EXPECT_EQ(parse_duration("", show(GetParam().latency)), GetParam().latency);
}
INSTANTIATE_TEST_SUITE_P(
    Text, ADuration,
    testing::Values(Read{"zero", "0", 0us}, Read{"zero_with_unit", "0ms", 0us}, Read{"zero_with_decimals", "0.000s", 0us},
                    Read{"one_microsecond", "1us", 1us}, Read{"pm981_ps3", "1200us", 1200us}, Read{"pm981_ps4", "8ms", 8000us},
                    Read{"evo_plus_ps3", "4.6ms", 4600us}, Read{"with_a_blank", "25 ms", 25000us},
                    Read{"finest_ms", "0.001ms", 1us}, Read{"finest_s", "0.000001s", 1us},
                    Read{"optane_h10", "1.15s", 1150000us}, Read{"zeros_after_the_last_digit", "1.500000000ms", 1500us},
                    Read{"whole_us_with_point", "900.0us", 900us}, Read{"leading_zeros_are_not_octal", "010ms", 10000us},
                    Read{"largest_us", "2147483646us", 2147483646us}, Read{"largest_ms", "2147483.646ms", 2147483646us},
                    Read{"largest_s", "2147.483646s", 2147483646us}),
    row_name<Read>);

class NoDuration : public testing::TestWithParam<Refused> {};

TEST_P(NoDuration, IsRefusedWithEverythingNeededToCorrectIt)
{
    const Result<Microseconds> read = parse_duration("--max-latency", GetParam().text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().text(), "--max-latency: " + GetParam().message + allowed_duration);
    EXPECT_EQ(read.error().kind, RefusalKind::invalid);
}
TEST_P(NoDuration, IsNoBoundEither)
{
    const Result<LatencyBound> read = parse_bound("--max-latency", GetParam().text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().text(), "--max-latency: " + GetParam().message + allowed_bound);
}
INSTANTIATE_TEST_SUITE_P(
    Text, NoDuration,
    testing::Values(
        Refused{"empty", "", "is empty"}, Refused{"no_unit", "25", "\"25\": has no unit"},
        Refused{"no_unit_with_decimals", "2.5", "\"2.5\": has no unit"}, Refused{"two_zeros", "00", "\"00\": has no unit"},
        Refused{"negative", "-1ms", "\"-1ms\": cannot be negative"},
        Refused{"negative_without_unit", "-1", "\"-1\": cannot be negative"},
        Refused{"plus", "+1ms", "\"+1ms\": not a duration"},
        Refused{"minutes", "2min", "\"2min\": has the unknown unit \"min\""},
        Refused{"upper_case", "25MS", "\"25MS\": has the unknown unit \"MS\""},
        Refused{"micro_sign", "25µs", "\"25µs\": not a duration"},
        Refused{"nanoseconds", "1000ns", "\"1000ns\": has the unknown unit \"ns\""},
        Refused{"leading_blank", " 25ms", "\" 25ms\": has blanks around it"},
        Refused{"trailing_newline", "25ms\n", "\"25ms\\n\": has blanks around it"},
        Refused{"two_blanks", "25  ms", "\"25  ms\": not a duration"},
        Refused{"blank_for_unit", "25 ", "\"25 \": has blanks around it"},
        Refused{"only_a_unit", "ms", "\"ms\": not a duration"}, Refused{"only_a_point", ".5ms", "\".5ms\": not a duration"},
        Refused{"point_at_the_end", "5.ms", "\"5.ms\": has no digits after the point"},
        Refused{"comma", "4,6ms", "\"4,6ms\": not a duration"}, Refused{"two_points", "1.2.3ms", "\"1.2.3ms\": not a duration"},
        Refused{"exponent", "1e3us", "\"1e3us\": not a duration"},
        Refused{"hexadecimal", "0x10us", "\"0x10us\": not a duration"},
        Refused{"two_durations", "1s500ms", "\"1s500ms\": not a duration"},
        Refused{"finer_than_us", "0.5us", "\"0.5us\": not a whole number of microseconds"},
        Refused{"finer_than_us_in_ms", "1.0005ms", "\"1.0005ms\": not a whole number of microseconds"},
        Refused{"finer_than_us_in_s", "0.0000001s", "\"0.0000001s\": not a whole number of microseconds"},
        Refused{"the_kernels_any", "2147483647us", "\"2147483647us\": above 2147483646 us"},
        Refused{"one_too_many_ms", "2147483.647ms", "\"2147483.647ms\": above 2147483646 us"},
        Refused{"one_too_many_s", "2147.483647s", "\"2147.483647s\": above 2147483646 us"},
        Refused{"beyond_64_bits", "99999999999999999999s", "\"99999999999999999999s\": above 2147483646 us"},
        Refused{"auto_is_for_tolerances", "auto", "\"auto\": not a duration"},
        Refused{"upper_case_any", "Any", "\"Any\": not a duration"},
        Refused{"escape_sequence", "25\x1b[2J", "\"25\\x1b[2J\": not a duration"},
        Refused{"nul", std::string("25ms\0", 5), "\"25ms\\x00\": not a duration"},
        Refused{"broken_utf8", "25\xff", "\"25\\xff\": not a duration"}),
    row_name<Refused>);

TEST(AnyIsABound, ThatLimitsNothing)
{
    EXPECT_EQ(parse_bound("", "any"), LatencyBound{});
    EXPECT_EQ(parse_duration("--for", "any").error().text(), "--for: \"any\": not a duration" + allowed_duration);
}

TEST(ATolerance, IsAlsoABareNumberOfMicrosecondsAsInTheKernelsFile)
{
    EXPECT_EQ(parse_tolerance("", "25000"), LatencyTolerance::of(25ms));
    EXPECT_EQ(parse_tolerance("", "0"), LatencyTolerance::of(0us));
    EXPECT_EQ(parse_tolerance("", "2147483646"), LatencyTolerance::of(2147483646us));
    EXPECT_EQ(parse_tolerance("", "2147483647"), LatencyTolerance::any()) << "the kernel's number for it";
    EXPECT_EQ(parse_tolerance("-t", "010").error().text().substr(0, 63),
              "-t: \"010\": a leading zero, which makes it octal in the kernel's");
}
TEST(ATolerance, IsAlsoAnyOrAuto)
{
    EXPECT_EQ(parse_tolerance("", "any"), LatencyTolerance::any());
    EXPECT_EQ(parse_tolerance("", "auto"), LatencyTolerance::automatic());
}
TEST(ATolerance, CannotBeMoreThanTheKernelTakes)
{
    EXPECT_EQ(parse_tolerance("--tolerance", "4294967296").error().text(),
              "--tolerance: \"4294967296\": above 2147483646 us" + allowed_tolerance);
    EXPECT_EQ(parse_tolerance("--tolerance", "18446744073709551616").error().text(),
              "--tolerance: \"18446744073709551616\": above 2147483646 us" + allowed_tolerance);
}
TEST(ATolerance, CannotBeNegativeHexadecimalOrEmpty)
{
    EXPECT_EQ(parse_tolerance("--tolerance", "-1").error().text(),
              "--tolerance: \"-1\": cannot be negative" + allowed_tolerance);
    EXPECT_EQ(parse_tolerance("--tolerance", "0x10").error().text(),
              "--tolerance: \"0x10\": not a duration" + allowed_tolerance);
    EXPECT_EQ(parse_tolerance("--tolerance", "").error().text(), "--tolerance: is empty" + allowed_tolerance);
    EXPECT_EQ(parse_tolerance("--tolerance", "2.5").error().text(), "--tolerance: \"2.5\": has no unit" + allowed_tolerance);
    EXPECT_EQ(parse_tolerance("--tolerance", "25000\n").error().text(),
              "--tolerance: \"25000\\n\": has blanks around it" + allowed_tolerance);
}
TEST(ATolerance, IsWrittenAsTheKernelTakesIt)
{
    EXPECT_EQ(LatencyTolerance::automatic().kernel_text(), "auto");
    EXPECT_EQ(LatencyTolerance::any().kernel_text(), "any");
    EXPECT_EQ(LatencyTolerance::of(0us).kernel_text(), "0");
    EXPECT_EQ(LatencyTolerance::of(25ms).kernel_text(), "25000");
    EXPECT_EQ(LatencyTolerance::of(3600s).kernel_text(), "2147483646");
    EXPECT_EQ(LatencyTolerance::of(-1us).kernel_text(), "0");
}
TEST(ATolerance, IsShownWithItsUnit)
{
    EXPECT_EQ(show(LatencyTolerance::of(4999us)), "4.999 ms");
    EXPECT_EQ(show(LatencyTolerance::of(0us)), "0");
    EXPECT_EQ(show(LatencyTolerance::any()), "any");
    EXPECT_EQ(show(LatencyTolerance::automatic()), "auto");
}

TEST(ALatency, IsShownInTheUnitThatReadsBest)
{
    EXPECT_EQ(show(0us), "0");
    EXPECT_EQ(show(1us), "1 us");
    EXPECT_EQ(show(900us), "900 us");
    EXPECT_EQ(show(999us), "999 us");
    EXPECT_EQ(show(1000us), "1 ms");
    EXPECT_EQ(show(4600us), "4.6 ms");
    EXPECT_EQ(show(Microseconds{25ms}), "25 ms");
    EXPECT_EQ(show(100'000us), "100 ms");
    EXPECT_EQ(show(999'999us), "999.999 ms");
    EXPECT_EQ(show(1'000'000us), "1 s");
    EXPECT_EQ(show(1'150'000us), "1.15 s");
    EXPECT_EQ(show(1'000'001us), "1.000001 s");
    EXPECT_EQ(show(-500us), "-500 us");
    EXPECT_EQ(show(Microseconds::min()), "-9223372036854775808 us");
    EXPECT_EQ(show(Microseconds::max()), "9223372036854.775807 s");
}
TEST(ABound, IsShownAsADurationOrAny)
{
    EXPECT_EQ(show(LatencyBound{25ms}), "25 ms");
    EXPECT_EQ(show(LatencyBound{0us}), "0");
    EXPECT_EQ(show(LatencyBound{}), "any");
}

// WD Black SN750: PS4 2.5 mW, PS3 70 mW, PS0 5.93 W.
TEST(Power, IsShownInMilliwattsBelowAWatt)
{
    EXPECT_EQ(show(Microwatts{2'500}), "2.5 mW");
    EXPECT_EQ(show(Microwatts{70'000}), "70 mW");
    EXPECT_EQ(show(Microwatts{80'000}), "80 mW");
    EXPECT_EQ(show(Microwatts{5'930'000}), "5.93 W");
    EXPECT_EQ(show(Microwatts{100}), "0.1 mW");
    EXPECT_EQ(show(Microwatts{0}), "0 mW");
    EXPECT_EQ(show(Microwatts{999'900}), "999.9 mW");
    EXPECT_EQ(show(Microwatts{1'000'000}), "1 W");
    EXPECT_EQ(show(Microwatts{std::numeric_limits<std::int64_t>::max()}), "9223372036854.775807 W");
}

TEST(TheStricterOfTwoBounds, IsTheShorterOneAndAnyLosesAgainstAll)
{
    EXPECT_EQ(stricter({25ms}, {10ms}), LatencyBound{10ms});
    EXPECT_EQ(stricter({10ms}, {25ms}), LatencyBound{10ms});
    EXPECT_EQ(stricter({}, {100ms}), LatencyBound{100ms});
    EXPECT_EQ(stricter({100ms}, {}), LatencyBound{100ms});
    EXPECT_EQ(stricter({0us}, {1us}), LatencyBound{0us});
    EXPECT_EQ(stricter({}, {}), LatencyBound{});
}

} // namespace
} // namespace nvmepolicy
