// SPDX-License-Identifier: LGPL-2.1-or-later
// The drop-out breaker's record on disk: what is there when, and what becomes of it when the disk does not take it.
#include "host/breaker_store.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <sys/stat.h>
#include <thread>

#include "breaker_records.h"
#include "temporary_directory.h"

namespace nvmepolicy {
namespace {

/// A machine's /var/lib and, for each boot, a /run.
struct Disk {
    TemporaryDirectory root;
    int boots = 0;
    std::optional<Refusal> complaint;
    Disk() { reboot(); }
    void reboot() { std::filesystem::create_directories(run(++boots)); }
    [[nodiscard]] std::string run(int boot) const { return root / ("run" + std::to_string(boot)); }
    [[nodiscard]] std::string state() const { return root / "state"; }
    std::unique_ptr<BreakerStore> open()
    {
        complaint.reset();
        return BreakerStore::open(state(), run(boots), complaint);
    }
    [[nodiscard]] BreakerRecord record() const
    {
        const auto parsed = parse_breaker("breaker.json", root.read("state/breaker.json"));
        EXPECT_TRUE(parsed);
        return parsed ? *parsed : BreakerRecord{};
    }
};

TEST(TheBreakerStore, MakesItsDirectoryAndComplainsOfNothing)
{
    Disk disk;
    auto store = disk.open();
    EXPECT_FALSE(disk.complaint);
    EXPECT_EQ(store->tripped(one), std::nullopt);
    EXPECT_TRUE(std::filesystem::is_directory(disk.state()));
    EXPECT_EQ(std::filesystem::file_size(disk.run(1) + "/boot"), 32U);
}

TEST(TheBreakerStore, HasATrialOnDiskBeforeItReturns)
{
    Disk disk;
    auto store = disk.open();
    ASSERT_TRUE(store->begin_trial(one));
    const BreakerRecord record = disk.record();
    ASSERT_EQ(record.trials.size(), 1U);
    ASSERT_TRUE(record.trials.contains(one));
    EXPECT_FALSE(record.trials.at(one).clean);
    ASSERT_TRUE(store->begin_trial(one));
    EXPECT_EQ(disk.record().trials.size(), 1U) << "once";
}

TEST(TheBreakerStore, TripsAfterAnUncleanBoot)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->begin_trial(one));
    disk.reboot();
    auto store = disk.open();
    EXPECT_FALSE(disk.complaint);
    EXPECT_TRUE(store->tripped(one));
    EXPECT_FALSE(store->tripped(other));
    disk.reboot();
    EXPECT_TRUE(disk.open()->tripped(one)) << "and stays tripped over further boots that nothing is written in";
}

TEST(TheBreakerStore, IsClearedForGoodAndOnlyOnce)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->trip(one, "fell off"));
    auto store = disk.open();
    EXPECT_EQ(store->clear(other).error().kind, RefusalKind::absent);
    EXPECT_TRUE(store->clear(one));
    EXPECT_FALSE(store->tripped(one));
    EXPECT_EQ(store->clear(one).error().kind, RefusalKind::absent);
    disk.reboot();
    EXPECT_FALSE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, DoesNotTripWhenOnlyWeWereRestarted)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->begin_trial(one));
    auto store = disk.open(); // kill -9 and a new start in the same boot
    EXPECT_FALSE(store->tripped(one));
    disk.reboot();
    EXPECT_TRUE(disk.open()->tripped(one)) << "the trial of the first start still counts";
}

TEST(TheBreakerStore, DoesNotTripAfterACleanStop)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->begin_trial(one));
        ASSERT_TRUE(store->end_trials());
    }
    disk.reboot();
    EXPECT_FALSE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, KeepsADriveOnTrialThatACleanStopCouldNotPutBack)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->begin_trial(one));
        ASSERT_TRUE(store->begin_trial(other));
        ASSERT_TRUE(store->end_trials(std::vector{other}));
    }
    disk.reboot();
    auto store = disk.open();
    EXPECT_FALSE(store->tripped(one));
    EXPECT_TRUE(store->tripped(other));
}

