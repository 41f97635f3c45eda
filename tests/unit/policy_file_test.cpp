// SPDX-License-Identifier: LGPL-2.1-or-later
// Each file in tests/policies/bad has beside it the errors that it must give, in full: the message is the interface. A
// line that ends in … gives only its beginning, where the rest is toml++'s and changes with its version. Files whose name
// begins with "drives" are read as drives.toml.
#include "nvmepolicy/policy_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>

#include <gtest/gtest.h>

#include "without_origins.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;
using Role = PolicyText::Role;

const std::filesystem::path source_directory = NVMEPOLICY_SOURCE_DIR;

std::string content(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines(const std::string& text)
{
    std::vector<std::string> result;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        result.push_back(line);
    return result;
}

std::vector<std::string> texts(const std::vector<Refusal>& errors)
{
    std::vector<std::string> result;
    for (const Refusal& error : errors)
        result.push_back(error.text());
    return result;
}

std::vector<std::filesystem::path> policies(const std::string& directory)
{
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(source_directory / "tests/policies" / directory))
        if (entry.path().extension() == ".toml")
            paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::string file_name(const testing::TestParamInfo<std::filesystem::path>& row)
{
    std::string name = row.param.stem();
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

PolicyText main_file(std::string text)
{
    return {Role::main, "main.toml", std::move(text)};
}
PolicyText drop_in(std::string text)
{
    return {Role::drop_in, "drop-in.toml", std::move(text)};
}
PolicyText drives_file(std::string text)
{
    return {Role::drives, "drives.toml", std::move(text)};
}

std::vector<std::string> errors_of(const std::vector<PolicyText>& files)
{
    return texts(read_policy(files).errors);
}
using Errors = std::vector<std::string>;

/// Reads what must be good.
Policy read(const std::vector<PolicyText>& files)
{
    PolicyReading reading = read_policy(files);
    EXPECT_EQ(texts(reading.errors), Errors{});
    return reading.policy;
}

// ---- Files

class AGoodPolicy : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(AGoodPolicy, IsShownAsAConfigurationOfTheSameValues)
{
    const Policy policy = read({main_file(content(GetParam()))});
    const std::string shown = show_policy(policy);
    EXPECT_EQ(without_origins(read({main_file(shown)})), without_origins(policy)) << shown;
}
INSTANTIATE_TEST_SUITE_P(File, AGoodPolicy, testing::ValuesIn(policies("good")), file_name);

class ABadPolicy : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ABadPolicy, IsRefusedWithAllItsErrors)
{
    const std::string name = GetParam().filename();
    const PolicyReading reading =
        read_policy({{name.starts_with("drives") ? Role::drives : Role::main, name, content(GetParam())}});
    std::vector<std::string> expected = lines(content(std::filesystem::path(GetParam()).replace_extension(".expected")));
    std::vector<std::string> found = texts(reading.errors);
    const std::string open_end = "…";
    for (std::size_t at = 0; at < std::min(expected.size(), found.size()); ++at)
        if (expected[at].ends_with(open_end)
            && found[at].starts_with(expected[at].substr(0, expected[at].size() - open_end.size())))
            found[at] = expected[at];
    EXPECT_EQ(found, expected);
}
TEST_P(ABadPolicy, PutsNoControlCharacterIntoAMessage)
{
    for (const std::string& text : texts(read_policy({{Role::main, "a.toml", content(GetParam())}}).errors))
        for (const char c : text)
            EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f) << text;
}
INSTANTIATE_TEST_SUITE_P(File, ABadPolicy, testing::ValuesIn(policies("bad")), file_name);

TEST(TheVendorsFile, HasEveryKeyWithItsDefault)
{
    const PolicyText vendor{Role::main, "nvmepolicyd.toml", content(source_directory / "config/nvmepolicyd.toml")};
    const Policy policy = read({vendor});
    EXPECT_EQ(without_origins(policy), Policy{});
    const std::string shown = show_policy(policy);
    EXPECT_EQ(shown.find("built-in default"), std::string::npos) << shown;
}

TEST(TheManualPage, DescribesEveryKeyAndWord)
{
    const std::string page = content(source_directory / "docs/nvmepolicyd.toml.5.scd");
    const auto describe = [&](std::string_view name) {
        EXPECT_NE(page.find("*" + std::string(name) + "*"), std::string::npos) << name;
    };
    const auto describe_words = [&](const auto& key) {
        using T = typename std::decay_t<decltype(key)>::Value;
        describe(key.name);
        if constexpr (std::is_enum_v<T>) {
            for (const Word<T>& word : words<T>)
                EXPECT_NE(page.find("\"" + std::string(word.text) + "\""), std::string::npos) << word.text;
        }
    };
    for_each(daemon_keys, describe_words);
    for_each(profile_keys, describe_words);
    for_each(sections, [&](const auto& section) { for_each(section.keys, describe_words); });
    for (const Word<MatchKey>& word : words<MatchKey>)
        describe(word.text);
}

