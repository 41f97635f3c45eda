// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/ledger_store.h"

#include <thread>

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

/// As good as a full /run: no draft can be written.
std::string fill(const TemporaryDirectory& place)
{
    std::filesystem::create_directory(place / "originals.json.new");
    return place / "originals.json.new";
}

TEST(AFullDisk, KeepsADriveFromBeingWrittenToAndSaysSo)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    const std::string full = fill(place);
    const auto intended = store->intend(change(us(100000), us(25000)));
    ASSERT_FALSE(intended);
    EXPECT_EQ(intended.error().kind, RefusalKind::try_later);
    EXPECT_EQ(intended.error().text(),
              full + ": Is a directory (EISDIR); nvme0 is not written to before it is on record what it had");
    EXPECT_FALSE(store->find(evo_plus)) << "nothing is ours yet";
}

TEST(AFullDisk, IsWrittenToWithTheNextChange)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change(us(100000), us(25000))));
    const std::string full = fill(place);
    EXPECT_FALSE(store->confirm(change(us(100000), us(25000)), {}));
    EXPECT_FALSE(store->intend(change(us(25000), us(0))));
    EXPECT_EQ(store->find(evo_plus)->ours, us(25000)) << "that was written";
    EXPECT_FALSE(store->find(evo_plus)->is_ours(us(0))) << "and that was not";
    std::filesystem::remove(full);
    ASSERT_TRUE(store->intend(change(us(25000), us(0))));
    const auto entry = opened(place / "originals.json")->find(evo_plus);
    EXPECT_EQ(entry->ours, us(25000));
    EXPECT_EQ(entry->intended, std::vector{us(0)});
}

TEST(AFullDisk, HasRoomForAnEmptyLedger)
{
    const TemporaryDirectory place;
    const auto store = opened(place / "originals.json");
    ASSERT_TRUE(store->intend(change(us(100000), us(25000))));
    static_cast<void>(fill(place));
    EXPECT_TRUE(store->forget(std::vector{evo_plus}));
    EXPECT_FALSE(std::filesystem::exists(place / "originals.json"));
    EXPECT_TRUE(store->forget(std::vector{evo_plus})) << "there is none any more";
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
