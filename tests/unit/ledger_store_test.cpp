// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/ledger_store.h"

#include <array>
#include <thread>

#include "small_files.h"
#include "temporary_directory.h"

namespace nvmepolicy {
namespace {

const ControllerId evo_plus{"nqn.1994-11.com.samsung:nvme:990EVOPlus:M.2:S7U8NJ0X000001", "S7U8NJ0X000001", 1};

LatencyTolerance us(std::int64_t limit)
{
    return LatencyTolerance::of(Microseconds{limit});
}

ToleranceChange change(const LatencyTolerance& from, const LatencyTolerance& to,
                       std::optional<LatencyTolerance> through = std::nullopt)
{
    return {evo_plus, "nvme0", from, to, through, "profile balanced", "the bound of 25 ms itself"};
}

std::unique_ptr<LedgerStore> opened(const std::string& path)
{
    auto store = LedgerStore::open(path);
    EXPECT_TRUE(store) << store.error().text();
    return *std::move(store);
}

TEST(ALedgerStore, StartsEmptyAndWritesNothingByItself)
{
    const TemporaryDirectory place;
    EXPECT_TRUE(opened(place / "originals.json")->snapshot().entries.empty());
    EXPECT_FALSE(std::filesystem::exists(place / "originals.json"));
}

TEST(AnIntent, IsOnDiskBeforeTheWrite)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change(us(100000), us(25000), us(24999))));
    const auto entry = opened(place / "originals.json")->find(evo_plus);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->first, us(100000));
    EXPECT_EQ(entry->intended, (std::vector{us(24999), us(25000)}));
    EXPECT_EQ(entry->ours, std::nullopt);
    EXPECT_FALSE(std::filesystem::exists(place / "originals.json.new"));
}

TEST(AnIntent, ThatIsAboutAnObjectThatHasLeftDoesNotTakeTheRecordFromTheNextOne)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ToleranceChange late = change(us(25000), us(0));
    late.object = 1;
    ToleranceChange next = change(us(100000), us(25000));
    next.object = 2;
    ASSERT_TRUE(store->intend(next));
    const auto refused = store->intend(late);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, RefusalKind::gone);
    ASSERT_TRUE(store->confirm(late, {}));
    ASSERT_TRUE(store->confirm(next, {}));
    const auto entry = opened(place / "originals.json")->find(evo_plus);
    EXPECT_EQ(entry->object, 2U);
    EXPECT_EQ(entry->first, us(100000));
    EXPECT_EQ(entry->ours, us(25000));
}

TEST(TheFirstValue, StaysTheFirst)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change(LatencyTolerance::automatic(), us(25000))));
    ASSERT_TRUE(store->confirm(change(LatencyTolerance::automatic(), us(25000)), {}));
    ASSERT_TRUE(store->intend(change(us(25000), us(0))));
    const auto entry = opened(place / "originals.json")->find(evo_plus);
    EXPECT_EQ(entry->first, LatencyTolerance::automatic());
    EXPECT_EQ(entry->ours, us(25000));
    EXPECT_EQ(entry->intended, std::vector{us(0)});
    EXPECT_TRUE(entry->is_ours(us(25000)));
    EXPECT_TRUE(entry->is_ours(us(0)));
}

TEST(AForgottenController, IsGoneFromTheDisk)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change(us(100000), us(25000))));
    ASSERT_TRUE(store->forget(std::vector{evo_plus}));
    EXPECT_TRUE(opened(place / "originals.json")->snapshot().entries.empty());
}

ToleranceChange change_of(std::uint16_t cntlid, const LatencyTolerance& from, const LatencyTolerance& to)
{
    ToleranceChange one = change(from, to);
    one.controller.cntlid = cntlid;
    return one;
}

