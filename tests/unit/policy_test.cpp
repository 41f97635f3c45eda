// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/policy.h"

#include <ostream>

#include <gtest/gtest.h>

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

// tests/drives/samsung-990-evo-plus-4tb.json in a desktop's first M.2 slot.
Controller evo_plus()
{
    Controller controller;
    controller.name = "nvme0";
    controller.id = {"nqn.1994-11.com.samsung:nvme:990EVOPlus:M.2:S7U8NJ0X000001", "S7U8NJ0X000001", 1};
    controller.model = "Samsung SSD 990 EVO Plus 4TB";
    controller.firmware = "2B2QKXG7";
    controller.transport = "pcie";
    controller.address = "0000:01:00.0";
    controller.pci_vendor_id = 0x144d;
    return controller;
}

Match observing(std::map<MatchKey, std::string> keys)
{
    Match match;
    match.keys = std::move(keys);
    match.apst_mode = {ManageMode::observe, {"test.toml", 3, 8}};
    return match;
}

bool fits(std::map<MatchKey, std::string> keys, const Controller& controller)
{
    Policy policy;
    policy.matches.push_back(observing(std::move(keys)));
    const ControllerPolicy result = policy_for(policy, controller);
    EXPECT_EQ(result.matched.size() == 1, result.apst.mode.value == ManageMode::observe);
    return !result.matched.empty();
}

struct Glob {
    std::string name;
    MatchKey key;
    std::string glob;
    bool fits;
};
void PrintTo(const Glob& row, std::ostream* out)
{
    *out << show(row.key) << " = " << row.glob;
}

class AGlob : public testing::TestWithParam<Glob> {};

TEST_P(AGlob, FitsTheWholeText)
{
    EXPECT_EQ(fits({{GetParam().key, GetParam().glob}}, evo_plus()), GetParam().fits);
}
INSTANTIATE_TEST_SUITE_P(Key, AGlob,
                         testing::Values(Glob{"model_exact", MatchKey::model, "Samsung SSD 990 EVO Plus 4TB", true},
                                         Glob{"model_star", MatchKey::model, "Samsung SSD 990 EVO*", true},
                                         Glob{"model_only_the_beginning", MatchKey::model, "Samsung SSD 990 EVO", false},
                                         Glob{"model_other_case", MatchKey::model, "samsung*", false},
                                         Glob{"model_question_mark", MatchKey::model, "Samsung SSD 990 EVO Plus ?TB", true},
                                         Glob{"model_set", MatchKey::model, "* [12]TB", false},
                                         Glob{"model_other_set", MatchKey::model, "* [24]TB", true},
                                         Glob{"serial", MatchKey::serial, "S7U8*", true},
                                         Glob{"firmware", MatchKey::firmware, "2B2QKXG7", true},
                                         Glob{"other_firmware", MatchKey::firmware, "1B2QKXG7", false},
                                         Glob{"transport", MatchKey::transport, "pcie", true},
                                         Glob{"other_transport", MatchKey::transport, "tcp", false},
                                         Glob{"nqn", MatchKey::subsystem_nqn, "nqn.1994-11.com.samsung:*", true},
                                         Glob{"address", MatchKey::address, "0000:01:*", true},
                                         Glob{"controller", MatchKey::controller, "nvme[0-3]", true},
                                         Glob{"other_controller", MatchKey::controller, "nvme1", false},
                                         Glob{"vendor_id", MatchKey::vendor_id, "0x144d", true},
                                         Glob{"vendor_id_glob", MatchKey::vendor_id, "0x14*", true},
                                         Glob{"other_vendor_id", MatchKey::vendor_id, "0x1c5c", false}),
                         [](const testing::TestParamInfo<Glob>& row) { return row.param.name; });