// ---- drives.toml

TEST(TheDrivesFile, IsGoodAndSaysWhyForEachEntry)
{
    const Policy policy = read({drives_file(content(source_directory / "rules/drives.toml"))});
    EXPECT_GE(policy.matches.size(), 3U);
    for (const Match& match : policy.matches) {
        EXPECT_NE(match.because, "");
        EXPECT_NE(match.source, "");
    }
}

// Model as in tests/drives.
ControllerPolicy with_drives_file(const std::string& model)
{
    Controller controller;
    controller.model = model;
    return policy_for(read({drives_file(content(source_directory / "rules/drives.toml"))}), controller);
}

TEST(TheDrivesFile, KeepsTheBc501OutOfPs4WhereItWouldBreakThe10MillisecondBound)
{
    const ControllerPolicy policy = with_drives_file("BC501A NVMe SK hynix 128GB");
    // PS3 1000 us, PS4 5000 us advertised and up to 12000 us measured.
    EXPECT_EQ(policy.profiles.at("performance").max_wake_latency_on_battery.value, LatencyBound{4ms});
    EXPECT_EQ(policy.profiles.at("balanced").max_wake_latency.value, LatencyBound{25ms});
}
TEST(TheDrivesFile, KeepsTheA2000OutOfPs4InEveryProfile)
{
    // PS3 2000 us, PS4 15000 us.
    for (const auto& [name, profile] : with_drives_file("KINGSTON SA2000M8250G").profiles)
        for (const auto& bound : {profile.max_wake_latency.value, profile.max_wake_latency_on_battery.value})
            EXPECT_LE(bound.limit.value_or(1h), 5ms) << name;
}
TEST(TheDrivesFile, TurnsApstOffForTheSiblingsOfTheKioxiaThatTheKernelKnows)
{
    for (const char* model : {"KCD6XVUL6T40", "KCD6XVUL3T20"})
        for (const auto& [name, profile] : with_drives_file(model).profiles)
            for (const auto& bound : {profile.max_wake_latency.value, profile.max_wake_latency_on_battery.value})
                EXPECT_EQ(bound, LatencyBound{0us}) << model << name;
}
TEST(TheDrivesFile, LeavesOtherDrivesAlone)
{
    for (const char* model : {"Samsung SSD 990 EVO Plus 4TB", "KINGSTON SKC3000D4096G", "BC711 NVMe SK hynix 512GB"})
        EXPECT_TRUE(with_drives_file(model).matched.empty()) << model;
}

const std::string drive_entry = "[[match]]\nmodel = \"*\"\nbecause = \"b\"\nsource = \"s\"\n"
                                "[match.profiles.balanced]\nmax_wake_latency = \"5ms\"\n"
                                "max_wake_latency_on_battery = \"6ms\"\n[match.apst]\nmode = \"observe\"\n";
Controller some_controller()
{
    Controller controller;
    controller.model = "any";
    return controller;
}

