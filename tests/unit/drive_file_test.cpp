// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/drive_file.h"

#include <nlohmann/json.hpp>

#include "drives.h"

namespace nvmepolicy {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

class ADriveFile : public testing::TestWithParam<std::string> {};

TEST_P(ADriveFile, ComesBackAsItWas)
{
    const DriveFile drive = drive_from(GetParam());
    const auto again = parse_drive_file("again", format_drive_file(drive));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, drive);
    EXPECT_EQ(format_drive_file(*again), format_drive_file(drive));
}

TEST_P(ADriveFile, SaysWhatItsJsonSays)
{
    const json document = json::parse(content(drives_directory() / (GetParam() + ".json")));
    const DriveFile drive = drive_from(GetParam());
    EXPECT_EQ(drive.slug, GetParam());
    EXPECT_EQ(drive.npss, document["npss"].get<int>());
    ASSERT_EQ(drive.power_states.size(), document["power_states"].size());
    for (std::size_t i = 0; i < drive.power_states.size(); ++i) {
        const json& state = document["power_states"][i];
        const PowerState& s = drive.power_states[i];
        const auto count = [](const json& value) { return value.is_null() ? 0 : value.get<std::int64_t>(); };
        EXPECT_EQ(s.exit_latency.value_or(0us).count(), count(state["exit_latency_us"]));
        EXPECT_EQ(s.entry_latency.value_or(0us).count(), count(state["entry_latency_us"]));
        EXPECT_EQ(s.operational, state["operational"].get<bool>());
        if (!state["max_power_w"].is_null()) {
            EXPECT_NEAR(static_cast<double>(s.max_power.value_or(Microwatts{0}).count),
                        state["max_power_w"].get<double>() * 1e6, 0.5);
        }
    }
}

TEST_P(ADriveFile, SurvivesCaptureAndTheWayBack)
{
    const DriveFile drive = drive_from(GetParam());
    const Controller controller = controller_of(drive, us(100000), machine_at_boot());
    const auto captured = capture(controller);
    ASSERT_TRUE(captured) << captured.error().text();
    EXPECT_EQ(captured->power_states, drive.power_states);
    const std::string text = format_drive_file(*captured);
    EXPECT_EQ(text.find(controller.id.serial), std::string::npos) << "no serial number leaves the machine";
    const auto again = parse_drive_file("captured", text);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, *captured);
    EXPECT_EQ(again->apst_supported(), drive.apst_supported());
}

INSTANTIATE_TEST_SUITE_P(Drive, ADriveFile, testing::ValuesIn(drive_slugs()), slug_name);

TEST(TheKingstonA2000, HasItsQuirk)
{
    EXPECT_EQ(drive_from("kingston-a2000-250gb").quirks, (ApstQuirks{.no_deepest_ps = true}));
    EXPECT_EQ(drive_from("kioxia-cd6-v-6t4").quirks, (ApstQuirks{.no_apst = true}));
}

TEST(TheWdBlackSn750, KeepsItsTwoAndAHalfMilliwatts)
{
    EXPECT_EQ(drive_from("wd-black-sn750").power_states[4].max_power, Microwatts{2500});
}

TEST(ADriveFileWithoutApsta, TakesASleepStateAsTheSign)
{
    EXPECT_TRUE(drive_from("samsung-990-evo-plus-4tb").apst_supported());
    EXPECT_FALSE(drive_from("apple-ap0128h").apst_supported());
    EXPECT_FALSE(drive_from("adata-sx8000np-256gb").apst_supported()); // APSTA is 0, whatever its states
}

TEST(ACapture, OfAnUnidentifiedControllerIsRefusedInItsWords)
{
    Controller c;
    c.identify = Refusal{"nvme0", "new", "the controller is not live, so it is not asked", RefusalKind::try_later};
    EXPECT_EQ(capture(c).error().text(), "nvme0: \"new\": the controller is not live, so it is not asked");
}

TEST(ACapture, OfInvalidNpssComesBack)
{
    std::vector<PowerState> states;
    for (int i = 0; i < 32; ++i)
        states.push_back(sleep_state(i, 0xffffffff, 0xffffffff));
    Controller c = controller_with(states, us(1), machine_at_boot());
    IdentifyController id = *c.identify;
    id.npss = 255;
    id.model.clear();
    id.version = 0x010203;
    c.identify = id;
    const auto captured = capture(c);
    ASSERT_TRUE(captured);
    EXPECT_EQ(captured->slug, "drive");
    EXPECT_EQ(captured->nvme_version, "1.2.3");
    const auto again = parse_drive_file("captured", format_drive_file(*captured));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, *captured);
}