TEST(AStar, CrossesSlashesAndLeadingDots)
{
    Controller controller = evo_plus();
    controller.address = ".a/b";
    EXPECT_TRUE(fits({{MatchKey::address, "*"}}, controller));
}
TEST(EveryKeyOfAMatch, MustFit)
{
    EXPECT_TRUE(fits({{MatchKey::model, "Samsung*"}, {MatchKey::transport, "pcie"}}, evo_plus()));
    EXPECT_FALSE(fits({{MatchKey::model, "Samsung*"}, {MatchKey::transport, "tcp"}}, evo_plus()));
}
TEST(AMatchWithoutKeys, FitsNothing)
{
    EXPECT_FALSE(fits({}, evo_plus()));
}
TEST(AFactThatTheControllerDoesNotKnow, FitsNotEvenAStar)
{
    EXPECT_FALSE(fits({{MatchKey::subsystem_nqn, "*"}}, Controller{}));
    EXPECT_FALSE(fits({{MatchKey::vendor_id, "*"}}, Controller{}));
}

TEST(TheVendorId, IsThatOfIdentifyWhereThereIsNoPciFunction)
{
    Controller controller = evo_plus();
    controller.pci_vendor_id.reset();
    EXPECT_FALSE(fits({{MatchKey::vendor_id, "0x*"}}, controller));
    IdentifyController identify;
    identify.vendor_id = 0x1d0f;
    controller.identify = identify;
    EXPECT_TRUE(fits({{MatchKey::vendor_id, "0x1d0f"}}, controller));
    controller.pci_vendor_id = 0x144d;
    EXPECT_FALSE(fits({{MatchKey::vendor_id, "0x1d0f"}}, controller));
}
TEST(TheVendorId, IsUnknownWhereItIsZero)
{
    Controller controller = evo_plus();
    controller.pci_vendor_id.reset();
    controller.identify = IdentifyController{};
    EXPECT_FALSE(fits({{MatchKey::vendor_id, "*"}}, controller));
}
TEST(TheVendorId, HasFourDigits)
{
    Controller controller = evo_plus();
    controller.pci_vendor_id = 0x2d;
    EXPECT_TRUE(fits({{MatchKey::vendor_id, "0x002d"}}, controller));
}

TEST(WithoutMatches, ThePolicyHoldsAsItIs)
{
    const Policy policy;
    const ControllerPolicy result = policy_for(policy, evo_plus());
    EXPECT_EQ(result.profiles, policy.profiles);
    EXPECT_EQ(result.apst, policy.apst);
    EXPECT_EQ(result.write_cache, policy.write_cache);
    EXPECT_EQ(result.multipath, policy.multipath);
    EXPECT_TRUE(result.matched.empty());
}

TEST(ALaterMatch, WinsAndOverridesOnlyWhatItNames)
{
    const Origin first{"drives.toml", 4, 20};
    const Origin second{"local.toml", 9, 20};
    Policy policy;
    policy.matches.resize(2);
    policy.matches[0].keys = {{MatchKey::model, "Samsung*"}};
    policy.matches[0].profiles["balanced"].max_wake_latency = {{{5ms}}, first};
    policy.matches[0].profiles["balanced"].max_wake_latency_on_battery = {{{50ms}}, first};
    policy.matches[1].keys = {{MatchKey::transport, "pcie"}};
    policy.matches[1].profiles["balanced"].max_wake_latency = {{{LatencyBound{}}, second}};

    const Profile balanced = policy_for(policy, evo_plus()).profiles.at("balanced");
    EXPECT_EQ(balanced.max_wake_latency, (Setting<LatencyBound>{{}, second}));
    EXPECT_EQ(balanced.max_wake_latency_on_battery, (Setting<LatencyBound>{{50ms}, first}));

    const std::vector<Match> matched = policy_for(policy, evo_plus()).matched;
    ASSERT_EQ(matched.size(), 2U);
    EXPECT_EQ(matched[0].overridden, (std::vector{Overridden{"profiles.balanced.max_wake_latency", second}}));
    EXPECT_FALSE(matched[0].sets_nothing()) << "the bound on battery";
    EXPECT_TRUE(matched[1].overridden.empty());
}

TEST(ALaterMatch, MayOverrideAllOfAnEarlierOne)
{
    const Origin first{"drives.toml", 4, 20};
    const Origin second{"local.toml", 9, 20};
    Policy policy;
    policy.matches.resize(2);
    policy.matches[0].keys = policy.matches[1].keys = {{MatchKey::model, "Samsung*"}};
    policy.matches[0].apst_mode = {ManageMode::observe, first};
    policy.matches[1].apst_mode = {ManageMode::manage, second};
    const std::vector<Match> matched = policy_for(policy, evo_plus()).matched;
    ASSERT_EQ(matched.size(), 2U);
    EXPECT_TRUE(matched[0].sets_nothing());
    EXPECT_EQ(matched[0].overridden, (std::vector{Overridden{"apst.mode", second}}));
    EXPECT_FALSE(matched[1].sets_nothing());
}