TEST(TheDrivesFile, RanksAboveTheVendorsFile)
{
    const PolicyText vendor{Role::main, "/opt/lib/nvmepolicyd/nvmepolicyd.toml",
                            "[profiles.balanced]\nmax_wake_latency = \"30ms\"\n", true};
    const ControllerPolicy policy = policy_for(read({drives_file(drive_entry), vendor}), some_controller());
    EXPECT_EQ(policy.profiles.at("balanced").max_wake_latency.value, LatencyBound{5ms});
}
TEST(TheDrivesFile, RanksBelowWhatTheAdministratorDecidedForAllDrives)
{
    const PolicyText administrator{Role::main, "/etc/nvmepolicyd/nvmepolicyd.toml",
                                   "[profiles.balanced]\nmax_wake_latency = \"30ms\"\n"};
    const ControllerPolicy policy = policy_for(read({drives_file(drive_entry), administrator}), some_controller());
    EXPECT_EQ(policy.profiles.at("balanced").max_wake_latency.value, LatencyBound{30ms});
    EXPECT_EQ(policy.profiles.at("balanced").max_wake_latency_on_battery.value, LatencyBound{6ms}) << "not decided";
    EXPECT_EQ(policy.apst.mode.value, ManageMode::observe) << "not decided";
}
TEST(TheDrivesFile, SaysWhatTheAdministratorOverrides)
{
    const std::string etc = "/etc/nvmepolicyd/nvmepolicyd.toml";
    const std::string both = "[profiles.balanced]\nmax_wake_latency = \"30ms\"\nmax_wake_latency_on_battery = \"30ms\"\n";
    const std::string entry = drive_entry.substr(0, drive_entry.find("[match.apst]"));
    const ControllerPolicy policy = policy_for(read({drives_file(entry), {Role::main, etc, both}}), some_controller());
    ASSERT_EQ(policy.matched.size(), 1U);
    EXPECT_TRUE(policy.matched[0].sets_nothing());
    ASSERT_EQ(policy.matched[0].overridden.size(), 2U);
    EXPECT_EQ(policy.matched[0].overridden[0].key, "profiles.balanced.max_wake_latency");
    EXPECT_EQ(policy.matched[0].overridden[0].by.text(), etc + ":2");
    EXPECT_EQ(policy.matched[0].overridden[1].by.text(), etc + ":3");

    const ControllerPolicy in_part = policy_for(read({drives_file(drive_entry), {Role::main, etc, both}}), some_controller());
    EXPECT_FALSE(in_part.matched[0].sets_nothing()) << "apst.mode";
    EXPECT_EQ(in_part.matched[0].overridden.size(), 2U);
    EXPECT_TRUE(policy_for(read({drives_file(drive_entry)}), some_controller()).matched[0].overridden.empty());
}
TEST(TheDrivesFile, SurvivesACopyOfTheVendorsFileInEtc)
{
    const PolicyText copy{Role::main, "/etc/nvmepolicyd/nvmepolicyd.toml",
                          content(source_directory / "config/nvmepolicyd.toml")};
    const ControllerPolicy policy = policy_for(read({drives_file(drive_entry), copy}), some_controller());
    EXPECT_EQ(policy.profiles.at("balanced").max_wake_latency.value, LatencyBound{5ms});
    EXPECT_EQ(policy.apst.mode.value, ManageMode::observe);
}
TEST(TheDrivesFile, RanksBelowAMatchOfTheAdministrator)
{
    const ControllerPolicy policy = policy_for(
        read({drives_file(drive_entry), main_file("[[match]]\nmodel = \"*\"\napst.mode = \"manage\"\n")}), some_controller());
    EXPECT_EQ(policy.apst.mode.value, ManageMode::manage);
    EXPECT_EQ(policy.matched.size(), 2U);
}

// ---- Several files

TEST(ALaterFile, ReplacesTheKeysThatItNames)
{
    const Policy policy = read(
        {main_file("[daemon]\nprofile = \"performance\"\ndry_run = true\n"), drop_in("[daemon]\nprofile = \"power-saver\"\n")});
    EXPECT_EQ(policy.daemon.profile, (Setting<std::string>{"power-saver", {"drop-in.toml", 2, 11}}));
    EXPECT_EQ(policy.daemon.dry_run, (Setting<bool>{true, {"main.toml", 3, 11}}));
    EXPECT_EQ(policy.daemon.on_exit, (Setting<OnExit>{OnExit::restore, {}}));
}
TEST(ALaterFile, AppendsItsMatches)
{
    const Policy policy =
        read({main_file("[[match]]\nmodel = \"A\"\n[[match]]\nmodel = \"B\"\n"), drop_in("[[match]]\nmodel = \"C\"\n")});
    ASSERT_EQ(policy.matches.size(), 3U);
    EXPECT_EQ(policy.matches[0].keys.at(MatchKey::model), "A");
    EXPECT_EQ(policy.matches[1].origin, (Origin{"main.toml", 3, 1}));
    EXPECT_EQ(policy.matches[2].origin, (Origin{"drop-in.toml", 1, 1}));
}
TEST(TheErrorsOfSeveralFiles, AreReportedTogetherInTheirOrder)
{
    EXPECT_EQ(errors_of({main_file("[daemon]\nprofile = \"nope\"\n[apst]\nmode = 1\n"),
                         drop_in("x =\n"),
                         {Role::drop_in, "z.toml", "y = 1\n"}}),
              (Errors{"main.toml:4:8: apst.mode: \"1\": is a whole number; allowed: \"manage\", \"observe\"",
                      errors_of({drop_in("x =\n")}).front(),
                      "z.toml:1:1: y: unknown key; allowed: daemon, profiles, apst, write_cache, multipath, match"}))
        << "daemon.profile is not judged: the file that cannot be parsed may have it";
}

