// SPDX-License-Identifier: LGPL-2.1-or-later
// Whose wishes count, and which drives are told.
#include "wishes.h"

#include "daemon_bench.h"

namespace nvmepolicy {
namespace {

using Writes = std::vector<std::string>;
using namespace std::chrono_literals;

Hold latency_hold(Microseconds most, std::optional<HeldController> only = {})
{
    return {LatencyWish{most, std::move(only)}, "", "app", ":1.1"};
}

Policy following(const std::string& profile = "balanced")
{
    Policy policy;
    policy.daemon.profile.value = profile;
    policy.daemon.follow.value = Follow::power_profiles_daemon;
    return policy;
}

std::string content_of(const std::string& path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Two drives, and everything that wishes go through.
struct Wishing {
    StandardError log;
    Daemon& d = Daemon::start(log);
    TemporaryDirectory state;
    ProfileStore store{state.path()};
    std::optional<Wishes> wishes;
    int changes = 0;
    std::vector<Cookie> released;

    explicit Wishing(const Policy& policy = {}, const std::optional<ChosenProfile>& chosen = {})
    {
        d.simulated.add(evo_plus());
        d.simulated.add(bc501());
        wishes.emplace(Wishes::Surroundings{d.loop, d.pool, *d.reconciler, d.publisher, store}, policy, chosen);
        wishes->tell({[this] { ++changes; }, [this](Cookie cookie) { released.push_back(cookie); }});
        d.begin().then([this] { static_cast<void>(d.host.writes()); });
    }
};

TEST(AChosenProfile, ReachesEveryDriveAndTheDisk)
{
    Wishing w;
    w.d.then([&] {
           ASSERT_TRUE(w.wishes->choose("performance"));
           EXPECT_EQ(w.wishes->base(), "performance");
       })
        .settle()
        .then([&] {
            EXPECT_EQ(w.d.host.writes(), (Writes{"nvme0 0", "nvme1 0"}));
            EXPECT_EQ(content_of(w.state / "profile.json"),
                      "{\"schema\":1,\"profile\":\"performance\",\"instead_of\":\"balanced\"}\n");
        });
    w.d.run();
}

TEST(AChosenProfile, CountsAgainAfterARestartUnlessTheConfigurationHasSpokenSince)
{
    const ChosenProfile chosen{"power-saver", "balanced"};
    EXPECT_EQ(Wishing({}, chosen).wishes->base(), "power-saver");

    Policy edited;
    edited.daemon.profile.value = "performance";
    Wishing later(edited, chosen);
    EXPECT_EQ(later.wishes->base(), "performance");
    EXPECT_EQ(later.log.count("that was chosen instead of balanced no longer counts"), 1);

    Wishing unknown({}, ChosenProfile{"gone", "balanced"});
    EXPECT_EQ(unknown.wishes->base(), "balanced");
    EXPECT_EQ(unknown.log.count("there is none of that name"), 1);
}

TEST(AChosenProfile, GivesWayWhenTheAdministratorEditsTheConfiguration)
{
    Wishing w;
    w.d.then([&] { ASSERT_TRUE(w.wishes->choose("performance")); }).settle().then([&] {
        w.wishes->configure({}); // read again, and nothing of it has changed
        EXPECT_EQ(w.wishes->base(), "performance");
        Policy edited;
        edited.daemon.profile.value = "power-saver";
        w.wishes->configure(edited);
        EXPECT_EQ(w.wishes->base(), "power-saver");
    });
    w.d.run();
}

TEST(AnUnknownProfile, IsRefusedWithTheNameThatWasMeant)
{
    Wishing w;
    w.d.then([&] {
        const auto refused = w.wishes->choose("performanc");
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().kind, RefusalKind::absent);
        EXPECT_EQ(refused.error().text(),
                  "profile: \"performanc\": there is none of that name (did you mean \"performance\"?); "
                  "there are balanced, performance, power-saver");
        EXPECT_FALSE(w.wishes->hold({"", "", "", ":1.1"}));
        EXPECT_EQ(w.changes, 0);
    });
    w.d.run();
}

TEST(AHoldOnOneDrive, TellsOnlyThatDrive)
{
    Wishing w;
    Cookie cookie = 0;
    w.d.then([&] {
           static_cast<void>(w.d.host.looks("nvme1"));
           for (const auto& [id, entry] : w.d.ledger.snapshot().entries)
               if (entry.name == "nvme0")
                   cookie = *w.wishes->hold(latency_hold(2ms, HeldController{id, "nvme0"}));
       })
        .settle()
        .then([&] {
            EXPECT_EQ(w.d.host.writes(), (Writes{"nvme0 2000"}));
            EXPECT_EQ(w.d.host.looks("nvme1"), 0);
            EXPECT_TRUE(w.wishes->release(cookie));
            EXPECT_FALSE(w.wishes->release(cookie));
            EXPECT_EQ(w.released, std::vector{cookie});
        })
        .settle()
        .then([&] { EXPECT_EQ(w.d.host.writes(), (Writes{"nvme0 25000"})); });
    w.d.run();
}

TEST(AHold, LeavesWhatSomebodyElseHasSetAndAProfileDoesNot)
{
    Wishing w;
    w.d.then([&] {
           w.d.simulated.find("nvme0")->tolerance = us(7000);
           w.d.reconciler->written("nvme0");
       })
        .settle()
        .then([&] { ASSERT_TRUE(w.wishes->hold(latency_hold(2ms))); })
        .settle()
        .then([&] {
            EXPECT_EQ(w.d.host.writes(), (Writes{"nvme1 2000"}));
            ASSERT_TRUE(w.wishes->choose("balanced"));
        })
        .settle()
        .then([&] { EXPECT_EQ(w.d.host.writes(), (Writes{"nvme0 2000"})); });
    w.d.run();
}

TEST(AClientThatLeaves, TakesItsHoldsAlong)
{
    Wishing w;
    w.d.then([&] {
           ASSERT_TRUE(w.wishes->hold({"performance", "", "game", ":1.7"}));
           ASSERT_TRUE(w.wishes->hold(latency_hold(3ms)));
           EXPECT_EQ(w.wishes->active(), "performance");
           EXPECT_EQ(w.wishes->base(), "balanced");
       })
        .settle()
        .then([&] {
            EXPECT_EQ(w.d.host.writes(), (Writes{"nvme0 0", "nvme1 0"}));
            w.wishes->client_left(":1.7");
            EXPECT_EQ(w.released.size(), 1U);
            w.wishes->client_left(":1.99");
            EXPECT_EQ(w.changes, 3);
        })
        .settle()
        .then([&] {
            EXPECT_EQ(w.d.host.writes(), (Writes{"nvme0 3000", "nvme1 3000"}));
        });
    w.d.run();
}

TEST(AHeldProfile, EndsWhenTheConfigurationNoLongerHasIt)
{
    Policy with_own;
    with_own.profiles["database"] = {{{2ms}, {}}, {{2ms}, {}}};
    Wishing w(with_own);
    w.d.then([&] {
        const auto cookie = w.wishes->hold({"database", "", "", ":1.1"});
        ASSERT_TRUE(cookie);
        w.wishes->configure({});
        EXPECT_EQ(w.released, std::vector{*cookie});
        EXPECT_EQ(w.wishes->active(), "balanced");
    });
    w.d.run();
}

TEST(AFollowedProfile, CountsAsLongAsItIsThere)
{
    Wishing w(following("power-saver"), ChosenProfile{"performance", "power-saver"});
    w.d.then([&] {
           EXPECT_EQ(w.wishes->base(), "power-saver") << "what was chosen here does not count";
           w.wishes->follow("balanced");
           EXPECT_EQ(w.wishes->base(), "balanced");
           w.wishes->follow("turbo");
           EXPECT_EQ(w.wishes->base(), "balanced");
           EXPECT_EQ(w.log.count("\"turbo\", which we do not have; balanced stays"), 1);
           const auto refused = w.wishes->choose("performance");
           ASSERT_FALSE(refused);
           EXPECT_EQ(refused.error().kind, RefusalKind::denied);
       })
        .settle()
        .then([&] {
            EXPECT_EQ(w.d.host.writes(), (Writes{"nvme0 25000", "nvme1 25000"}));
            w.wishes->follow(std::nullopt);
            EXPECT_EQ(w.wishes->base(), "power-saver");
            w.wishes->configure({}); // follows no longer
            w.wishes->follow("performance");
            EXPECT_EQ(w.wishes->base(), "balanced");
        });
    w.d.run();
}

TEST(WhoeverWaits, IsToldOnceTheDrivesWereTold)
{
    Wishing w;
    std::vector<std::string> order;
    w.d.then([&] {
           ASSERT_TRUE(w.wishes->choose("performance"));
           w.d.reconciler->when_settled([&] {
               order = w.d.host.writes();
               order.emplace_back("settled");
           });
       })
        .until([&] { return !order.empty(); })
        .then([&] {
            EXPECT_EQ(order, (Writes{"nvme0 0", "nvme1 0", "settled"}));
        });
    w.d.run();
}

TEST(TheProfileStore, SavesWhatWasChosenLastAndNothingTwice)
{
    TemporaryDirectory state;
    ProfileStore store(state.path());
    std::optional<Refusal> complaint;
    EXPECT_FALSE(store.read(complaint));
    EXPECT_FALSE(complaint);
    store.choose({"performance", "balanced"});
    store.choose({"power-saver", "balanced"});
    ASSERT_TRUE(store.save());
    EXPECT_EQ(store.read(complaint), (ChosenProfile{"power-saver", "balanced"}));
    state.write("profile.json", "changed");
    ASSERT_TRUE(store.save());
    EXPECT_EQ(content_of(state / "profile.json"), "changed");
}

TEST(TheProfileStore, ComplainsOfWhatItCannotUse)
{
    for (const char* text :
         {"", "{}", "[]", "null", "{\"schema\":1}", "{\"schema\":2,\"profile\":\"a\",\"instead_of\":\"b\"}",
          "{\"schema\":1,\"profile\":\"A B\",\"instead_of\":\"b\"}", "{\"schema\":1,\"profile\":3,\"instead_of\":\"b\"}"}) {
        TemporaryDirectory state;
        state.write("profile.json", text);
        std::optional<Refusal> complaint;
        EXPECT_FALSE(ProfileStore(state.path()).read(complaint)) << text;
        ASSERT_TRUE(complaint) << text;
        EXPECT_EQ(complaint->text(), state / "profile.json" + std::string(": not a record of a profile, schema 1"));
    }
}

} // namespace
} // namespace nvmepolicy