TEST(EveryPowerThatAPageCanHold, ComesBack)
{
    for (std::int64_t value : {1, 2, 3, 25, 99, 6553, 65534, 65535})
        for (std::int64_t unit : {100, 10000}) {
            DriveFile drive;
            drive.slug = "x";
            PowerState state;
            state.max_power = state.idle_power = state.active_power = Microwatts{value * unit};
            drive.power_states = {state};
            const auto again = parse_drive_file("again", format_drive_file(drive));
            ASSERT_TRUE(again) << again.error().text();
            EXPECT_EQ(*again, drive) << value * unit;
        }
}

// ---------------------------------------------------------------------------------------------------------------------

struct Fault {
    std::string name;
    void (*make)(json& document);
    std::string refusal;
};
void PrintTo(const Fault& row, std::ostream* out)
{
    *out << row.name;
}

class AFaultyDriveFile : public testing::TestWithParam<Fault> {};

TEST_P(AFaultyDriveFile, IsRefusedByThePlaceAndTheValue)
{
    json document = json::parse(content(drives_directory() / "samsung-990-evo-plus-4tb.json"));
    GetParam().make(document);
    const auto drive = parse_drive_file("drive.json", document.dump());
    ASSERT_FALSE(drive);
    EXPECT_EQ(drive.error().text(), GetParam().refusal);
    EXPECT_EQ(drive.error().kind, RefusalKind::invalid);
}

INSTANTIATE_TEST_SUITE_P(
    By, AFaultyDriveFile,
    testing::Values(
        Fault{"array", [](json& d) { d = json::array(); }, "drive.json: not a JSON object"},
        Fault{"text", [](json& d) { d = "x"; }, "drive.json: not a JSON object"},
        Fault{"schema_2", [](json& d) { d["schema_version"] = 2; }, "drive.json: /schema_version: \"2\": allowed is 1"},
        Fault{"no_schema", [](json& d) { d.erase("schema_version"); }, "drive.json: /schema_version: \"null\": allowed is 1"},
        Fault{"model_number", [](json& d) { d["model"] = 7; }, "drive.json: /model: \"7\": allowed is a text or null"},
        Fault{"pci_id_bare", [](json& d) { d["pci_vendor_id"] = "144d"; },
              "drive.json: /pci_vendor_id: \"\"144d\"\": allowed is a text such as \"0x144d\" or null"},
        Fault{"pci_id_number", [](json& d) { d["pci_device_id"] = 42; },
              "drive.json: /pci_device_id: \"42\": allowed is a text such as \"0x144d\" or null"},
        Fault{"apsta_256", [](json& d) { d["apsta"] = 256; },
              "drive.json: /apsta: \"256\": allowed is a whole number from 0 to 255 or null"},
        Fault{"vwc_negative", [](json& d) { d["vwc"] = -1; },
              "drive.json: /vwc: \"-1\": allowed is a whole number from 0 to 255 or null"},
        Fault{"wce_2", [](json& d) { d["observed_wce"] = 2; },
              "drive.json: /observed_wce: \"2\": allowed is true, false or null"},
        Fault{"quirk_unknown", [](json& d) { d["kernel_quirks"] = json::array({"simple_suspend"}); },
              "drive.json: /kernel_quirks: \"\"simple_suspend\"\": allowed is no_apst and no_deepest_ps"},
        Fault{"quirks_text", [](json& d) { d["kernel_quirks"] = "no_apst"; },
              "drive.json: /kernel_quirks: \"\"no_apst\"\": allowed is a list of quirk names"},
        Fault{"no_states", [](json& d) { d.erase("power_states"); },
              "drive.json: /power_states: \"null\": allowed is a list of 1 to 32 power states"},
        Fault{"empty_states", [](json& d) { d["power_states"] = json::array(); },
              "drive.json: /power_states: \"0\": allowed is a list of 1 to 32 power states"},
        Fault{"33_states", [](json& d) { d["power_states"] = std::vector<json>(33, d["power_states"][0]); },
              "drive.json: /power_states: \"33\": allowed is a list of 1 to 32 power states"},
        Fault{"state_number", [](json& d) { d["power_states"][2] = 7; }, "drive.json: /power_states/2: not an object"},
        Fault{"states_out_of_order", [](json& d) { d["power_states"][2]["state"] = 3; },
              "drive.json: /power_states/2/state: \"3\": allowed is 2 here, states are listed in order"},
        Fault{"state_without_number", [](json& d) { d["power_states"][2].erase("state"); },
              "drive.json: /power_states/2/state: \"null\": allowed is 2 here, states are listed in order"},
        Fault{"state_32", [](json& d) { d["power_states"][2]["state"] = 32; },
              "drive.json: /power_states/2/state: \"32\": allowed is a whole number from 0 to 31 or null"},
        Fault{"no_kind", [](json& d) { d["power_states"][3]["operational"] = nullptr; },
              "drive.json: /power_states/3/operational: \"null\": allowed is true or false"},
        Fault{"latency_negative", [](json& d) { d["power_states"][3]["exit_latency_us"] = -4600; },
              "drive.json: /power_states/3/exit_latency_us: \"-4600\": allowed is a whole number from 0 to 4294967295 or null"},
        Fault{"latency_fraction", [](json& d) { d["power_states"][3]["entry_latency_us"] = 1.5; },
              "drive.json: /power_states/3/entry_latency_us: \"1.5\": allowed is a whole number from 0 to 4294967295 or null"},
        Fault{"latency_too_large", [](json& d) { d["power_states"][3]["exit_latency_us"] = 4294967296; },
              "drive.json: /power_states/3/exit_latency_us: \"4294967296\": allowed is a whole number from 0 to 4294967295 or "
              "null"},
        Fault{"power_negative", [](json& d) { d["power_states"][0]["max_power_w"] = -1; },
              "drive.json: /power_states/0/max_power_w: \"-1\": allowed is watts from 0 to 655.35 or null"},
        Fault{"power_too_large", [](json& d) { d["power_states"][0]["idle_power_w"] = 655.36; },
              "drive.json: /power_states/0/idle_power_w: \"655.36\": allowed is watts from 0 to 655.35 or null"},
        Fault{"npss_5", [](json& d) { d["npss"] = 5; },
              "drive.json: /npss: \"5\": allowed is 4, the index of the last of the power states listed"},
        Fault{"npss_31", [](json& d) { d["npss"] = 31; },
              "drive.json: /npss: \"31\": allowed is 4, the index of the last of the power states listed"},
        Fault{"npss_256", [](json& d) { d["npss"] = 256; },
              "drive.json: /npss: \"256\": allowed is a whole number from 0 to 255 or null"}),
    [](const auto& row) { return row.param.name; });

