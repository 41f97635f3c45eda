// SPDX-License-Identifier: LGPL-2.1-or-later
// The record of what the drives had before us: it comes back whole, or not at all.
#include "nvmepolicy/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include <gtest/gtest.h>

namespace nvmepolicy {
namespace {

using nlohmann::json;

const ControllerId evo_plus{"nqn.1994-11.com.samsung:nvme:990EVOPlus:M.2:S7U8NJ0X000001", "S7U8NJ0X000001", 1};
const ControllerId bc501{"nqn.2014-08.org.nvmexpress:1c5c1c5c", "NJ82N020110302T1L", 0};

LatencyTolerance us(std::int64_t limit)
{
    return LatencyTolerance::of(Microseconds{limit});
}

Ledger two_entries()
{
    Ledger ledger;
    LedgerEntry& first = ledger.at(evo_plus);
    first.name = "nvme0";
    first.first = us(100000);
    first.intended = {us(24999), us(25000)};
    first.ours = us(25000);
    first.programmed_with = ApstParameters{50, 15000, UINT64_MAX, 0};
    first.origin = "profile balanced";
    first.written_at = 1787000000;
    LedgerEntry& second = ledger.at(bc501);
    second.first = LatencyTolerance::automatic();
    second.intended = {LatencyTolerance::any()};
    return ledger;
}

TEST(ALedger, ComesBackAsItWas)
{
    const Ledger ledger = two_entries();
    const auto again = parse_ledger("originals.json", format_ledger(ledger));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, ledger);
    EXPECT_EQ(format_ledger(*again), format_ledger(ledger));
}

TEST(ALedger, KeepsAutoApartFromAny)
{
    const auto again = parse_ledger("originals.json", format_ledger(two_entries()));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->find(bc501)->first, LatencyTolerance::automatic());
    EXPECT_EQ(again->find(bc501)->intended, std::vector{LatencyTolerance::any()});
    EXPECT_EQ(again->find(bc501)->ours, std::nullopt);
    EXPECT_EQ(again->find(bc501)->programmed_with, std::nullopt);
}

TEST(ALedger, ThatIsEmptyComesBackEmpty)
{
    const auto again = parse_ledger("originals.json", format_ledger({}));
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->entries.empty());
}

TEST(ALedger, OfThousandsOfControllersFits)
{
    Ledger ledger;
    for (int i = 0; i < 4096; ++i) {
        LedgerEntry entry = *two_entries().find(evo_plus);
        entry.controller.cntlid = static_cast<std::uint16_t>(i);
        ledger.at(entry.controller) = entry;
    }
    const std::string text = format_ledger(ledger);
    EXPECT_LT(text.size(), largest_ledger);
    const auto again = parse_ledger("originals.json", text);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, ledger);
}

TEST(ALedger, WithBytesThatAreNoTextStillFormats)
{
    Ledger ledger;
    ledger.at({"nqn\xff\x01", "S\"\\\n", 3}).origin = "hold of \xc3";
    const auto again = parse_ledger("originals.json", format_ledger(ledger));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(again->entries.begin()->second.controller.serial, "S\"\\\n");
}

TEST(ALedger, FindsByIdentityOnly)
{
    Ledger ledger = two_entries();
    ControllerId other = evo_plus;
    other.cntlid = 2;
    EXPECT_EQ(ledger.find(other), nullptr);
    EXPECT_EQ(ledger.find(evo_plus)->first, us(100000));
    EXPECT_EQ(&ledger.at(evo_plus), ledger.find(evo_plus));
    EXPECT_EQ(ledger.entries.size(), 2U);
    ledger.erase(other);
    EXPECT_EQ(ledger.entries.size(), 2U);
    ledger.erase(evo_plus);
    EXPECT_EQ(ledger.find(evo_plus), nullptr);
    EXPECT_EQ(ledger.entries.size(), 1U);
}

