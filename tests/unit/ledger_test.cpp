// SPDX-License-Identifier: LGPL-2.1-or-later
// The record of what the drives had before us: it comes back whole, or not at all.
#include "nvmepolicy/ledger.h"

#include <nlohmann/json.hpp>

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

// Each way to damage a good ledger, and what is said then.
struct Damage {
    std::string name;
    void (*make)(json& document);
    std::string refusal;
};
void PrintTo(const Damage& row, std::ostream* out)
{
    *out << row.name;
}

class ADamagedLedger : public testing::TestWithParam<Damage> {};

TEST_P(ADamagedLedger, IsRefusedWhole)
{
    json document = json::parse(format_ledger(two_entries()));
    GetParam().make(document);
    const auto ledger = parse_ledger("originals.json", document.dump());
    ASSERT_FALSE(ledger);
    EXPECT_EQ(ledger.error().text(), GetParam().refusal);
    EXPECT_EQ(ledger.error().kind, RefusalKind::invalid);
}

INSTANTIATE_TEST_SUITE_P(
    By, ADamagedLedger,
    testing::Values(
        Damage{"schema_2", [](json& d) { d["schema"] = 2; }, "originals.json: not a ledger of schema 1"},
        Damage{"schema_text", [](json& d) { d["schema"] = "1"; }, "originals.json: not a ledger of schema 1"},
        Damage{"no_schema", [](json& d) { d.erase("schema"); }, "originals.json: not a ledger of schema 1"},
        Damage{"no_entries", [](json& d) { d.erase("entries"); }, "originals.json: not a ledger of schema 1"},
        Damage{"entries_object", [](json& d) { d["entries"] = json::object(); }, "originals.json: not a ledger of schema 1"},
        Damage{"array", [](json& d) { d = json::array({1}); }, "originals.json: not a ledger of schema 1"},
        Damage{"number", [](json& d) { d = 1; }, "originals.json: not a ledger of schema 1"},
        Damage{"null", [](json& d) { d = nullptr; }, "originals.json: not a ledger of schema 1"},
        Damage{"entry_number", [](json& d) { d["entries"][1] = 7; }, "originals.json: /entries/1/: not an object"},
        Damage{"entry_null", [](json& d) { d["entries"][0] = nullptr; }, "originals.json: /entries/0/: not an object"},
        Damage{"serial_number", [](json& d) { d["entries"][0]["serial"] = 7; },
               "originals.json: /entries/0/serial: not a text"},
        Damage{"serial_missing", [](json& d) { d["entries"][1].erase("serial"); },
               "originals.json: /entries/1/serial: not a text"},
        Damage{"nqn_null", [](json& d) { d["entries"][0]["subsystem_nqn"] = nullptr; },
               "originals.json: /entries/0/subsystem_nqn: not a text"},
        Damage{"cntlid_65536", [](json& d) { d["entries"][0]["cntlid"] = 65536; },
               "originals.json: /entries/0/cntlid: not a number from 0 to 65535"},
        Damage{"cntlid_negative", [](json& d) { d["entries"][0]["cntlid"] = -1; },
               "originals.json: /entries/0/cntlid: not a number from 0 to 65535"},
        Damage{"cntlid_fraction", [](json& d) { d["entries"][0]["cntlid"] = 1.0; },
               "originals.json: /entries/0/cntlid: not a number from 0 to 65535"},
        Damage{"another_attribute", [](json& d) { d["entries"][0]["attribute"] = "queue/write_cache"; },
               "originals.json: /entries/0/attribute: not an attribute that this version writes"},
        Damage{"first_missing", [](json& d) { d["entries"][0].erase("first"); }, "originals.json: /entries/0/first: missing"},
        Damage{"first_number", [](json& d) { d["entries"][0]["first"] = 100000; },
               "originals.json: /entries/0/first: not a text"},
        Damage{"first_negative", [](json& d) { d["entries"][0]["first"] = "-1"; },
               "originals.json: /entries/0/first: \"-1\": neither \"auto\", \"any\" nor a number of microseconds up to "
               "2147483646"},
        Damage{"first_above_all", [](json& d) { d["entries"][0]["first"] = "2147483647"; },
               "originals.json: /entries/0/first: \"2147483647\": neither \"auto\", \"any\" nor a number of microseconds up to "
               "2147483646"},
        Damage{"intended_text", [](json& d) { d["entries"][0]["intended"] = "25000"; },
               "originals.json: /entries/0/intended: not a list"},
        Damage{"intended_missing", [](json& d) { d["entries"][0].erase("intended"); },
               "originals.json: /entries/0/intended: not a list"},
        Damage{"intended_null_inside", [](json& d) { d["entries"][0]["intended"][0] = nullptr; },
               "originals.json: /entries/0/intended: not a text"},
        Damage{"ours_list", [](json& d) { d["entries"][0]["ours"] = json::array(); },
               "originals.json: /entries/0/ours: not a text"},
        Damage{"parameters_text", [](json& d) { d["entries"][0]["programmed_with"] = "x"; },
               "originals.json: /entries/0/programmed_with/: not an object"},
        Damage{"parameter_missing", [](json& d) { d["entries"][0]["programmed_with"].erase("apst_primary_timeout_ms"); },
               "originals.json: /entries/0/programmed_with/apst_primary_timeout_ms: not a number from 0 to "
               "18446744073709551615"},
        Damage{"written_at_negative", [](json& d) { d["entries"][0]["written_at"] = -5; },
               "originals.json: /entries/0/written_at: not a number from 0 to 9223372036854775807"},
        Damage{"written_at_too_large", [](json& d) { d["entries"][0]["written_at"] = UINT64_MAX; },
               "originals.json: /entries/0/written_at: not a number from 0 to 9223372036854775807"}),
    [](const auto& row) { return row.param.name; });

TEST(ATornLedger, IsRefusedAtEveryLength)
{
    const std::string whole = format_ledger(two_entries());
    for (std::size_t length = 0; length + 2 < whole.size(); ++length)
        EXPECT_FALSE(parse_ledger("originals.json", whole.substr(0, length))) << length;
}

TEST(ALedger, OfGarbageIsRefused)
{
    for (const std::string& text : {std::string(), std::string("\0", 1), std::string(100, '\xff'), std::string("{}"),
                                    std::string("{\"schema\":1,\"entries\":[[]]}"), std::string(" \n")})
        EXPECT_FALSE(parse_ledger("originals.json", text)) << text;
}

TEST(ALedger, LargerThanAnyIsRefusedUnread)
{
    EXPECT_EQ(parse_ledger("originals.json", std::string(largest_ledger + 1, ' ')).error().text(),
              "originals.json: \"16777217 bytes\": larger than any ledger");
}

TEST(ALedger, NestedAMillionDeepIsRefused)
{
    std::string text = "{\"schema\":1,\"entries\":[";
    text += std::string(1'000'000, '[') + std::string(1'000'000, ']') + "]}";
    EXPECT_FALSE(parse_ledger("originals.json", text));
    text = R"({"schema":1,"entries":[{"subsystem_nqn":)" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}]}";
    EXPECT_FALSE(parse_ledger("originals.json", text));
}

} // namespace
} // namespace nvmepolicy