TEST(AFullDisk, KeepsADriveFromBeingWrittenToAndSaysSo)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    const SmallFiles full(20);
    const auto intended = store->intend(change(us(100000), us(25000)));
    ASSERT_FALSE(intended);
    EXPECT_EQ(intended.error().kind, RefusalKind::try_later);
    EXPECT_EQ(intended.error().text(),
              place / "originals.json.new"
                  + ": File too large (EFBIG); nvme0 is not written to before it is on record what it had");
    EXPECT_FALSE(store->find(evo_plus)) << "nothing is ours yet";
    EXPECT_FALSE(std::filesystem::exists(place / "originals.json.new")) << "that would take up the rest";
}

TEST(AFullDisk, GetsNoHalfLines)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change_of(0, us(100000), us(25000))));
    const std::string before = place.read("originals.json");
    for (std::size_t room = 0; room < 280; room += 7) {
        const SmallFiles full(before.size() + room);
        ASSERT_FALSE(store->intend(change_of(1, us(100000), us(25000))));
        EXPECT_EQ(place.read("originals.json"), before);
    }
    ASSERT_TRUE(store->intend(change_of(1, us(100000), us(25000))));
    EXPECT_TRUE(place.read("originals.json").starts_with(before)) << "and all is appended as soon as there is room";
    EXPECT_EQ(opened(place / "originals.json")->snapshot(), store->snapshot());
}

TEST(AFullDisk, IsWrittenToWithTheNextChange)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change(us(100000), us(25000))));
    {
        const SmallFiles full(20);
        EXPECT_FALSE(store->confirm(change(us(100000), us(25000)), {}));
        EXPECT_FALSE(store->intend(change(us(25000), us(0))));
        EXPECT_EQ(store->find(evo_plus)->ours, us(25000)) << "that was written";
        EXPECT_FALSE(store->find(evo_plus)->is_ours(us(0))) << "and that was not";
    }
    ASSERT_TRUE(store->intend(change_of(2, us(100000), us(25000)))) << "another controller's";
    EXPECT_EQ(opened(place / "originals.json")->find(evo_plus)->ours, us(25000));
    ASSERT_TRUE(store->intend(change(us(25000), us(0))));
    const auto entry = opened(place / "originals.json")->find(evo_plus);
    EXPECT_EQ(entry->ours, us(25000));
    EXPECT_EQ(entry->intended, std::vector{us(0)});
}

TEST(AFullDisk, IsCaughtUpWith)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change(us(100000), us(25000))));
    {
        const SmallFiles full(20);
        EXPECT_FALSE(store->confirm(change(us(100000), us(25000)), {}));
        EXPECT_FALSE(store->catch_up(evo_plus));
        EXPECT_TRUE(store->catch_up({"another", "one", 1})) << "of that one nothing is missing";
        EXPECT_FALSE(store->intend(change_of(7, us(100000), us(25000))));
        EXPECT_TRUE(store->catch_up(change_of(7, us(0), us(0)).controller)) << "nor of one that was never begun with";
    }
    EXPECT_TRUE(store->catch_up(evo_plus));
    EXPECT_EQ(opened(place / "originals.json")->find(evo_plus)->ours, us(25000));
}

TEST(AFullDisk, HasRoomForAnEmptyLedger)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change(us(100000), us(25000))));
    const SmallFiles full(0);
    EXPECT_TRUE(store->forget(std::vector{evo_plus}));
    EXPECT_FALSE(std::filesystem::exists(place / "originals.json"));
    EXPECT_TRUE(store->forget(std::vector{evo_plus})) << "there is none any more";
}

TEST(AChange, IsOneLineMoreHoweverManyControllersThereAre)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    std::vector<std::size_t> grown;
    std::size_t size = 0;
    for (std::uint16_t i = 100; i < 600; ++i) {
        ASSERT_TRUE(store->intend(change_of(i, us(100000), us(25000))));
        const std::size_t now = std::filesystem::file_size(place / "originals.json");
        grown.push_back(now - std::exchange(size, now));
    }
    EXPECT_EQ(grown[1], grown[499]);
    EXPECT_EQ(opened(place / "originals.json")->snapshot(), store->snapshot());
}