TEST(AValueFoundNow, IsOursWhenConfirmedOrAnnounced)
{
    const LedgerEntry entry = *two_entries().find(evo_plus);
    EXPECT_TRUE(entry.is_ours(us(25000)));
    EXPECT_TRUE(entry.is_ours(us(24999)));
    EXPECT_FALSE(entry.is_ours(us(100000)));
    EXPECT_FALSE(entry.is_ours(LatencyTolerance::any()));
    EXPECT_FALSE(LedgerEntry{}.is_ours(us(0)));
    LedgerEntry any;
    any.ours = LatencyTolerance::any();
    EXPECT_TRUE(any.is_ours(LatencyTolerance::automatic()));
}

TEST(ALine, TakesThePlaceOfAnEarlierOneOfItsController)
{
    Ledger ledger = two_entries();
    std::string text = format_ledger(ledger);
    LedgerEntry& entry = ledger.at(bc501);
    entry.ours = LatencyTolerance::any();
    entry.intended.clear();
    text += format_entry(entry);
    EXPECT_EQ(*parse_ledger("originals.json", text), ledger);
    entry.ours = us(0);
    text += format_entry(entry);
    EXPECT_EQ(*parse_ledger("originals.json", text), ledger);
}

TEST(ALine, ForgetsSeveralControllersAtOnce)
{
    std::string text = format_ledger(two_entries());
    text += format_forgotten(std::vector{evo_plus, bc501});
    EXPECT_EQ(parse_ledger("originals.json", text)->entries.size(), 0U);
    text += format_entry(*two_entries().find(bc501));
    EXPECT_EQ(parse_ledger("originals.json", text)->entries.size(), 1U) << "and what comes later counts again";
    text += format_forgotten(std::vector{evo_plus});
    EXPECT_TRUE(parse_ledger("originals.json", text)) << "it is forgotten already";
}

TEST(ALine, IsOneLine)
{
    Ledger ledger;
    ledger.at({"nqn\n", "S\r\n\"", 3}).origin = "hold of\nsomebody";
    EXPECT_EQ(std::ranges::count(format_ledger(ledger), '\n'), 2);
    EXPECT_EQ(std::ranges::count(format_forgotten(std::vector{evo_plus, bc501}), '\n'), 1);
}

TEST(AnInterruptedAppend, IsLeftOutWhereverItWasInterrupted)
{
    const Ledger before = two_entries();
    LedgerEntry entry = *before.find(bc501);
    entry.ours = us(0);
    for (const std::string& line : {format_entry(entry), format_forgotten(std::vector{evo_plus, bc501})})
        for (std::size_t length = 0; length < line.size(); ++length) {
            const auto ledger = parse_ledger("originals.json", format_ledger(before) + line.substr(0, length));
            ASSERT_TRUE(ledger) << length;
            EXPECT_EQ(*ledger, before) << length;
        }
}

// Each way to damage a good ledger, and what is said then.
struct Damage {
    std::string name;
    void (*make)(std::vector<json>& lines);
    std::string refusal;
};
void PrintTo(const Damage& row, std::ostream* out)
{
    *out << row.name;
}

class ADamagedLedger : public testing::TestWithParam<Damage> {};

TEST_P(ADamagedLedger, IsRefusedWhole)
{
    std::vector<json> lines;
    std::istringstream text(format_ledger(two_entries()) + format_forgotten(std::vector{bc501}));
    for (std::string line; std::getline(text, line);)
        lines.push_back(json::parse(line));
    GetParam().make(lines);
    std::string damaged;
    for (const json& line : lines)
        damaged += line.dump() + "\n";
    const auto ledger = parse_ledger("originals.json", damaged);
    ASSERT_FALSE(ledger);
    EXPECT_EQ(ledger.error().text(), GetParam().refusal);
    EXPECT_EQ(ledger.error().kind, RefusalKind::invalid);
}

