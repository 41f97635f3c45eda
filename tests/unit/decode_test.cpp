// SPDX-License-Identifier: LGPL-2.1-or-later
// Pages from a drive and texts from sysfs, as they should be and as they should not.
#include "nvmepolicy/decode.h"

#include <ostream>

#include <gtest/gtest.h>

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

/// An Identify Controller page, filled in by byte offset. Source: NVMe 1.4c, figures 247 and 248.
class IdentifyPage {
public:
    IdentifyPage()
    {
        text(4, "S7U8NJ0X000001", 20).text(24, "Samsung SSD 990 EVO Plus 4TB", 40).text(64, "2B2QKXG7", 8);
        number(0, 0x144d, 2).number(2, 0x144d, 2).number(78, 1, 2).number(80, 0x00020000, 4).number(265, 1, 1);
    }
    IdentifyPage& number(std::size_t at, std::uint64_t value, std::size_t length)
    {
        for (std::size_t i = 0; i < length; ++i)
            bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
        return *this;
    }
    IdentifyPage& text(std::size_t at, const std::string& value, std::size_t length, char padding = ' ')
    {
        for (std::size_t i = 0; i < length; ++i)
            bytes[at + i] = static_cast<std::uint8_t>(i < value.size() ? value[i] : padding);
        return *this;
    }
    static std::size_t descriptor(std::size_t state) { return 2048 + 32 * state; }
    [[nodiscard]] Result<IdentifyController> decoded() const { return decode_identify("nvme0: Identify Controller", bytes); }
    std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(4096);
};

TEST(AnIdentifyPage, BecomesFacts)
{
    IdentifyPage page;
    page.number(76, 2, 1).number(263, 4, 1).number(520, 0x5f, 2).number(525, 7, 1);
    page.text(768, "nqn.1994-11.com.samsung:nvme:990EVOPlus:M.2:S7U8NJ0X000001", 256, '\0');
    const std::size_t ps4 = IdentifyPage::descriptor(4);
    page.number(ps4, 70, 2).number(ps4 + 3, 3, 1).number(ps4 + 4, 1600, 4).number(ps4 + 8, 43000, 4);
    const auto id = page.decoded();
    ASSERT_TRUE(id) << id.error().text();
    EXPECT_EQ(id->vendor_id, 0x144d);
    EXPECT_EQ(id->subsystem_vendor_id, 0x144d);
    EXPECT_EQ(id->serial, "S7U8NJ0X000001");
    EXPECT_EQ(id->model, "Samsung SSD 990 EVO Plus 4TB");
    EXPECT_EQ(id->firmware, "2B2QKXG7");
    EXPECT_EQ(id->cntlid, 1);
    EXPECT_EQ(id->version, 0x00020000U);
    EXPECT_EQ(id->subsystem_nqn, "nqn.1994-11.com.samsung:nvme:990EVOPlus:M.2:S7U8NJ0X000001");
    EXPECT_TRUE(id->multi_controller);
    EXPECT_EQ(id->oncs, 0x5f);
    EXPECT_EQ(id->vwc, 7);
    EXPECT_EQ(id->apsta, 1);
    EXPECT_EQ(id->npss, 4);
    ASSERT_EQ(id->power_states.size(), 5U);
    EXPECT_EQ(id->power_states[4], (PowerState{4, Microwatts{7000}, {}, {}, 1600us, 43000us, false}));
    EXPECT_EQ(id->power_states[0], (PowerState{}));
}

TEST(AnIdentifyPage, OfAllZerosIsRefused)
{
    EXPECT_EQ(decode_identify("nvme0", std::vector<std::uint8_t>(4096)).error().text(),
              "nvme0: the controller answered with an Identify page of all zeros");
}

TEST(AnIdentifyPage, OfAllOnesIsRefused)
{
    EXPECT_EQ(decode_identify("nvme0", std::vector<std::uint8_t>(4096, 0xff)).error().text(),
              "nvme0: the controller answered with an Identify page of all ones, as one does that left the bus");
}

TEST(AnIdentifyPage, CutShortIsRefused)
{
    IdentifyPage page;
    page.bytes.resize(4095);
    EXPECT_EQ(page.decoded().error().text(), "nvme0: Identify Controller: \"4095 bytes\": an Identify Controller page has 4096 "
                                             "bytes; this one is cut short");
    page.bytes.clear();
    EXPECT_EQ(page.decoded().error().kind, RefusalKind::invalid);
}

