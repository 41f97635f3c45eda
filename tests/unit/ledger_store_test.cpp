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
    ASSERT_TRUE(store->forget(evo_plus));
    EXPECT_TRUE(opened(place / "originals.json")->snapshot().entries.empty());
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