TEST(AProfileOfAnotherFile, CanBeTheDefault)
{
    const Policy policy =
        read({main_file("daemon.profile = \"quiet\"\n"), drop_in("profiles.quiet.max_wake_latency = \"1ms\"\n")});
    EXPECT_EQ(policy.daemon.profile.value, "quiet");
}
TEST(TheDefaultProfile, IsJudgedByTheLastFileThatNamesIt)
{
    EXPECT_EQ(errors_of({main_file("daemon.profile = \"nope\"\n"), drop_in("daemon.profile = \"performance\"\n")}), Errors{});
    EXPECT_EQ(errors_of({main_file("daemon.profile = \"performance\"\n"), drop_in("daemon.profile = \"nope\"\n")}),
              Errors{"drop-in.toml:1:18: daemon.profile: \"nope\": no such profile; allowed: \"balanced\", "
                     "\"performance\", \"power-saver\""});
}
TEST(AProfileOfOnesOwn, HasTheSameBoundOnBatteryUnlessItSaysOtherwise)
{
    const PolicyText first = main_file("[profiles.quiet]\nmax_wake_latency = \"1ms\"\n");
    EXPECT_EQ(read({first}).profiles.at("quiet").max_wake_latency_on_battery.value, LatencyBound{1ms});
    const Policy changed = read({first, drop_in("[profiles.quiet]\nmax_wake_latency = \"2ms\"\n")});
    EXPECT_EQ(changed.profiles.at("quiet").max_wake_latency_on_battery.value, LatencyBound{2ms}) << "it goes on following";
    const Policy given = read({first, drop_in("[profiles.quiet]\nmax_wake_latency_on_battery = \"any\"\n")});
    EXPECT_EQ(given.profiles.at("quiet").max_wake_latency.value, LatencyBound{1ms});
    EXPECT_EQ(given.profiles.at("quiet").max_wake_latency_on_battery.value, LatencyBound{});
}
TEST(ABuiltInProfile, KeepsItsBoundOnBatteryWhenTheOtherChanges)
{
    const Policy policy = read({main_file("[profiles.balanced]\nmax_wake_latency = \"5ms\"\n")});
    EXPECT_EQ(policy.profiles.at("balanced").max_wake_latency_on_battery, (Setting<LatencyBound>{{100ms}, {}}));
}
TEST(AProfileOfOnesOwn, NeedsItsBoundTheFirstTime)
{
    EXPECT_EQ(errors_of({main_file("[profiles.quiet]\nmax_wake_latency_on_battery = \"any\"\n"),
                         drop_in("[profiles.quiet]\nmax_wake_latency = \"1ms\"\n")}),
              Errors{"main.toml:1:11: profiles.quiet: a new profile needs max_wake_latency, for example \"25ms\""});
}

TEST(NoFiles, GiveTheDefaults)
{
    EXPECT_EQ(read({}), Policy{});
    EXPECT_EQ(read({main_file("")}), Policy{});
}
TEST(AMatchForAnOwnProfile, FindsItInAnyFile)
{
    EXPECT_EQ(errors_of({main_file("[[match]]\nmodel = \"*\"\n[match.profiles.quiet]\nmax_wake_latency = 0\n"),
                         drop_in("profiles.quiet.max_wake_latency = \"1ms\"\n")}),
              Errors{});
}

// ---- Sizes and depths