TEST(ADriveFile, ThatIsNoJsonIsRefused)
{
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("\xff\xfe{}"), std::string("{\"a\":1e999}"), std::string("nul\0l", 5)})
        EXPECT_EQ(parse_drive_file("drive.json", text).error().text(), "drive.json: not valid JSON") << text;
}

TEST(ADriveFile, OfMoreThanAMebibyteIsRefused)
{
    EXPECT_EQ(parse_drive_file("drive.json", std::string(largest_drive_file + 1, ' ')).error().text(),
              "drive.json: \"1048577 bytes\": larger than 1 MiB, not a drive file");
}

TEST(ADriveFile, WithoutNpssCountsItsStates)
{
    json document = json::parse(content(drives_directory() / "samsung-990-evo-plus-4tb.json"));
    document["npss"] = nullptr;
    const auto drive = parse_drive_file("drive.json", document.dump());
    ASSERT_TRUE(drive);
    EXPECT_EQ(drive->npss, 4);
}

TEST(ATextInADriveFile, IsMadePrintable)
{
    json document = json::parse(content(drives_directory() / "samsung-990-evo-plus-4tb.json"));
    document["model"] = "\x1b[2J evil \xc3\xa4";
    const auto drive = parse_drive_file("drive.json", document.dump());
    ASSERT_TRUE(drive);
    EXPECT_EQ(drive->model, "?[2J evil ??");
}

TEST(AValueInADriveFile, NestedAHundredThousandDeepIsRefused)
{
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    EXPECT_FALSE(parse_drive_file("drive.json", "{\"schema_version\":1,\"slug\":" + deep + "}"));
    EXPECT_FALSE(parse_drive_file("drive.json", "{\"schema_version\":1,\"kernel_quirks\":[" + deep + "]}"));
    EXPECT_FALSE(parse_drive_file("drive.json", "{\"schema_version\":1,\"notes\":" + deep + "}"));
}

} // namespace
} // namespace nvmepolicy
