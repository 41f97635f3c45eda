// SPDX-License-Identifier: LGPL-2.1-or-later
// The JSON documents: keys may be added, never renamed; what is not known is null, never 0.
#include "report/json.h"

#include "report/text.h"
#include "watched_host.h"

namespace nvmepolicy {
namespace {

using Json = nlohmann::ordered_json;

struct Bench {
    SimulatedHost host;
    LedgerStore ledger;
    Round round(Intent intent = Intent::look, const std::string& profile = "balanced")
    {
        Policy policy;
        policy.daemon.profile.value = profile;
        return run_round(host, policy, ledger, BreakerStore{}, intent);
    }
};

void expect_keys(const Json& object, const std::vector<std::string>& keys)
{
    for (const std::string& key : keys)
        EXPECT_TRUE(object.contains(key)) << key << " is missing in " << object.dump();
}

TEST(StatusJson, HasThePromisedShape)
{
    Bench bench;
    static_cast<void>(bench.host.add(evo_plus()));
    const Json status = status_json(bench.round(Intent::reconcile), true);
    EXPECT_EQ(status["schema"], 1);
    EXPECT_EQ(status["simulated"], true);
    EXPECT_EQ(status["profile"], "balanced");
    EXPECT_EQ(status["on_battery"], false);
    ASSERT_EQ(status["controllers"].size(), 1U);
    const Json& c = status["controllers"][0];
    expect_keys(c, {"name", "model", "serial", "firmware", "transport", "address", "subsystem_nqn", "state", "apst",
                    "write_cache", "multipath", "last_error", "breaker_tripped", "inferred_quirk"});
    EXPECT_EQ(c["name"], "nvme0");
    EXPECT_EQ(c["model"], "Samsung SSD 990 EVO Plus 4TB");
    EXPECT_EQ(c["state"], "live");
    EXPECT_EQ(c["last_error"], nullptr);
    EXPECT_EQ(c["breaker_tripped"], false);
    EXPECT_EQ(c["inferred_quirk"], nullptr);
    const Json& apst = c["apst"];
    EXPECT_EQ(apst["supported"], true);
    EXPECT_EQ(apst["enabled"], true);
    EXPECT_EQ(apst["bound_us"], 25000);
    EXPECT_EQ(apst["ceiling_us"], nullptr);
    EXPECT_EQ(apst["tolerance_us"], 25000);
    EXPECT_EQ(apst["unwanted_states"], Json::array({4}));
    EXPECT_EQ(apst["deepest_state"], 3);
    EXPECT_EQ(apst["wake_latency_us"], 4600);
    EXPECT_EQ(apst["wake_latency_source"], "advertised");
    EXPECT_EQ(apst["idle_power_mw"], 50.0);
    EXPECT_EQ(apst["idle_power_source"], "max_power");
    EXPECT_EQ(apst["verified"], true);
    EXPECT_EQ(apst["reason"], "the drive holds the predicted table: APST on down to PS3");
    ASSERT_EQ(apst["predicted_table"].size(), 5U);
    EXPECT_EQ(apst["predicted_table"][0],
              Json({{"state", 0}, {"target_state", 3}, {"idle_ms", 100}, {"raw", "0x0000000000006418"}}));
    EXPECT_EQ(apst["predicted_table"][4],
              Json({{"state", 4}, {"target_state", nullptr}, {"idle_ms", nullptr}, {"raw", "0x0000000000000000"}}));
    EXPECT_EQ(apst["actual_table"], apst["predicted_table"]);
    expect_keys(c["write_cache"], {"present", "enabled", "default", "saved", "watch", "reason", "leaves"});
    EXPECT_EQ(c["write_cache"]["present"], true);
    EXPECT_EQ(c["write_cache"]["enabled"], nullptr);
    ASSERT_EQ(c["write_cache"]["leaves"].size(), 1U);
    EXPECT_EQ(
        c["write_cache"]["leaves"][0],
        Json({{"name", "nvme0n1"}, {"mode", "write back"}, {"fua", true}, {"ana_state", nullptr}, {"holders", Json::array()}}));
    expect_keys(c["multipath"], {"weight", "throughput_bytes_per_second", "throughput_source"});
    ASSERT_EQ(status["subsystems"].size(), 1U);
    expect_keys(status["subsystems"][0], {"name", "nqn", "iopolicy", "supported_iopolicies", "paths"});
}

TEST(StatusJson, SaysAnyAndAutoAsWords)
{
    Bench bench;
    SimulatedController& drive = bench.host.add(evo_plus());
    bench.host.write_tolerance(drive, LatencyTolerance::automatic());
    const Json apst = status_json(bench.round(Intent::look, "power-saver"), true)["controllers"][0]["apst"];
    EXPECT_EQ(apst["bound_us"], "any");
    EXPECT_EQ(apst["tolerance_us"], "auto");
    EXPECT_EQ(apst["wanted_tolerance_us"], "any");
    EXPECT_EQ(apst["unwanted_states"], Json::array());
}

TEST(StatusJson, HasNullForWhatIsNotKnown)
{
    Bench bench;
    SimulatedController& drive = bench.host.add(evo_plus());
    drive.state = ControllerState::dead;
    const Json c = status_json(bench.round(), true)["controllers"][0];
    EXPECT_EQ(c["state"], "dead");
    for (const char* key : {"supported", "enabled", "tolerance_us", "deepest_state", "wake_latency_us", "wake_latency_source",
                            "idle_power_mw", "idle_power_source", "round_trip_us", "predicted_table", "actual_table"})
        EXPECT_EQ(c["apst"][key], nullptr) << key;
    EXPECT_EQ(c["apst"]["verified"], false);
    EXPECT_EQ(c["write_cache"]["present"], nullptr);
}

TEST(StatusJson, HasNullForUnreportedFigures)
{
    Bench bench;
    DriveFile drive = evo_plus();
    for (PowerState& s : drive.power_states)
        s = state_of(s.index, 0, 0, s.operational);
    for (PowerState& s : drive.power_states)
        s.max_power.reset();
    static_cast<void>(bench.host.add(drive));
    const Json apst = status_json(bench.round(), true)["controllers"][0]["apst"];
    EXPECT_EQ(apst["deepest_state"], 4);
    EXPECT_EQ(apst["wake_latency_us"], nullptr);
    EXPECT_EQ(apst["wake_latency_source"], nullptr);
    EXPECT_EQ(apst["idle_power_mw"], nullptr);
    EXPECT_EQ(apst["idle_power_source"], nullptr);
}

TEST(StatusJson, OfAControllerThatLeftSaysGone)
{
    Bench bench;
    const Round round = run_round(bench.host, {}, bench.ledger, BreakerStore{}, Intent::look, "nvme7");
    const Json c = status_json(round, true)["controllers"][0];
    EXPECT_EQ(c["name"], "nvme7");
    EXPECT_EQ(c["state"], "gone");
    EXPECT_EQ(c["apst"], nullptr);
    EXPECT_EQ(c["last_error"], "/sys/class/nvme/nvme7: there is no such controller, or it has left");
    expect_keys(c, {"name", "model", "serial", "firmware", "transport", "address", "subsystem_nqn", "state", "apst",
                    "write_cache", "multipath", "last_error", "breaker_tripped", "inferred_quirk"});
}

TEST(StatusJson, ShowsTheCeilingThatBinds)
{
    Bench bench;
    bench.host.machine.default_ps_max_latency_us = 5500;
    static_cast<void>(bench.host.add(evo_plus()));
    const Json apst = status_json(bench.round(), true)["controllers"][0]["apst"];
    EXPECT_EQ(apst["ceiling_us"], 5500);
    EXPECT_EQ(apst["ceiling_binds"], true);
    EXPECT_EQ(apst["bound_us"], 5500);
}

TEST(ShowJson, IsTheControllerAndMore)
{
    Bench bench;
    static_cast<void>(bench.host.add(evo_plus()));
    const Round round = bench.round();
    const Json show = show_json(round, round.outcomes[0], true);
    EXPECT_EQ(show["schema"], 1);
    EXPECT_EQ(show["name"], "nvme0");
    ASSERT_EQ(show["power_states"].size(), 5U);
    EXPECT_EQ(show["power_states"][0]["exit_latency_us"], nullptr);
    EXPECT_EQ(show["power_states"][4]["exit_latency_us"], 43000);
    EXPECT_EQ(show["changes"].size(), 1U);
    EXPECT_FALSE(show["explanation"].empty());
}

TEST(PlanJson, ListsWhatWouldChange)
{
    Bench bench;
    static_cast<void>(bench.host.add(evo_plus()));
    static_cast<void>(bench.host.add(bc501()));
    const Json plan = plan_json(bench.round(), true);
    EXPECT_EQ(plan["schema"], 1);
    ASSERT_EQ(plan["changes"].size(), 2U);
    EXPECT_EQ(plan["changes"][0], Json({{"object", "nvme0"},
                                        {"attribute", "power/pm_qos_latency_tolerance_us"},
                                        {"from", "100000"},
                                        {"to", "25000"},
                                        {"through", nullptr},
                                        {"origin", "profile balanced"},
                                        {"reason", "the bound of 25 ms itself"}}));
    static_cast<void>(bench.round(Intent::reconcile));
    EXPECT_EQ(plan_json(bench.round(), true)["changes"], Json::array());
}

TEST(PredictJson, IsTheKernelsTable)
{
    const DriveFile drive = evo_plus();
    const PredictedTable table = predict_apst_table(drive.inputs({}), us(25000));
    const Json predict = predict_json(drive, us(25000), table);
    EXPECT_EQ(predict["schema"], 1);
    EXPECT_EQ(predict["tolerance_us"], 25000);
    EXPECT_EQ(predict["apste"], 1);
    EXPECT_EQ(predict["deepest_state"], 3);
    EXPECT_EQ(predict["max_round_trip_us"], 6200);
    ASSERT_EQ(predict["entries"].size(), 5U);
    EXPECT_EQ(predict["entries"][2]["raw"], "0x0000000000006418");
    EXPECT_EQ(predict_json(drive, LatencyTolerance::any(), table)["tolerance_us"], "any");
}

TEST(PredictJson, OfADriveWithoutApstHasNoEntries)
{
    DriveFile drive = evo_plus();
    drive.apsta = 0;
    const Json predict = predict_json(drive, us(25000), predict_apst_table(drive.inputs({}), us(25000)));
    EXPECT_EQ(predict["command_sent"], false);
    EXPECT_EQ(predict["apste"], 0);
    EXPECT_EQ(predict["deepest_state"], nullptr);
    EXPECT_EQ(predict["max_round_trip_us"], nullptr);
    EXPECT_EQ(predict["entries"], Json::array());
}

TEST(AnyDocument, EndsInANewlineAndReplacesBrokenText)
{
    EXPECT_EQ(to_text(Json({{"x", "\xff"}})), "{\n  \"x\": \"\xef\xbf\xbd\"\n}\n");
}

TEST(StatusText, SaysTheVerdictOfEachDriveAndWhyNot)
{
    Bench bench;
    static_cast<void>(bench.host.add(evo_plus()));
    bench.host.add(bc501()).refuses_apst = true;
    bench.host.find("nvme1")->apst = {};
    const std::string text = status_text(status_json(bench.round(Intent::reconcile), true), Style::plain);
    EXPECT_TRUE(text.starts_with("SIMULATED drives, profile balanced on AC\n")) << text;
    EXPECT_NE(text.find("nvme1: the drive holds APST off, predicted is APST on down to PS4"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_NE(status_text(status_json(bench.round(), true), Style::coloured).find("\x1b[31mNO\x1b[0m"), std::string::npos);
}

TEST(ChangeText, SaysWhatCameOfIt)
{
    Bench bench;
    SimulatedController& drive = bench.host.add(evo_plus());
    Outcome outcome = bench.round(Intent::reconcile).outcomes.front();
    auto change = std::get<ToleranceChange>(outcome.plan.changes.front());
    EXPECT_EQ(change_text(outcome, change), "nvme0: latency tolerance 100000 -> 25000 (profile balanced): the bound of 25 ms "
                                            "itself; the drive holds the predicted table: APST on down to PS3");
    change.through = us(24999);
    outcome.error = Refusal{"nvme0", "25000", "busy", RefusalKind::try_later};
    EXPECT_EQ(change_text(outcome, change),
              "nvme0: latency tolerance 100000 -> 24999 -> 25000 (profile balanced): the bound of "
              "25 ms itself; nvme0: \"25000\": busy");
    EXPECT_EQ(drive.tolerance, us(25000));
}

TEST(PlanText, IsTheChangesUnderAHeading)
{
    Bench bench;
    static_cast<void>(bench.host.add(evo_plus()));
    EXPECT_EQ(plan_text(plan_json(bench.round(), true)),
              "SIMULATED drives, profile balanced on AC\n" + changes_text(plan_json(bench.round(), true)));
    EXPECT_TRUE(changes_text(plan_json(bench.round(), true)).starts_with("NAME "));
    EXPECT_EQ(changes_text(plan_json(Round{}, false)), "nothing to change\n");
}

TEST(StatusText, OfAMachineWithoutDrivesSaysSo)
{
    Bench bench;
    EXPECT_EQ(status_text(status_json(bench.round(), false), Style::plain), "profile balanced on AC\nno NVMe controllers\n");
}

TEST(AnyText, OfAForeignDocumentLeavesOutWhatItDoesNotKnow)
{
    for (const char* foreign : {R"({"schema":1})", R"({"schema":1,"controllers":7,"complaints":"x","changes":[1,"a",null]})",
                                R"({"schema":1,"controllers":[{"name":5,"apst":{"actual_table":[7],"predicted_table":{"a":1}}}],
                                    "apst":[],"power_states":[{"state":"x","max_power_mw":1e300}],"write_cache":{"leaves":3}})",
                                R"({"schema":1,"apst":{"predicted_table":[{"raw":"0xzz"},{}],"actual_table":[]},
                                    "power_states":[{"entry_latency_us":18446744073709551615}],"explanation":{"a":2}})"}) {
        const auto document = read_document("org.nvmepolicy1", foreign);
        ASSERT_TRUE(document) << document.error().text();
        EXPECT_FALSE(status_text(*document, Style::coloured).empty());
        EXPECT_FALSE(show_text(*document, Style::plain).empty());
        EXPECT_FALSE(explain_text(*document).empty());
        EXPECT_FALSE(plan_text(*document).empty());
    }
}

TEST(ADocumentOfAnotherProgram, IsRefusedWhereItCannotBeRead)
{
    const auto refusal = [](const char* text) {
        const auto document = read_document("org.nvmepolicy1", text);
        return document ? std::string{} : document.error().text();
    };
    EXPECT_EQ(refusal("{"), "org.nvmepolicy1: what it sent is no JSON document");
    EXPECT_EQ(refusal("[1]"), "org.nvmepolicy1: what it sent is no JSON document");
    EXPECT_EQ(refusal("{}"),
              "org.nvmepolicy1: its documents are of schema -, this program reads schema 1: both should be of one "
              "version");
    EXPECT_EQ(refusal(R"({"schema":2})"), "org.nvmepolicy1: its documents are of schema 2, this program reads schema 1: both "
                                          "should be of one version");
}

TEST(ExplainText, IsTheSameAfterATripThroughText)
{
    Bench bench;
    static_cast<void>(bench.host.add(evo_plus()));
    const Round round = bench.round();
    const Json show = show_json(round, round.outcomes[0], true);
    const auto read = read_document("org.nvmepolicy1", to_text(show));
    ASSERT_TRUE(read);
    EXPECT_EQ(show_text(*read, Style::plain), show_text(show, Style::plain));
    EXPECT_TRUE(
        explain_text(*read).starts_with("SIMULATED nvme0: Samsung SSD 990 EVO Plus 4TB, firmware 2B2QKXG7\nThe drive has"));
}

TEST(StatusText, SaysLoudlyWhatLimits)
{
    Bench bench;
    bench.host.machine.default_ps_max_latency_us = 0;
    static_cast<void>(bench.host.add(evo_plus()));
    const std::string text = status_text(status_json(bench.round(), true), Style::plain);
    EXPECT_NE(text.find("nvme0: LIMITED by nvme_core.default_ps_max_latency_us=0, set before us; allow_deeper = true in a "
                        "[[match]] lifts it\n"),
              std::string::npos)
        << text;
}

} // namespace
} // namespace nvmepolicy