TEST(AFile, MayHave262144BytesAndNoMore)
{
    const std::string largest(largest_policy_file, '#');
    EXPECT_EQ(errors_of({main_file(largest)}), Errors{});
    EXPECT_EQ(errors_of({main_file(largest + "#")}), Errors{"main.toml: has 262145 bytes; allowed: at most 262144"});
}
TEST(DeepNesting, IsRefusedBeforeItCanOverflowTheStack)
{
    const auto repeat = [](const std::string& piece) {
        std::string text;
        while (text.size() + 2 * piece.size() + 8 < largest_policy_file)
            text += piece;
        return text;
    };
    EXPECT_EQ(errors_of({main_file("a" + repeat(".a") + " = 1\n")}), Errors{"main.toml:1:66: nested too deeply for a policy"});
    EXPECT_EQ(errors_of({main_file("[a" + repeat(".a") + "]\n")}), Errors{"main.toml:1:67: nested too deeply for a policy"});
    EXPECT_EQ(errors_of({main_file("a = " + repeat("["))}), Errors{"main.toml:1:21: nested too deeply for a policy"});
    EXPECT_EQ(errors_of({main_file("a = " + repeat("{a="))}), Errors{"main.toml:1:53: nested too deeply for a policy"});
    EXPECT_EQ(errors_of({main_file("a = " + repeat("[\n"))}), Errors{"main.toml:17:1: nested too deeply for a policy"});
}
TEST(DotsAndBracketsInTextsAndComments, AreNoNesting)
{
    const std::string dots(1000, '.');
    const std::string brackets(1000, '[');
    EXPECT_EQ(errors_of({main_file("# " + dots + brackets + "\n[[match]]\nmodel = \"\\\"" + dots.substr(0, 99)
                                   + "\"\nserial = '" + brackets.substr(0, 99) + "'\nbecause = \"\"\"" + dots
                                   + "\"\"\"\nsource = '''" + brackets + "'''\n")}),
              Errors{});
}
TEST(AFileOfOneLongLine, IsReadInTimeThatGrowsWithItsSize)
{
    std::string list = "multipath.iopolicy = [";
    while (list.size() < largest_policy_file - 4)
        list += "1,";
    const Errors errors = errors_of({main_file(list + "]\n")});
    EXPECT_EQ(errors.size(), 131059U);
    EXPECT_EQ(errors.back(), "main.toml:1:262139: multipath.iopolicy[131059]: \"1\": is a whole number; allowed: the name "
                             "of an I/O policy, 1 to 32 characters of a-z and -");
}
TEST(PositionsAndValues, CountCharactersAndNotBytes)
{
    EXPECT_EQ(errors_of({main_file("\xef\xbb\xbf"
                                   "apst = { \"µ\" = 1, mode = 5 } # µ\r\n")}),
              (Errors{"main.toml:1:10: apst.\"µ\": unknown key; allowed: mode, allow_deeper, on_conflict",
                      "main.toml:1:26: apst.mode: \"5\": is a whole number; allowed: \"manage\", \"observe\""}));
}
TEST(ALongValue, IsCutInTheMessage)
{
    EXPECT_EQ(errors_of({main_file("apst.mode = \"" + std::string(1000, 'x') + "\"\n")}),
              Errors{"main.toml:1:13: apst.mode: \"" + std::string(80, 'x')
                     + "…\": not a known word; allowed: \"manage\", \"observe\""});
}
TEST(AGlob, MayHave256Bytes)
{
    EXPECT_EQ(errors_of({main_file("[[match]]\nmodel = \"" + std::string(256, '*') + "\"\n")}), Errors{});
    EXPECT_EQ(errors_of({main_file("[[match]]\nmodel = \"" + std::string(257, '*') + "\"\n")}),
              Errors{"main.toml:2:9: match[1].model: \"" + std::string(80, '*') + "…\": too long; allowed: at most 256 bytes"});
}
TEST(TheNameOfAFile, IsMadeHarmlessToo)
{
    EXPECT_EQ(errors_of({{Role::main, "a\x1b[2J.toml", "x = 1"}}).front().substr(0, 19), "a\\x1b[2J.toml:1:1: ");
}

// ---- Borders

TEST(ThePollInterval, IsFromOneSecondToOneHour)
{
    for (const char* good : {"1s", "1000ms", "3600s"})
        read({main_file(std::string("write_cache.poll_interval = \"") + good + "\"\n")});
    EXPECT_EQ(errors_of({main_file("write_cache.poll_interval = \"999.999ms\"\n")}),
              Errors{"main.toml:1:29: write_cache.poll_interval: \"999.999ms\": too short; allowed: a duration from \"1s\" "
                     "to \"3600s\""});
}
TEST(AWeight, IsFrom0To100)
{
    const auto with = [](const std::string& weight) {
        return main_file("[[match]]\nmodel = \"*\"\nmultipath.weight = " + weight + "\n");
    };
    EXPECT_EQ(read({with("0")}).matches[0].multipath_weight->value, 0);
    EXPECT_EQ(read({with("100")}).matches[0].multipath_weight->value, 100);
    EXPECT_EQ(errors_of({with("40.0")}), Errors{"main.toml:3:20: match[1].multipath.weight: \"40.0\": is a decimal number; "
                                                "allowed: a whole number from 0 to 100"});
}

// ---- config show

TEST(AShownPolicy, TellsForEachValueWhereItCameFrom)
{
    const std::string shown = show_policy(read({main_file("apst.mode = \"observe\"\n")}));
    EXPECT_NE(shown.find("\n[apst]\nmode = \"observe\"   # main.toml:1\nallow_deeper = false   # built-in default\n"),
              std::string::npos)
        << shown;
}
TEST(AShownPolicy, IsNotBrokenByTheNameOfAFile)
{
    const Policy policy = read({{Role::main, "a\nb = [.toml", "apst.mode = \"observe\"\n"}});
    EXPECT_EQ(without_origins(read({main_file(show_policy(policy))})), without_origins(policy));
}

} // namespace
} // namespace nvmepolicy