TEST(TheBreakerStore, EndsTheTrialOfADriveThatALaterRestorePutBack)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->begin_trial(one));
        ASSERT_TRUE(store->end_trials(std::vector{one}));
    }
    ASSERT_TRUE(disk.open()->end_trials()); // --restore, in the same boot
    disk.reboot();
    EXPECT_FALSE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, WritesNothingWhereNoTrialEnds)
{
    Disk disk;
    auto store = disk.open();
    ASSERT_TRUE(store->begin_trial(one));
    ASSERT_TRUE(store->end_trials());
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->end_trials()) << "a full disk does not matter to it";
}

TEST(TheBreakerStore, BeginsAnewAfterACleanStopInTheSameBoot)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->begin_trial(one));
        ASSERT_TRUE(store->end_trials());
    }
    ASSERT_TRUE(disk.open()->begin_trial(one));
    EXPECT_EQ(disk.record().trials.size(), 1U);
    disk.reboot();
    EXPECT_TRUE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, KeepsATripWithItsReason)
{
    Disk disk;
    {
        auto store = disk.open();
        ASSERT_TRUE(store->trip(one, "three drop-outs"));
        ASSERT_TRUE(store->trip(one, "a fourth"));
        EXPECT_EQ(store->tripped(one), "three drop-outs");
        ASSERT_TRUE(store->end_trials());
    }
    EXPECT_EQ(disk.open()->tripped(one), "three drop-outs");
}

TEST(TheBreakerStore, KeepsEverythingBackWhileItsRecordCannotBeRead)
{
    Disk disk;
    disk.root.write("state/breaker.json", "{\"schema\": 1, \"trials\"");
    auto store = disk.open();
    ASSERT_TRUE(disk.complaint);
    EXPECT_NE(disk.complaint->text().find("no drive is let into deeper sleep than at boot"), std::string::npos);
    EXPECT_TRUE(store->tripped(one));
    EXPECT_TRUE(store->tripped(other));
    static_cast<void>(store->trip(one, "x"));
    static_cast<void>(store->begin_trial(one));
    static_cast<void>(store->end_trials());
    EXPECT_EQ(disk.root.read("state/breaker.json"), "{\"schema\": 1, \"trials\"") << "it is evidence";
}

TEST(TheBreakerStore, KeepsEverythingBackWhileItCannotTellBootsApart)
{
    Disk disk;
    std::filesystem::create_directories(disk.run(1) + "/boot"); // neither readable nor replaceable
    auto store = disk.open();
    ASSERT_TRUE(disk.complaint);
    EXPECT_TRUE(store->tripped(one));
}

TEST(TheBreakerStore, RefusesATrialThatIsNotOnDiskAsOftenAsItIsAsked)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new"); // as good as a full or read-only disk
    EXPECT_FALSE(store->begin_trial(one));
    EXPECT_FALSE(store->begin_trial(one)) << "nothing has reached the disk since the first refusal";
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->begin_trial(one));
    EXPECT_EQ(disk.record().trials.size(), 1U);
}

TEST(TheBreakerStore, WritesATripThatCouldNotBeWrittenWhenItIsToldAgain)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_FALSE(store->trip(one, "three drop-outs"));
    EXPECT_TRUE(store->tripped(one)) << "in force all the same";
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->trip(one, "a fourth"));
    EXPECT_TRUE(disk.open()->tripped(one));
}

TEST(TheBreakerStore, WritesATripThatCouldNotBeWrittenWithTheNextWrite)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_FALSE(store->trip(one, "three drop-outs"));
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->begin_trial(other));
    EXPECT_EQ(disk.open()->tripped(one), "three drop-outs");
}

