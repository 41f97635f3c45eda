// SPDX-License-Identifier: LGPL-2.1-or-later
// Who may hold how much, and what all holds together ask for.
#include "nvmepolicy/holds.h"

#include "drives.h"

namespace nvmepolicy {
namespace {

using namespace std::chrono_literals;

const ControllerId first{"nqn.test:a", "A1", 1};
const ControllerId second{"nqn.test:b", "B1", 1};

Hold profile(const std::string& name, const std::string& sender = ":1.1")
{
    return {name, "", "app-" + name, sender};
}

Hold latency(Microseconds most, std::optional<ControllerId> only = {}, const std::string& sender = ":1.1")
{
    LatencyWish wish{most, {}};
    if (only)
        wish.only = HeldController{*only, "nvme0"};
    return {wish, "", "app", sender};
}

TEST(WithoutHolds, TheBaseProfileIsWanted)
{
    EXPECT_EQ(Holds{}.wish("power-saver"), (Wish{"power-saver", {}, {}, {}}));
}

TEST(OfHeldProfiles, PowerSaverWinsThenPerformanceThenTheNewest)
{
    Holds holds;
    ASSERT_TRUE(holds.add(profile("database")));
    EXPECT_EQ(holds.wish("balanced").profile, "database");
    ASSERT_TRUE(holds.add(profile("quiet")));
    EXPECT_EQ(holds.wish("balanced").profile, "quiet");
    const auto performance = holds.add(profile("performance"));
    ASSERT_TRUE(holds.add(profile("database")));
    EXPECT_EQ(holds.wish("balanced").profile, "performance");
    const auto saver = holds.add(profile("power-saver"));
    EXPECT_EQ(holds.wish("balanced").profile, "power-saver");
    EXPECT_EQ(holds.wish("balanced").held_by, "app-power-saver");
    EXPECT_TRUE(holds.release(*saver));
    EXPECT_EQ(holds.wish("balanced").profile, "performance");
    EXPECT_TRUE(holds.release(*performance));
    EXPECT_EQ(holds.wish("balanced").profile, "database");
}

TEST(OfHeldLatencies, TheStrictestCountsOnEachDriveAndOnAll)
{
    Holds holds;
    ASSERT_TRUE(holds.add(latency(10ms)));
    const auto strictest = holds.add(latency(2ms));
    ASSERT_TRUE(holds.add(latency(5ms)));
    ASSERT_TRUE(holds.add(latency(3ms, first)));
    ASSERT_TRUE(holds.add(latency(1ms, first)));
    ASSERT_TRUE(holds.add(latency(4ms, second)));
    Wish wish = holds.wish("balanced");
    ASSERT_EQ(wish.holds.size(), 1U);
    EXPECT_EQ(wish.holds[0].bound.limit, 2ms);
    ASSERT_EQ(wish.holds_on.size(), 2U);
    EXPECT_EQ(wish.holds_on.at(first).bound.limit, 1ms);
    EXPECT_EQ(wish.holds_on.at(second).bound.limit, 4ms);
    EXPECT_TRUE(holds.release(*strictest));
    EXPECT_EQ(holds.wish("balanced").holds[0].bound.limit, 5ms);
}

TEST(AHoldOnOneDrive, CountsForThatDriveOnly)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    Holds holds;
    ASSERT_TRUE(holds.add(latency(2ms, c.controller.id)));
    c.wish = holds.wish("balanced");
    EXPECT_EQ(c.decide().tolerance, us(2000));
    EXPECT_EQ(c.decide().origin, "hold of app");
    c.controller.id.serial += "x";
    EXPECT_EQ(c.decide().tolerance, us(25000));
}

TEST(AHeldProfile, IsNamedWithWhoHoldsIt)
{
    Case c = case_of("samsung-990-evo-plus-4tb");
    Holds holds;
    ASSERT_TRUE(holds.add({"performance", "a long game", "org.example.Game", ":1.7"}));
    c.wish = holds.wish("balanced");
    EXPECT_EQ(c.decide().tolerance, us(0));
    EXPECT_EQ(c.decide().origin, "profile performance, hold of org.example.Game (a long game)");
}

TEST(WhoHolds, IsTheBusNameWhereTheClientDoesNotSay)
{
    EXPECT_EQ((Hold{"performance", "", "", ":1.7"}.who()), ":1.7");
    EXPECT_EQ((Hold{"performance", "\x1b[2J", "a\nb", ":1.7"}.who()), "a\\nb (\\x1b[2J)");
}

TEST(Release, EndsOneHoldOnce)
{
    Holds holds;
    const auto cookie = holds.add(profile("performance"));
    ASSERT_TRUE(cookie);
    EXPECT_NE(*cookie, 0U);
    ASSERT_TRUE(holds.find(*cookie));
    EXPECT_EQ(holds.find(*cookie)->application_id, "app-performance");
    EXPECT_FALSE(holds.release(*cookie + 1));
    EXPECT_TRUE(holds.release(*cookie));
    EXPECT_FALSE(holds.release(*cookie));
    EXPECT_FALSE(holds.find(*cookie));
    EXPECT_FALSE(holds.of_sender(":1.1"));
}

TEST(ASenderThatLeaves, TakesItsHoldsAlong)
{
    Holds holds;
    const auto mine = holds.add(profile("performance", ":1.1"));
    const auto other = holds.add(profile("power-saver", ":1.2"));
    const auto mine_too = holds.add(latency(1ms, {}, ":1.1"));
    EXPECT_EQ(holds.release_if([](const Hold& h) { return h.sender == ":1.1"; }), (std::vector{*mine, *mine_too}));
    EXPECT_EQ(holds.all().size(), 1U);
    EXPECT_TRUE(holds.find(*other));
    EXPECT_FALSE(holds.of_sender(":1.1"));
    EXPECT_TRUE(holds.of_sender(":1.2"));
}

TEST(OneSender, HasAtMost64Holds)
{
    Holds holds;
    std::vector<Cookie> cookies;
    for (int i = 0; i < 64; ++i) {
        const auto cookie = holds.add(profile("performance"));
        ASSERT_TRUE(cookie) << i;
        cookies.push_back(*cookie);
    }
    const auto refused = holds.add(profile("performance"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text(), "hold: \":1.1\": this client has 64 holds already, and no more are taken from one");
    EXPECT_TRUE(holds.add(profile("performance", ":1.2")));
    EXPECT_TRUE(holds.release(cookies[7]));
    EXPECT_TRUE(holds.add(profile("performance")));
}

TEST(All, HaveAtMost1024Holds)
{
    Holds holds;
    for (int i = 0; i < 1024; ++i)
        ASSERT_TRUE(holds.add(profile("performance", ":1." + std::to_string(i / 64))));
    ASSERT_FALSE(holds.add(profile("performance", ":1.99")));
    EXPECT_FALSE(holds.of_sender(":1.99"));
}

} // namespace
} // namespace nvmepolicy