INSTANTIATE_TEST_SUITE_P(
    By, ADamagedLedger,
    testing::Values(
        Damage{"schema_1", [](auto& l) { l[0]["schema"] = 1; }, "originals.json: not a ledger of schema 2"},
        Damage{"schema_3", [](auto& l) { l[0]["schema"] = 3; }, "originals.json: not a ledger of schema 2"},
        Damage{"schema_text", [](auto& l) { l[0]["schema"] = "2"; }, "originals.json: not a ledger of schema 2"},
        Damage{"no_schema", [](auto& l) { l[0].erase("schema"); }, "originals.json: not a ledger of schema 2"},
        Damage{"no_entries", [](auto& l) { l[0].erase("entries"); }, "originals.json: not a ledger of schema 2"},
        Damage{"entries_list", [](auto& l) { l[0]["entries"] = json::array(); }, "originals.json: not a ledger of schema 2"},
        Damage{"entries_negative", [](auto& l) { l[0]["entries"] = -1; }, "originals.json: not a ledger of schema 2"},
        Damage{"header_array", [](auto& l) { l[0] = json::array({1}); }, "originals.json: not a ledger of schema 2"},
        Damage{"header_null", [](auto& l) { l[0] = nullptr; }, "originals.json: not a ledger of schema 2"},
        Damage{"header_missing", [](auto& l) { l.erase(l.begin()); }, "originals.json: not a ledger of schema 2"},
        Damage{"header_twice", [](auto& l) { l.insert(l.begin(), l[0]); },
               "originals.json: line 2: /subsystem_nqn: not a text"},
        Damage{"lines_missing", [](auto& l) { l.resize(2); },
               "originals.json: lines are missing: 2 entries were written in one step"},
        Damage{"line_number", [](auto& l) { l[2] = 7; }, "originals.json: line 3: /: not an object"},
        Damage{"last_line_null", [](auto& l) { l[3] = nullptr; }, "originals.json: line 4: /: not an object"},
        Damage{"serial_number", [](auto& l) { l[1]["serial"] = 7; }, "originals.json: line 2: /serial: not a text"},
        Damage{"serial_missing", [](auto& l) { l[2].erase("serial"); }, "originals.json: line 3: /serial: not a text"},
        Damage{"nqn_null", [](auto& l) { l[1]["subsystem_nqn"] = nullptr; },
               "originals.json: line 2: /subsystem_nqn: not a text"},
        Damage{"cntlid_65536", [](auto& l) { l[1]["cntlid"] = 65536; },
               "originals.json: line 2: /cntlid: not a number from 0 to 65535"},
        Damage{"cntlid_negative", [](auto& l) { l[1]["cntlid"] = -1; },
               "originals.json: line 2: /cntlid: not a number from 0 to 65535"},
        Damage{"cntlid_fraction", [](auto& l) { l[1]["cntlid"] = 1.0; },
               "originals.json: line 2: /cntlid: not a number from 0 to 65535"},
        Damage{"another_attribute", [](auto& l) { l[1]["attribute"] = "queue/write_cache"; },
               "originals.json: line 2: /attribute: not an attribute that this version writes"},
        Damage{"first_missing", [](auto& l) { l[1].erase("first"); }, "originals.json: line 2: /first: missing"},
        Damage{"first_number", [](auto& l) { l[1]["first"] = 100000; }, "originals.json: line 2: /first: not a text"},
        Damage{"first_negative", [](auto& l) { l[1]["first"] = "-1"; },
               "originals.json: line 2: /first: \"-1\": neither \"auto\", \"any\" nor a number of microseconds up to "
               "2147483646"},
        Damage{"first_above_all", [](auto& l) { l[1]["first"] = "2147483647"; },
               "originals.json: line 2: /first: \"2147483647\": neither \"auto\", \"any\" nor a number of microseconds up to "
               "2147483646"},
        Damage{"intended_text", [](auto& l) { l[1]["intended"] = "25000"; }, "originals.json: line 2: /intended: not a list"},
        Damage{"intended_missing", [](auto& l) { l[1].erase("intended"); }, "originals.json: line 2: /intended: not a list"},
        Damage{"intended_null_inside", [](auto& l) { l[1]["intended"][0] = nullptr; },
               "originals.json: line 2: /intended: not a text"},
        Damage{"ours_list", [](auto& l) { l[1]["ours"] = json::array(); }, "originals.json: line 2: /ours: not a text"},
        Damage{"parameters_text", [](auto& l) { l[1]["programmed_with"] = "x"; },
               "originals.json: line 2: /programmed_with/: not an object"},
        Damage{"parameter_missing", [](auto& l) { l[1]["programmed_with"].erase("apst_primary_timeout_ms"); },
               "originals.json: line 2: /programmed_with/apst_primary_timeout_ms: not a number from 0 to "
               "18446744073709551615"},
        Damage{"written_at_negative", [](auto& l) { l[1]["written_at"] = -5; },
               "originals.json: line 2: /written_at: not a number from 0 to 9223372036854775807"},
        Damage{"written_at_too_large", [](auto& l) { l[1]["written_at"] = UINT64_MAX; },
               "originals.json: line 2: /written_at: not a number from 0 to 9223372036854775807"},
        Damage{"forgotten_number", [](auto& l) { l[3]["forgotten"] = 1; }, "originals.json: line 4: /forgotten: not a list"},
        Damage{"forgotten_nobody", [](auto& l) { l[3]["forgotten"][0] = json::object(); },
               "originals.json: line 4: /forgotten/subsystem_nqn: not a text"}),
    [](const auto& row) { return row.param.name; });