TEST(TheBreakerStore, WritesATripThatCouldNotBeWrittenWithTheStop)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_FALSE(store->trip(one, "three drop-outs"));
    EXPECT_FALSE(store->end_trials());
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->end_trials());
    EXPECT_EQ(disk.open()->tripped(one), "three drop-outs");
}

TEST(TheBreakerStore, CatchesUpWithATripAtTheNextLookAtThatDriveOrAnyOther)
{
    for (const ControllerId& looked_at : {one, other}) {
        Disk disk;
        auto store = disk.open();
        std::filesystem::create_directories(disk.state() + "/breaker.json.new");
        EXPECT_FALSE(store->trip(one, "three drop-outs"));
        EXPECT_FALSE(store->catch_up(one));
        EXPECT_TRUE(store->catch_up(other)) << "not that one's trouble";
        std::filesystem::remove(disk.state() + "/breaker.json.new");
        EXPECT_TRUE(store->catch_up(looked_at));
        EXPECT_EQ(disk.open()->tripped(one), "three drop-outs");
    }
}

TEST(TheBreakerStore, DoesNotCatchUpWithATrialSinceTheDriveDidNotGoDeeper)
{
    Disk disk;
    auto store = disk.open();
    std::filesystem::create_directories(disk.state() + "/breaker.json.new");
    EXPECT_FALSE(store->begin_trial(one));
    EXPECT_TRUE(store->catch_up(one));
    std::filesystem::remove(disk.state() + "/breaker.json.new");
    EXPECT_TRUE(store->catch_up(one));
    EXPECT_FALSE(std::filesystem::exists(disk.state() + "/breaker.json"));
}

TEST(TheBreakerStore, AppendsALineForEachTrial)
{
    Disk disk;
    auto store = disk.open();
    ASSERT_TRUE(store->begin_trial(one));
    const std::string before = disk.root.read("state/breaker.json");
    ASSERT_TRUE(store->begin_trial(other));
    EXPECT_EQ(disk.root.read("state/breaker.json"), before + format_breaker_line(disk.record(), other));
    ASSERT_TRUE(store->end_trials());
    EXPECT_TRUE(disk.record().trials.at(one).clean);
    EXPECT_TRUE(disk.record().trials.at(other).clean);
}

TEST(TheBreakerStore, GoesOnFromARecordOfSchema1)
{
    Disk disk;
    disk.root.write("state/breaker.json", schema_1);
    auto store = disk.open();
    EXPECT_FALSE(disk.complaint);
    EXPECT_TRUE(store->tripped(one)) << "its trial was of another boot";
    EXPECT_EQ(store->tripped(other), "because");
    ASSERT_TRUE(store->begin_trial({"nqn.test:third", "SERIAL3", 3, {}}));
    EXPECT_TRUE(disk.root.read("state/breaker.json").starts_with("{\"schema\":2}\n"));
    EXPECT_EQ(disk.record().trips.size(), 2U);
}

TEST(TheBreakerStore, ClearsAwayALineThatAnEarlierProcessWasInterruptedIn)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->begin_trial(one));
    disk.root.write("state/breaker.json", disk.root.read("state/breaker.json") + "{\"cntlid\":2,\"pa");
    auto store = disk.open();
    EXPECT_FALSE(disk.complaint);
    ASSERT_TRUE(store->begin_trial(other));
    EXPECT_EQ(disk.record().trials.size(), 2U);
}

TEST(TheBreakerStore, WritesAnewWhatSomebodyElseHasRemovedOrReplaced)
{
    Disk disk;
    auto store = disk.open();
    ASSERT_TRUE(store->begin_trial(one));
    std::filesystem::remove(disk.state() + "/breaker.json");
    ASSERT_TRUE(store->begin_trial(other));
    EXPECT_EQ(disk.record().trials.size(), 2U);
    disk.root.write("state/breaker.json", "nonsense");
    ASSERT_TRUE(store->trip(one, "three drop-outs"));
    EXPECT_EQ(disk.record().trials.size(), 2U);
    EXPECT_EQ(disk.record().trips.size(), 1U);
}