TEST(AMatch, CanOverrideEveryKey)
{
    const Origin origin{"local.toml", 1, 1};
    Policy policy;
    Match& match = policy.matches.emplace_back();
    match.keys = {{MatchKey::controller, "nvme0"}};
    match.profiles["power-saver"].max_wake_latency = {{{10ms}}, origin};
    match.apst_mode = {ManageMode::observe, origin};
    match.apst_allow_deeper = {true, origin};
    match.apst_on_conflict = {OnConflict::enforce, origin};
    match.write_cache_mode = {CacheMode::observe, origin};
    match.write_cache_trust_current = {true, origin};
    match.write_cache_allow_stacked = {true, origin};
    match.write_cache_shared = {true, origin};
    match.write_cache_watch = {CacheWatch::poll, origin};
    match.write_cache_poll_interval = {Microseconds{3s}, origin};
    match.multipath_mode = {ManageMode::observe, origin};
    match.multipath_iopolicy = {{"numa"}, origin};
    match.multipath_weights = {WeightSource::fixed, origin};
    match.multipath_on_conflict = {OnConflict::enforce, origin};
    match.multipath_weight = {0, origin};

    const ControllerPolicy result = policy_for(policy, evo_plus());
    EXPECT_EQ(result.profiles.at("power-saver").max_wake_latency, (Setting<LatencyBound>{{10ms}, origin}));
    EXPECT_EQ(result.apst, (ApstPolicy{*match.apst_mode, *match.apst_allow_deeper, *match.apst_on_conflict}));
    EXPECT_EQ(result.write_cache,
              (WriteCachePolicy{*match.write_cache_mode, *match.write_cache_trust_current, *match.write_cache_allow_stacked,
                                *match.write_cache_shared, *match.write_cache_watch, *match.write_cache_poll_interval}));
    EXPECT_EQ(result.multipath, (MultipathPolicy{*match.multipath_mode, *match.multipath_iopolicy, *match.multipath_weights,
                                                 *match.multipath_on_conflict, match.multipath_weight}));
}

TEST(TheBuiltInProfiles, AreThoseOfTheDocumentation)
{
    const std::map<std::string, Profile> profiles = builtin_profiles();
    ASSERT_EQ(profiles.size(), 3U);
    EXPECT_EQ(profiles.at("performance").max_wake_latency.value, LatencyBound{0us});
    EXPECT_EQ(profiles.at("performance").max_wake_latency_on_battery.value, LatencyBound{10ms});
    EXPECT_EQ(profiles.at("balanced").max_wake_latency.value, LatencyBound{25ms});
    EXPECT_EQ(profiles.at("balanced").max_wake_latency_on_battery.value, LatencyBound{100ms});
    EXPECT_EQ(profiles.at("power-saver").max_wake_latency.value, LatencyBound{});
    EXPECT_EQ(profiles.at("power-saver").max_wake_latency_on_battery.value, LatencyBound{});
    EXPECT_EQ(profiles.count(Policy{}.daemon.profile.value), 1U);
}

TEST(AnOrigin, NamesTheFileAndLineOrSaysThatItIsBuiltIn)
{
    EXPECT_EQ(Origin{}.text(), "built-in default");
    EXPECT_EQ((Origin{"/etc/nvmepolicyd/nvmepolicyd.toml", 14, 20}).text(), "/etc/nvmepolicyd/nvmepolicyd.toml:14");
    EXPECT_EQ((Origin{"a\nb.toml", 1, 1}).text(), "a\\nb.toml:1");
}

TEST(AMatchKey, IsShownAsItIsWritten)
{
    EXPECT_EQ(show(MatchKey::model), "model");
    EXPECT_EQ(show(MatchKey::subsystem_nqn), "subsystem_nqn");
    EXPECT_EQ(show(MatchKey::vendor_id), "vendor_id");
}

} // namespace
} // namespace nvmepolicy