TEST(AnIdentifyPage, LongerThanAPageIsReadAsOne)
{
    IdentifyPage page;
    page.bytes.resize(5000, 0xff);
    EXPECT_TRUE(page.decoded());
    // What follows does not make a page of zeros another one.
    std::vector<std::uint8_t> zeros(4096);
    zeros.resize(5000, 0xff);
    EXPECT_FALSE(decode_identify("nvme0", zeros));
}

TEST(AnIdentifyPage, WithoutSerialAndModelIsRefused)
{
    IdentifyPage page;
    page.text(4, "", 20).text(24, "", 40);
    EXPECT_EQ(page.decoded().error().text(),
              "nvme0: Identify Controller: the Identify page names neither a serial number nor a model");
    page.text(24, "APPLE SSD AP0128H", 40);
    EXPECT_TRUE(page.decoded());
}

TEST(ANameOnADrive, IsMadePrintable)
{
    IdentifyPage page;
    page.text(4, "  \x1b[2JS1\xff\x80\t", 20).text(24, std::string("evil\0hidden", 11), 40);
    const auto id = page.decoded();
    ASSERT_TRUE(id);
    EXPECT_EQ(id->serial, "?[2JS1???");
    EXPECT_EQ(id->model, "evil");
}

struct NpssRow {
    int npss;
    std::size_t states;
};
class Npss : public testing::TestWithParam<NpssRow> {};
TEST_P(Npss, IsAnIndexAndThereAre32Descriptors)
{
    IdentifyPage page;
    page.number(263, static_cast<std::uint64_t>(GetParam().npss), 1);
    const auto id = page.decoded();
    ASSERT_TRUE(id);
    EXPECT_EQ(id->npss, GetParam().npss);
    ASSERT_EQ(id->power_states.size(), GetParam().states);
    for (std::size_t i = 0; i < id->power_states.size(); ++i)
        EXPECT_EQ(id->power_states[i].index, static_cast<int>(i));
}
INSTANTIATE_TEST_SUITE_P(Value, Npss,
                         testing::Values(NpssRow{0, 1}, NpssRow{4, 5}, NpssRow{31, 32}, NpssRow{32, 32}, NpssRow{40, 32},
                                         NpssRow{255, 32}),
                         [](const auto& row) { return "npss_" + std::to_string(row.param.npss); });

TEST(LatenciesNearFourBillion, StayNumbers)
{
    IdentifyPage page;
    const std::size_t ps0 = IdentifyPage::descriptor(0);
    page.number(ps0 + 4, 0xffffffff, 4).number(ps0 + 8, 0xfffffffe, 4).number(ps0 + 3, 2, 1);
    const auto id = page.decoded();
    ASSERT_TRUE(id);
    const PowerState& s = id->power_states[0];
    EXPECT_EQ(s.entry_latency, Microseconds{4294967295});
    EXPECT_EQ(s.exit_latency, Microseconds{4294967294});
    EXPECT_EQ(s.round_trip(), Microseconds{8589934589});
    EXPECT_FALSE(s.operational);
}

struct PowerRow {
    std::string name;
    std::uint16_t value;
    std::uint8_t scale;
    std::optional<Microwatts> power;
};
void PrintTo(const PowerRow& row, std::ostream* out)
{
    *out << row.name;
}

class MaximumPower : public testing::TestWithParam<PowerRow> {};
TEST_P(MaximumPower, IsInUnitsOfMxps)
{
    IdentifyPage page;
    page.number(2048, GetParam().value, 2).number(2048 + 3, GetParam().scale, 1);
    EXPECT_EQ(page.decoded()->power_states[0].max_power, GetParam().power);
}
INSTANTIATE_TEST_SUITE_P(Scale, MaximumPower,
                         testing::Values(PowerRow{"wd_black_sn750_ps4", 25, 1, Microwatts{2500}},
                                         PowerRow{"six_watts", 600, 0, Microwatts{6'000'000}},
                                         PowerRow{"largest", 65535, 0, Microwatts{655'350'000}},
                                         PowerRow{"largest_fine", 65535, 1, Microwatts{6'553'500}},
                                         PowerRow{"reserved_bits_say_nothing", 600, 0xfc, Microwatts{6'000'000}},
                                         PowerRow{"zero_is_not_reported", 0, 0, {}}, PowerRow{"zero_fine", 0, 1, {}}),
                         [](const auto& row) { return row.param.name; });