/// Files as they are, with a fault, and it can be told how often and how much was written.
class FaultyStorage : public Storage {
public:
    std::map<std::string, Refusal> unreadable; ///< by the end of the path
    bool full = false;
    bool sync_fails = false;
    std::atomic<int> syncs = 0;
    std::function<void()> while_syncing;

    [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t largest) override
    {
        for (const auto& [end, refusal] : unreadable)
            if (path.ends_with(end))
                return refusal;
        return file_storage().read(path, largest);
    }
    [[nodiscard]] Result<void> replace(const std::string& path, std::string_view text) override
    {
        return full ? no_space(path) : file_storage().replace(path, text);
    }
    [[nodiscard]] Result<std::unique_ptr<AppendOnlyFile>> begin(const std::string& path, std::string_view text) override
    {
        if (full)
            return no_space(path).error();
        auto begun = file_storage().begin(path, text);
        if (!begun)
            return begun.error();
        return std::unique_ptr<AppendOnlyFile>(std::make_unique<File>(*this, *std::move(begun)));
    }
    [[nodiscard]] Result<void> remove(const std::string& path) override { return file_storage().remove(path); }
    [[nodiscard]] Result<void> make_directory(const std::string& path) override { return file_storage().make_directory(path); }

private:
    class File : public AppendOnlyFile {
    public:
        File(FaultyStorage& storage, std::unique_ptr<AppendOnlyFile> behind) : storage_(storage), behind_(std::move(behind)) {}
        [[nodiscard]] Result<void> append(std::string_view text) override { return behind_->append(text); }
        [[nodiscard]] Result<void> sync() override
        {
            ++storage_.syncs;
            if (storage_.while_syncing)
                storage_.while_syncing();
            return storage_.sync_fails ? Result<void>(Refusal{"x", "", "input/output error", RefusalKind::try_later})
                                       : behind_->sync();
        }

    private:
        FaultyStorage& storage_;
        std::unique_ptr<AppendOnlyFile> behind_;
    };
    static Result<void> no_space(const std::string& path) { return Refusal{path, "", "no space left", RefusalKind::try_later}; }
};

TEST(TheBreakerStore, IsWrittenAnewAfterASyncThatFailed)
{
    Disk disk;
    FaultyStorage storage;
    const auto store = BreakerStore::open(disk.state(), disk.run(1), disk.complaint, storage);
    ASSERT_TRUE(store->begin_trial(one));
    const auto inode = [&disk] {
        struct stat status {};
        EXPECT_EQ(::stat((disk.state() + "/breaker.json").c_str(), &status), 0);
        return status.st_ino;
    };
    const auto before = inode();
    storage.sync_fails = true;
    EXPECT_FALSE(store->begin_trial(other));
    storage.sync_fails = false;
    EXPECT_TRUE(store->begin_trial(other));
    EXPECT_NE(inode(), before) << "the kernel does not try again what it could not write once";
    EXPECT_EQ(disk.record().trials.size(), 2U);
}