TEST(ATornLedger, IsRefusedAtEveryLengthOfWhatWasWrittenInOneStep)
{
    const std::string whole = format_ledger(two_entries());
    for (std::size_t length = 0; length < whole.size(); ++length)
        EXPECT_FALSE(parse_ledger("originals.json", whole.substr(0, length))) << length;
}

TEST(ATornLine, ThatIsNotTheLastIsRefused)
{
    const std::string line = format_entry(*two_entries().find(bc501));
    const std::string text = format_ledger(two_entries()) + line.substr(0, 100) + line;
    EXPECT_EQ(parse_ledger("originals.json", text).error().text(), "originals.json: line 4: /: not an object");
    EXPECT_FALSE(parse_ledger("originals.json", format_ledger(two_entries()) + "\n"));
}

TEST(ALedger, OfGarbageIsRefused)
{
    for (const std::string& text :
         {std::string(), std::string("\0", 1), std::string(100, '\xff'), std::string("{}\n"), std::string(" \n"),
          std::string("\n"), std::string(R"({"schema":2,"entries":0})"), std::string("{\"schema\":2,\"entries\":0}\n[]\n"),
          std::string("{\n \"entries\": [],\n \"schema\": 1\n}\n")})
        EXPECT_FALSE(parse_ledger("originals.json", text)) << text;
}

TEST(ALedger, LargerThanAnyIsRefusedUnread)
{
    EXPECT_EQ(parse_ledger("originals.json", std::string(largest_ledger + 1, ' ')).error().text(),
              "originals.json: \"16777217 bytes\": larger than any ledger");
}

TEST(ALedger, NestedAMillionDeepIsRefused)
{
    const std::string nested = std::string(1'000'000, '[') + std::string(1'000'000, ']');
    EXPECT_FALSE(parse_ledger("originals.json", nested + "\n"));
    for (const std::string& line : {nested, R"({"subsystem_nqn":)" + nested + "}", R"({"forgotten":)" + nested + "}"})
        EXPECT_FALSE(parse_ledger("originals.json", format_ledger({}) + line + "\n"));
}

} // namespace
} // namespace nvmepolicy