TEST(ALedgerStore, DoesNotGrowForEverInAFight)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    std::size_t largest = 0;
    for (int i = 0; i < 1000; ++i) {
        const ToleranceChange ours = change_of(static_cast<std::uint16_t>(i % 2), us(60000), us(25000));
        ASSERT_TRUE(store->intend(ours));
        ASSERT_TRUE(store->confirm(ours, {}));
        largest = std::max<std::size_t>(largest, std::filesystem::file_size(place / "originals.json"));
    }
    EXPECT_LT(largest, 50'000U);
    EXPECT_EQ(opened(place / "originals.json")->snapshot(), store->snapshot());
}

TEST(ALedgerStore, TouchesNothingWhereItOnlyLooks)
{
    const TemporaryDirectory place;
    ASSERT_TRUE(opened(place / "originals.json")->intend(change(us(100000), us(25000))));
    const std::string torn = place.read("originals.json") + R"({"attribute":"power/pm)";
    place.write("originals.json", torn);
    EXPECT_TRUE(opened(place / "originals.json")->find(evo_plus));
    EXPECT_EQ(place.read("originals.json"), torn) << "somebody else may be writing just that line";
}

TEST(AnInterruptedAppend, IsClearedAwayByTheNextChange)
{
    const TemporaryDirectory place;
    ASSERT_TRUE(opened(place / "originals.json")->intend(change(us(100000), us(25000))));
    place.write("originals.json", place.read("originals.json") + R"({"attribute":"power/pm)");
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change_of(9, us(60000), us(25000))));
    const Ledger ledger = opened(place / "originals.json")->snapshot();
    EXPECT_EQ(ledger.entries.size(), 2U);
    EXPECT_EQ(ledger, store->snapshot());
}

TEST(AFileThatSomebodyElseChanges, IsWrittenAnewWithAllThatWeKnow)
{
    const auto ways = std::to_array<void (*)(const TemporaryDirectory&)>({
        [](const TemporaryDirectory& place) { std::filesystem::remove(place / "originals.json"); },
        [](const TemporaryDirectory& place) { std::filesystem::rename(place / "originals.json", place / "moved away"); },
        [](const TemporaryDirectory& place) { place.write("originals.json", ""); },
        [](const TemporaryDirectory& place) { place.write("originals.json", place.read("originals.json") + "and more"); },
        [](const TemporaryDirectory& place) {
            std::filesystem::copy(place / "originals.json", place / "copy");
            std::filesystem::rename(place / "copy", place / "originals.json");
        },
        [](const TemporaryDirectory& place) {
            std::filesystem::rename(place / "originals.json", place / "elsewhere");
            place.link("originals.json", place / "elsewhere");
        },
        [](const TemporaryDirectory& place) {
            std::filesystem::remove(place / "originals.json");
            std::filesystem::create_symlink("/dev/null", place / "originals.json");
        },
    });
    for (const auto& somebody_else : ways) {
        const TemporaryDirectory place;
        const auto store = opened(place / "originals.json");
        ASSERT_TRUE(store->intend(change_of(1, us(100000), us(25000))));
        somebody_else(place);
        ASSERT_TRUE(store->intend(change_of(2, us(60000), us(25000))));
        EXPECT_EQ(opened(place / "originals.json")->snapshot(), store->snapshot());
        EXPECT_FALSE(std::filesystem::is_symlink(place / "originals.json"));
        ASSERT_TRUE(store->confirm(change_of(2, us(60000), us(25000)), {}));
        EXPECT_EQ(opened(place / "originals.json")->snapshot(), store->snapshot());
    }
}