TEST(TheBreakerStore, SharesOneWriteAmongAllThatWait)
{
    Disk disk;
    FaultyStorage storage;
    const auto store = BreakerStore::open(disk.state(), disk.run(1), disk.complaint, storage);
    ASSERT_TRUE(store->begin_trial(one));
    constexpr std::uint16_t drives = 24;
    std::atomic<int> returned = 0;
    std::atomic<int> not_on_disk = 0;
    std::vector<std::jthread> looks;
    storage.while_syncing = [&] { // The first one's write takes until the others are there, and any that only asks is answered.
        if (storage.syncs > 1)
            return;
        EXPECT_EQ(store->tripped(other), std::nullopt);
        EXPECT_EQ(returned, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    };
    for (std::uint16_t i = 1; i <= drives; ++i)
        looks.emplace_back([&, i] {
            const ControllerId id{"nqn.test:many", "SERIAL", i, {}};
            EXPECT_TRUE(store->begin_trial(id));
            ++returned;
            const auto record =
                parse_breaker("x", *file_storage().read(disk.state() + "/breaker.json", largest_breaker_record));
            if (!record || !record->trials.contains(id))
                ++not_on_disk;
        });
    looks.clear();
    EXPECT_EQ(not_on_disk, 0);
    EXPECT_LE(storage.syncs, 4) << "one, and one for those that came meanwhile; a few more on a slow machine";
    EXPECT_EQ(disk.record().trials.size(), drives + 1U);
}

TEST(TheBreakerStore, CannotTellBootsApartOnAFullRunAndTriesAgain)
{
    Disk disk;
    FaultyStorage storage;
    ASSERT_TRUE(disk.open()->trip(other, "three drop-outs"));
    disk.reboot();
    storage.full = true;
    const auto store = BreakerStore::open(disk.state(), disk.run(2), disk.complaint, storage);
    ASSERT_TRUE(disk.complaint);
    store->recover();
    EXPECT_TRUE(store->tripped(one)) << "still full";
    EXPECT_FALSE(store->begin_trial(one));
    EXPECT_EQ(store->catch_up(one).error().kind, RefusalKind::try_later) << "another look is worth it";
    ASSERT_TRUE(store->trip(one, "four drop-outs"));
    storage.full = false;
    store->recover();
    EXPECT_EQ(store->tripped(other), "three drop-outs");
    EXPECT_EQ(store->tripped(one), "four drop-outs") << "what happened meanwhile is not forgotten";
    EXPECT_TRUE(store->catch_up(other));
    EXPECT_EQ(disk.record().trips.size(), 2U);
}

TEST(TheBreakerStore, DoesNotTakeATokenThatItCannotReadForAnotherBoot)
{
    for (const RefusalKind kind : {RefusalKind::try_later, RefusalKind::denied, RefusalKind::failed, RefusalKind::invalid}) {
        Disk disk;
        ASSERT_TRUE(disk.open()->begin_trial(one));
        FaultyStorage storage;
        storage.unreadable.emplace("/boot", Refusal{"/run/nvmepolicyd/boot", "", "input/output error", kind});
        const auto store = BreakerStore::open(disk.state(), disk.run(1), disk.complaint, storage);
        ASSERT_TRUE(disk.complaint);
        EXPECT_TRUE(store->tripped(one)) << "kept back, but only until it can be read";
        storage.unreadable.clear();
        store->recover();
        EXPECT_EQ(store->tripped(one), std::nullopt) << "it is the same boot";
        EXPECT_TRUE(disk.record().trips.empty());
    }
}

TEST(TheBreakerStore, DoesNotTakeAnEmptyTokenForAnotherBoot)
{
    Disk disk;
    ASSERT_TRUE(disk.open()->begin_trial(one));
    disk.root.write("run1/boot", "");
    static_cast<void>(disk.open());
    ASSERT_TRUE(disk.complaint);
    EXPECT_NE(disk.complaint->text().find("run1/boot: is empty"), std::string::npos) << disk.complaint->text();
    EXPECT_TRUE(disk.record().trips.empty());
}

TEST(TheBreakerStore, DoesNotAskForLooksWhileItsRecordIsDamaged)
{
    Disk disk;
    disk.root.write("state/breaker.json", "nonsense");
    auto store = disk.open();
    EXPECT_TRUE(store->catch_up(one)) << "that does not pass by itself";
    disk.root.write("state/breaker.json", schema_1);
    store->recover();
    EXPECT_EQ(store->tripped(other), "because") << "but any look finds it mended";
}

TEST(TheBreakerStore, InMemoryNeedsNoDisk)
{
    BreakerStore store;
    EXPECT_TRUE(store.begin_trial(one));
    EXPECT_TRUE(store.trip(one, "x"));
    EXPECT_TRUE(store.tripped(one));
    EXPECT_TRUE(store.end_trials());
}

} // namespace
} // namespace nvmepolicy