class IdleAndActivePower : public testing::TestWithParam<PowerRow> {};
TEST_P(IdleAndActivePower, AreInUnitsOfIpsAndAps)
{
    for (const std::size_t at : {std::size_t{16}, std::size_t{20}}) {
        IdentifyPage page;
        page.number(2048 + at, GetParam().value, 2).number(2048 + at + 2, GetParam().scale, 1);
        const PowerState s = page.decoded()->power_states[0];
        EXPECT_EQ(at == 16 ? s.idle_power : s.active_power, GetParam().power);
        EXPECT_EQ(at == 16 ? s.active_power : s.idle_power, std::nullopt);
    }
}
INSTANTIATE_TEST_SUITE_P(Scale, IdleAndActivePower,
                         testing::Values(PowerRow{"not_reported", 50, 0x00, {}}, PowerRow{"fine", 50, 0x40, Microwatts{5000}},
                                         PowerRow{"coarse", 50, 0x80, Microwatts{500'000}}, PowerRow{"reserved", 50, 0xc0, {}},
                                         PowerRow{"zero", 0, 0x80, {}},
                                         PowerRow{"largest", 65535, 0x80, Microwatts{655'350'000}},
                                         PowerRow{"workload_bits_say_nothing", 50, 0x47, Microwatts{5000}}),
                         [](const auto& row) { return row.param.name; });

TEST(AnApstFeature, IsLittleEndian)
{
    std::vector<std::uint8_t> buffer(256);
    buffer[0] = 0x20;
    buffer[1] = 0x64;
    buffer[4] = 0x01;
    buffer[255] = 0x80;
    const auto feature = decode_apst_feature("nvme0", buffer, 1);
    ASSERT_TRUE(feature);
    EXPECT_TRUE(feature->enabled);
    EXPECT_EQ(feature->entries[0].raw, 0x100006420U);
    EXPECT_EQ(feature->entries[31].raw, 0x8000000000000000U);
}

TEST(AnApstFeature, IsOnByBitZeroOfTheResult)
{
    const std::vector<std::uint8_t> buffer(256);
    EXPECT_FALSE(decode_apst_feature("nvme0", buffer, 0)->enabled);
    EXPECT_FALSE(decode_apst_feature("nvme0", buffer, 0xfffffffe)->enabled);
    EXPECT_TRUE(decode_apst_feature("nvme0", buffer, 0xffffffff)->enabled);
}

TEST(AnApstFeature, CutShortIsRefused)
{
    EXPECT_EQ(decode_apst_feature("nvme0: Get Features 0Ch", std::vector<std::uint8_t>(255), 1).error().text(),
              "nvme0: Get Features 0Ch: \"255 bytes\": an APST table has 256 bytes; this one is cut short");
    EXPECT_FALSE(decode_apst_feature("nvme0", {}, 1));
    EXPECT_TRUE(decode_apst_feature("nvme0", std::vector<std::uint8_t>(4096), 1));
}

// ---------------------------------------------------------------------------------------------------------------------

std::string outcome(const Result<std::string>& line)
{
    return line ? *line : "refused: " + line.error().text();
}

struct LineRow {
    std::string name;
    std::string raw;
    std::string outcome;
};
void PrintTo(const LineRow& row, std::ostream* out)
{
    *out << row.name;
}

class ALine : public testing::TestWithParam<LineRow> {};
TEST_P(ALine, IsOneLineOfPrintableText)
{
    EXPECT_EQ(outcome(decode_line("serial", GetParam().raw)), GetParam().outcome);
}
INSTANTIATE_TEST_SUITE_P(
    Of, ALine,
    testing::Values(LineRow{"padding", "S7U8NJ0X000001      \n", "S7U8NJ0X000001"}, LineRow{"no_newline", "live", "live"},
                    LineRow{"blanks_in_front", "   S1\n", "S1"},
                    LineRow{"blanks_inside", "Samsung SSD 980\n", "Samsung SSD 980"},
                    LineRow{"empty", "", "refused: serial: empty"}, LineRow{"newline", "\n", "refused: serial: empty"},
                    LineRow{"blanks", "                    \n", "refused: serial: empty"},
                    LineRow{"efault", "(efault)\n",
                            "refused: serial: \"(efault)\": the kernel has not identified this controller yet"},
                    LineRow{"two_lines", "a\nb\n", "refused: serial: \"a?b\": not a line of printable text"},
                    LineRow{"two_newlines", "a\n\n", "refused: serial: \"a\": not a line of printable text"},
                    LineRow{"nul", std::string("a\0b\n", 4), "refused: serial: \"a?b\": not a line of printable text"},
                    LineRow{"escape", "\x1b[2J\n", "refused: serial: \"?[2J\": not a line of printable text"},
                    LineRow{"delete", "a\x7f\n", "refused: serial: \"a?\": not a line of printable text"},
                    LineRow{"utf8", "\xc3\xa4\n", "refused: serial: \"??\": not a line of printable text"},
                    LineRow{"tab", "a\tb\n", "refused: serial: \"a?b\": not a line of printable text"},
                    LineRow{"longest", std::string(4096, 'x') + "\n", std::string(4096, 'x')},
                    LineRow{"too_long", std::string(4097, 'x') + "\n",
                            "refused: serial: \"" + std::string(80, 'x') + "\": longer than any sysfs attribute"}),
    [](const auto& row) { return row.param.name; });

TEST(ALine, WithEfaultIsReadLater)
{
    EXPECT_EQ(decode_line("serial", "(efault)\n").error().kind, RefusalKind::try_later);
}

struct ToleranceRow {
    std::string name;
    std::string raw;
    std::optional<LatencyTolerance> tolerance;
};
void PrintTo(const ToleranceRow& row, std::ostream* out)
{
    *out << row.name;
}

class ToleranceText : public testing::TestWithParam<ToleranceRow> {};
TEST_P(ToleranceText, IsWhatTheKernelPrintsAndNothingElse)
{
    const auto tolerance = decode_tolerance("file", GetParam().raw);
    EXPECT_EQ(tolerance ? std::optional{*tolerance} : std::nullopt, GetParam().tolerance);
    if (!tolerance) {
        EXPECT_EQ(tolerance.error().kind, RefusalKind::invalid);
        EXPECT_EQ(tolerance.error().reason, "neither \"auto\", \"any\" nor a number of microseconds up to 2147483646");
    }
}
LatencyTolerance us(std::int64_t limit)
{
    return LatencyTolerance::of(Microseconds{limit});
}
INSTANTIATE_TEST_SUITE_P(
    Of, ToleranceText,
    testing::Values(ToleranceRow{"automatic", "auto\n", LatencyTolerance::automatic()},
                    ToleranceRow{"any", "any\n", LatencyTolerance::any()},
                    ToleranceRow{"any_bare", "any", LatencyTolerance::any()}, ToleranceRow{"zero", "0\n", us(0)},
                    ToleranceRow{"number", "25000\n", us(25000)}, ToleranceRow{"largest", "2147483646\n", us(2147483646)},
                    ToleranceRow{"one_more", "2147483647\n", {}}, ToleranceRow{"huge", "99999999999999999999999\n", {}},
                    ToleranceRow{"negative", "-1\n", {}}, ToleranceRow{"plus", "+5\n", {}},
                    ToleranceRow{"hexadecimal", "0x10\n", {}}, ToleranceRow{"leading_zeros_are_decimal", "0100\n", us(100)},
                    ToleranceRow{"empty", "", {}}, ToleranceRow{"newline", "\n", {}}, ToleranceRow{"efault", "(efault)\n", {}},
                    ToleranceRow{"capitals", "ANY\n", {}}, ToleranceRow{"blank", "any \n", {}},
                    ToleranceRow{"blank_in_front", " 5\n", {}}, ToleranceRow{"unit", "25ms\n", {}},
                    ToleranceRow{"fraction", "1.5\n", {}}, ToleranceRow{"two_lines", "5\n6\n", {}},
                    ToleranceRow{"nul", std::string("5\0\n", 3), {}}, ToleranceRow{"letters", "garbage\n", {}},
                    ToleranceRow{"long", std::string(100000, '9'), {}}),
    [](const auto& row) { return row.param.name; });

TEST(ARefusedText, IsShownCutAndPrintable)
{
    EXPECT_EQ(decode_tolerance("file", "\x1b[2Jx\n").error().text(),
              "file: \"?[2Jx\": neither \"auto\", \"any\" nor a number of microseconds up to 2147483646");
    EXPECT_EQ(decode_number("file", std::string(5000, '7')).error().value.size(), 80U);
}

TEST(ANumber, GoesUpToItsLargest)
{
    EXPECT_EQ(*decode_number("cntlid", "65535\n", UINT16_MAX), 65535U);
    EXPECT_EQ(decode_number("cntlid", "65536\n", UINT16_MAX).error().text(),
              "cntlid: \"65536\": not a decimal number from 0 to 65535");
    EXPECT_EQ(*decode_number("parameter", "18446744073709551615\n"), UINT64_MAX);
    EXPECT_FALSE(decode_number("parameter", "18446744073709551616\n"));
    EXPECT_FALSE(decode_number("parameter", "-1\n"));
    EXPECT_FALSE(decode_number("parameter", ""));
    EXPECT_FALSE(decode_number("parameter", "\n"));
    EXPECT_FALSE(decode_number("parameter", "(efault)\n"));
}

TEST(APciId, Is16BitsOfHexadecimal)
{
    EXPECT_EQ(*decode_pci_id("vendor", "0x144d\n"), 0x144d);
    EXPECT_EQ(*decode_pci_id("vendor", "0xFFFF"), 0xffff);
    EXPECT_EQ(decode_pci_id("vendor", "0x1144d\n").error().text(), "vendor: \"0x1144d\": not a PCI id such as 0x144d");
    for (const char* text : {"", "0x", "144d", "0x0x1", "0x-1", "0x+1", "0x 1", "0x14g", "0X144d"})
        EXPECT_FALSE(decode_pci_id("vendor", text)) << text;
}

TEST(AFlag, IsYOrN)
{
    EXPECT_TRUE(*decode_flag("force_apst", "Y\n"));
    EXPECT_FALSE(*decode_flag("force_apst", "N\n"));
    EXPECT_TRUE(*decode_flag("fua", "1\n"));
    EXPECT_FALSE(*decode_flag("fua", "0\n"));
    EXPECT_EQ(decode_flag("force_apst", "y\n").error().text(), "force_apst: \"y\": neither Y nor N");
    EXPECT_FALSE(decode_flag("force_apst", ""));
}

TEST(AState, IsOneOfTheKernelsWords)
{
    EXPECT_EQ(decode_state("live\n"), ControllerState::live);
    EXPECT_EQ(decode_state("new\n"), ControllerState::created);
    EXPECT_EQ(decode_state("resetting\n"), ControllerState::resetting);
    EXPECT_EQ(decode_state("connecting\n"), ControllerState::connecting);
    EXPECT_EQ(decode_state("deleting\n"), ControllerState::deleting);
    EXPECT_EQ(decode_state("deleting (no IO)\n"), ControllerState::deleting);
    EXPECT_EQ(decode_state("dead\n"), ControllerState::dead);
    for (const char* text : {"", "\n", "LIVE", "live ", "live\nx", "alive", "(efault)"})
        EXPECT_EQ(decode_state(text), ControllerState::unknown) << text;
}

TEST(Quirks, AreOneNameALine)
{
    EXPECT_EQ(decode_quirks("none\n"), ApstQuirks{});
    EXPECT_EQ(decode_quirks(""), ApstQuirks{});
    EXPECT_EQ(decode_quirks("simple_suspend\nno_deepest_ps\n"), (ApstQuirks{false, true}));
    EXPECT_EQ(decode_quirks("no_apst\nno_deepest_ps"), (ApstQuirks{true, true}));
    EXPECT_EQ(decode_quirks("\n\n\nno_apst"), (ApstQuirks{true, false}));
    EXPECT_EQ(decode_quirks("no_apst_x\nxno_deepest_ps\nno_deepest_ps \n"), ApstQuirks{});
}

TEST(PrintableAscii, ReplacesAndTrims)
{
    EXPECT_EQ(printable_ascii("  a b  "), "a b");
    EXPECT_EQ(printable_ascii(std::string("\0\n\x1b~\x7f\xff", 6)), "???~??");
    EXPECT_EQ(printable_ascii("    "), "");
    EXPECT_EQ(printable_ascii(""), "");
}

} // namespace
} // namespace nvmepolicy