TEST(ARecord, ThatWouldBeTooLargeToBeReadIsNotBegun)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ToleranceChange large = change_of(1, us(100000), us(25000));
    large.origin = std::string(largest_ledger, 'x');
    EXPECT_EQ(store->intend(large).error().kind, RefusalKind::try_later);
    ASSERT_TRUE(store->intend(change_of(2, us(100000), us(25000))));
    EXPECT_EQ(store->intend(large).error().kind, RefusalKind::try_later);
    EXPECT_EQ(opened(place / "originals.json")->snapshot(), store->snapshot());
}

TEST(AConfirmation, LeavesWhatAnotherJobHasAnnounced)
{
    LedgerStore store;
    const ToleranceChange repair = change(us(0), us(0), us(1));
    const ToleranceChange other = change(us(100000), us(0));
    ASSERT_TRUE(store.intend(repair));
    ASSERT_TRUE(store.intend(other));
    ASSERT_TRUE(store.confirm(other, {}));
    EXPECT_EQ(store.find(evo_plus)->intended, (std::vector{us(1), us(0)}));
    ASSERT_TRUE(store.confirm(repair, {}));
    EXPECT_TRUE(store.find(evo_plus)->intended.empty());
}

TEST(AWriteThatFailed, MayBeInTheFileUntilTheNextIsConfirmed)
{
    LedgerStore store;
    ASSERT_TRUE(store.intend(change(us(100000), us(25000))));
    store.abandon(change(us(100000), us(25000)));
    EXPECT_TRUE(store.find(evo_plus)->is_ours(us(25000)));
    ASSERT_TRUE(store.intend(change(us(100000), us(0))));
    ASSERT_TRUE(store.confirm(change(us(100000), us(0)), {}));
    EXPECT_FALSE(store.find(evo_plus)->is_ours(us(25000)));
}

TEST(ALedgerStore, InMemoryNeedsNoFile)
{
    LedgerStore store;
    EXPECT_TRUE(store.intend(change(us(100000), us(25000))));
    EXPECT_TRUE(store.find(evo_plus));
}

TEST(ALedgerStore, OfADirectoryIsRefused)
{
    const TemporaryDirectory place;
    EXPECT_EQ(LedgerStore::open(place.path()).error().text(), place.path() + ": not a regular file");
}

TEST(ALedgerStore, IsWrittenFromManyThreads)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    {
        std::vector<std::jthread> threads;
        for (std::uint16_t i = 0; i < 8; ++i)
            threads.emplace_back([&, i] {
                ToleranceChange mine = change(us(i), us(25000));
                mine.controller.cntlid = i;
                for (int n = 0; n < 10; ++n) {
                    EXPECT_TRUE(store->intend(mine));
                    EXPECT_TRUE(store->confirm(mine, {}));
                }
            });
    }
    const Ledger ledger = opened(place / "originals.json")->snapshot();
    ASSERT_EQ(ledger.entries.size(), 8U);
    for (const auto& [controller, entry] : ledger.entries)
        EXPECT_EQ(entry.first, us(entry.controller.cntlid));
}

TEST(TheInstanceLock, IsHeldByOneAtATime)
{
    const TemporaryDirectory place;
    const std::string run = place / "nvmepolicyd";
    {
        const auto first = InstanceLock::take(run); // makes the directory
        ASSERT_TRUE(first) << first.error().text();
        const auto second = InstanceLock::take(run);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().text(), run + "/lock: another nvmepolicyd is running; only one may write at a time");
        EXPECT_EQ(second.error().kind, RefusalKind::try_later);
    }
    EXPECT_TRUE(InstanceLock::take(run)) << "free again";
}

TEST(TheInstanceLock, DoesNotFollowALink)
{
    const TemporaryDirectory place;
    place.link("nvmepolicyd/lock", place / "elsewhere");
    EXPECT_FALSE(InstanceLock::take(place / "nvmepolicyd"));
    EXPECT_FALSE(std::filesystem::exists(place / "elsewhere"));
}

} // namespace
} // namespace nvmepolicy
