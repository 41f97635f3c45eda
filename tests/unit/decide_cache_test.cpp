// SPDX-License-Identifier: LGPL-2.1-or-later
// The safety rules of the write cache: each row of the truth table, and each rule that speaks against write through.
#include "cache_case.h"

namespace nvmepolicy {
namespace {

const Refusal timed_out{"nvme0: Get Features 06h", "", "no answer within 5 s", RefusalKind::timed_out};

WriteCacheFeature wce(bool now, std::optional<bool> by_default)
{
    return {now, by_default, std::nullopt, false, false, true};
}

WriteCacheFeature saveable_wce(bool now, std::optional<bool> by_default, std::optional<bool> saved)
{
    return {now, by_default, saved, true, false, true};
}

// The truth table.

TEST(ADriveWithoutACache, IsNotOursToWrite)
{
    // The kernel itself writes through: VWC 06h is "no cache, and no broadcast flush".
    for (const std::uint8_t vwc : std::initializer_list<std::uint8_t>{0x00, 0x06}) {
        CacheCase c;
        c.identify(vwc, 0x5f).mode(write_through, false);
        c.controller.write_cache = std::optional<WriteCacheFeature>{};
        EXPECT_EQ(c.rule(), CacheRule::no_cache);
        EXPECT_FALSE(c.decide().unsafe());
        EXPECT_EQ(c.planned(), "");
    }
    CacheCase c;
    EXPECT_EQ(c.identify(0x06, 0x5f).reason(), "the drive has no volatile write cache (VWC 0x06)");
}

TEST(ADriveWithoutACache, IsLeftAsItIsWhateverItsQueueReads)
{
    for (const char* mode : {write_back, write_through})
        for (const std::optional<bool> fua : {std::optional(true), std::optional(false), std::optional<bool>{}}) {
            CacheCase c;
            c.identify(0, 0x5f).mode(mode, fua);
            EXPECT_EQ(c.rule(), CacheRule::no_cache);
            EXPECT_FALSE(c.leaf_decision().unsafe);
            EXPECT_EQ(c.planned(), "");
        }
}

TEST(ACacheThatIsEnabled, NeedsItsFlushes)
{
    CacheCase c;
    c.feature(wce(true, true));
    EXPECT_EQ(c.rule(), CacheRule::enabled);
    EXPECT_EQ(c.reason(), "the cache is enabled (WCE 1), so what was not flushed is lost with the power");
    EXPECT_EQ(c.decide().reason, "the cache is enabled (WCE 1)");
    EXPECT_EQ(c.planned(), "");
    c.mode(write_through);
    EXPECT_TRUE(c.leaf_decision().unsafe);
    EXPECT_TRUE(c.decide().unsafe());
    EXPECT_EQ(c.planned(), "write back");
}

TEST(ACacheThatIsEnabled, IsEnabledThoughTheDefaultIsOff)
{
    CacheCase c;
    EXPECT_EQ(c.feature(wce(true, false)).rule(), CacheRule::enabled);
    EXPECT_EQ(c.feature(saveable_wce(true, false, false)).rule(), CacheRule::enabled);
}

TEST(ACacheThatIsEnabled, NeedsItsFlushesWhateverTheAdministratorTrusts)
{
    CacheCase c;
    c.feature(wce(true, false));
    c.policy.trust_current.value = c.policy.allow_stacked.value = c.policy.shared.value = true;
    EXPECT_EQ(c.rule(), CacheRule::enabled);
    EXPECT_EQ(c.planned(), "");
}

TEST(ACacheThatIsDisabled, IsWrittenThroughWhereAResetKeepsItSo)
{
    CacheCase c;
    EXPECT_EQ(c.rule(), CacheRule::disabled);
    EXPECT_EQ(c.reason(), "the cache is disabled (WCE 0), and the default WCE, which a reset brings, is 0");
    EXPECT_EQ(c.decide().reason, "the cache is disabled (WCE 0), and the default WCE, which a reset brings, is 0");
    EXPECT_EQ(c.planned(), "write through");
    c.feature(saveable_wce(false, true, false));
    EXPECT_EQ(c.rule(), CacheRule::disabled);
    EXPECT_EQ(c.reason(), "the cache is disabled (WCE 0), and the saved WCE, which a reset brings, is 0");
}

TEST(ACacheThatIsDisabled, ComesBackWithTheDefaultWhereItCannotBeSaved)
{
    CacheCase c;
    c.feature(wce(false, true));
    EXPECT_EQ(c.rule(), CacheRule::lost_by_reset);
    EXPECT_EQ(c.reason(), "the cache is disabled (WCE 0), but the default WCE, which a reset brings, is 1");
    EXPECT_EQ(c.planned(), "");
    EXPECT_EQ(c.mode(write_through).planned(), "write back");
    EXPECT_FALSE(c.decide().unsafe()) << "not before the reset";
}

TEST(ACacheThatIsDisabled, ComesBackWithWhatIsSavedWhateverTheDefault)
{
    CacheCase c;
    c.feature(saveable_wce(false, false, true));
    EXPECT_EQ(c.rule(), CacheRule::lost_by_reset);
    EXPECT_EQ(c.reason(), "the cache is disabled (WCE 0), but the saved WCE, which a reset brings, is 1");
}

TEST(ACacheThatIsDisabled, MightComeBackWhereThatCouldNotBeRead)
{
    CacheCase c;
    EXPECT_EQ(c.feature(wce(false, std::nullopt)).rule(), CacheRule::lost_by_reset);
    EXPECT_EQ(c.reason(), "the cache is disabled (WCE 0), but the default WCE, which a reset brings, could not be read");
    EXPECT_EQ(c.feature(saveable_wce(false, false, std::nullopt)).rule(), CacheRule::lost_by_reset);
    EXPECT_EQ(c.reason(), "the cache is disabled (WCE 0), but the saved WCE, which a reset brings, could not be read");
}

TEST(ACacheThatIsDisabled, MightComeBackWhereTheDriveKnowsNoSelect)
{
    // ONCS bit 4. Whatever was read all the same is not what was asked.
    CacheCase c;
    c.identify(5, 0x4f).feature(saveable_wce(false, false, false));
    EXPECT_EQ(c.rule(), CacheRule::lost_by_reset);
    EXPECT_EQ(c.reason(), "the cache is disabled (WCE 0), but what a reset brings is unknown, since the drive tells no default "
                          "and saved values (ONCS 0x004f)");
}

TEST(TrustCurrent, TakesTheRiskOfAReset)
{
    CacheCase c;
    c.policy.trust_current.value = true;
    EXPECT_EQ(c.rule(), CacheRule::disabled) << "nothing to trust";
    c.feature(wce(false, true));
    EXPECT_EQ(c.rule(), CacheRule::trusted);
    EXPECT_EQ(c.reason(), "the cache is disabled (WCE 0); the default WCE, which a reset brings, is 1, a risk that "
                          "trust_current = true takes");
    EXPECT_EQ(c.planned(), "write through");
    EXPECT_EQ(c.feature(wce(false, std::nullopt)).rule(), CacheRule::trusted);
    EXPECT_EQ(c.identify(5, 0).rule(), CacheRule::trusted);
}

// What is not known.

TEST(AControllerThatIsNotLive, IsWrittenBack)
{
    for (const ControllerState state : {ControllerState::created, ControllerState::resetting, ControllerState::connecting,
                                        ControllerState::deleting, ControllerState::dead, ControllerState::unknown}) {
        CacheCase c; // S3: with all that was true before the reset.
        c.controller.state = state;
        EXPECT_EQ(c.rule(), CacheRule::not_live) << show(state);
        EXPECT_EQ(c.planned(), "");
        c.mode(write_through);
        EXPECT_TRUE(c.leaf_decision().unsafe) << show(state);
        EXPECT_EQ(c.planned(), "write back");
        c.identify(0, 0);
        EXPECT_EQ(c.rule(), CacheRule::not_live) << "no cache, but that was before";
    }
    CacheCase c;
    c.controller.state = ControllerState::connecting;
    EXPECT_EQ(c.reason(), "the controller is connecting, not live");
}

TEST(AControllerThatIsNotLive, IsNotUnsafeWhereTheKernelFoundNoCache)
{
    CacheCase c;
    c.controller.state = ControllerState::resetting;
    c.mode(write_through, false);
    EXPECT_FALSE(c.decide().unsafe());
    EXPECT_EQ(c.planned(), "");
}

TEST(AnIdentifyThatCouldNotBeRead, MeansWriteBack)
{
    CacheCase c;
    c.controller.identify = timed_out;
    c.mode(write_through);
    EXPECT_EQ(c.rule(), CacheRule::unread);
    EXPECT_EQ(c.reason(), "nvme0: Get Features 06h: no answer within 5 s");
    EXPECT_TRUE(c.leaf_decision().unsafe);
    EXPECT_EQ(c.planned(), "write back");
}

TEST(AFeatureThatCouldNotBeRead, MeansWriteBack)
{
    CacheCase c;
    c.controller.write_cache = timed_out;
    EXPECT_EQ(c.rule(), CacheRule::unread);
    EXPECT_EQ(c.planned(), "");
    c.mode(write_through);
    EXPECT_TRUE(c.leaf_decision().unsafe);
    EXPECT_EQ(c.planned(), "write back");
}

TEST(AFeatureThatWasNotAsked, MeansWriteBack)
{
    CacheCase c;
    c.controller.write_cache = std::optional<WriteCacheFeature>{};
    EXPECT_EQ(c.rule(), CacheRule::unread);
    EXPECT_EQ(c.reason(), "the drive was not asked for feature 06h");
    EXPECT_TRUE(c.mode(write_through).leaf_decision().unsafe);
}

TEST(AFeatureOfEachNamespace, MeansWriteBack)
{
    CacheCase c;
    c.feature({false, false, std::nullopt, false, true, true});
    EXPECT_EQ(c.rule(), CacheRule::unread);
    EXPECT_EQ(c.reason(), "each namespace has a feature 06h of its own, so the controller's says little");
    EXPECT_TRUE(c.mode(write_through).leaf_decision().unsafe);
}

TEST(AFeatureThatCannotBeChanged, IsAsGoodAsAnyOther)
{
    CacheCase c;
    c.feature({false, false, std::nullopt, false, false, false});
    EXPECT_EQ(c.rule(), CacheRule::disabled);
    c.feature({false, false, std::nullopt, false, false, std::nullopt});
    EXPECT_EQ(c.rule(), CacheRule::disabled);
}

TEST(AQueueThatCouldNotBeRead, IsNotWritten)
{
    CacheCase c;
    c.leaf().cache_mode = Refusal{"nvme0n1/queue/write_cache", "", "no answer within 5 s", RefusalKind::timed_out};
    EXPECT_EQ(c.rule(), CacheRule::unread);
    EXPECT_EQ(c.reason(), "nvme0n1/queue/write_cache: no answer within 5 s");
    EXPECT_EQ(c.planned(), "");
    c.feature(wce(true, true));
    EXPECT_EQ(c.planned(), "");
}

TEST(AQueueThatReadsAnythingElse, IsNotWritten)
{
    CacheCase c;
    EXPECT_EQ(c.mode("write backup").rule(), CacheRule::unread);
    EXPECT_EQ(c.reason(), "its cache mode reads \"write backup\", which is neither of the two that are known");
    EXPECT_EQ(c.planned(), "");
}

TEST(AQueueWhoseFuaCouldNotBeRead, IsWrittenBackAndNeverThrough)
{
    CacheCase c;
    EXPECT_EQ(c.mode(write_back, std::nullopt).rule(), CacheRule::unread);
    EXPECT_EQ(c.planned(), "");
    EXPECT_EQ(c.mode(write_through, std::nullopt).rule(), CacheRule::unread);
    EXPECT_FALSE(c.decide().unsafe()) << "the cache is off";
    EXPECT_EQ(c.planned(), "write back");
    EXPECT_TRUE(c.feature(wce(true, true)).decide().unsafe());
    EXPECT_EQ(c.planned(), "write back");
}

TEST(AQueueWithoutFua, IsNotWrittenThrough)
{
    // With that a later look would take what we wrote for what the kernel found.
    CacheCase c;
    EXPECT_EQ(c.mode(write_back, false).rule(), CacheRule::unread);
    EXPECT_EQ(c.reason(), "it has no FUA, so later nobody could tell who has written the cache mode");
    EXPECT_EQ(c.planned(), "");
}

TEST(ADiskWithoutAName, IsNotWritten)
{
    CacheCase c;
    c.leaf().name.clear();
    EXPECT_EQ(c.rule(), CacheRule::unread);
    EXPECT_EQ(c.planned(), "");
}

// S10

TEST(AKernelThatHonoursWce, IsLeftAlone)
{
    CacheCase c;
    c.mode(write_through, false);
    EXPECT_EQ(c.rule(), CacheRule::by_kernel);
    EXPECT_EQ(c.reason(), "handled by the kernel, which has found the cache disabled (WCE 0)");
    EXPECT_FALSE(c.decide().unsafe());
    EXPECT_EQ(c.planned(), "");
    EXPECT_EQ(c.feature(wce(false, true)).rule(), CacheRule::by_kernel) << "it looks again after a reset";
    c.detection = {};
    EXPECT_EQ(c.rule(), CacheRule::by_kernel);
}

TEST(AKernelThatHonoursWce, HasNotNoticedThatTheCacheIsEnabled)
{
    // Writing would not help; it is no longer "handled".
    CacheCase c;
    c.mode(write_through, false).feature(wce(true, false));
    EXPECT_EQ(c.rule(), CacheRule::enabled);
    EXPECT_EQ(c.planned(), "");
}

// S7

TEST(AFailedBackup, MeansWriteBack)
{
    CacheCase c;
    c.controller.critical_warning = std::uint8_t{0x10};
    EXPECT_EQ(c.rule(), CacheRule::backup_failed);
    EXPECT_EQ(c.reason(), "SMART critical warning 0x10: the backup of the drive's volatile memory has failed");
    EXPECT_EQ(c.mode(write_through).planned(), "write back");
    c.controller.critical_warning = std::uint8_t{0xff};
    EXPECT_EQ(c.rule(), CacheRule::backup_failed);
    c.policy.trust_current.value = c.policy.allow_stacked.value = c.policy.shared.value = true;
    EXPECT_EQ(c.rule(), CacheRule::backup_failed);
}

TEST(AWarningAboutSomethingElse, DoesNotMatter)
{
    CacheCase c;
    for (const std::uint8_t bit : std::initializer_list<std::uint8_t>{0x01, 0x02, 0x04, 0x08, 0x20}) {
        c.controller.critical_warning = bit;
        EXPECT_EQ(c.rule(), CacheRule::disabled) << static_cast<int>(bit);
    }
    c.controller.critical_warning = std::uint8_t{0xef};
    EXPECT_EQ(c.rule(), CacheRule::disabled);
}

TEST(AWarningThatCouldNotBeRead, IsAsBadAsTheWorst)
{
    CacheCase c;
    c.controller.critical_warning = Refusal{"nvme0: Get Log Page 02h", "", "no answer within 5 s", RefusalKind::timed_out};
    EXPECT_EQ(c.rule(), CacheRule::backup_failed);
    EXPECT_EQ(c.reason(), "no critical warning could be read: nvme0: Get Log Page 02h: no answer within 5 s");
}

// S11

CacheCase shared_case()
{
    CacheCase c;
    c.shared_with({2, 5});
    c.policy.shared.value = true;
    c.peers = {{5, std::optional{wce(false, false)}}, {2, std::optional{saveable_wce(false, true, false)}}};
    return c;
}

TEST(ASharedNamespace, StaysWriteBack)
{
    CacheCase c = shared_case();
    c.policy.shared.value = false;
    EXPECT_EQ(c.rule(), CacheRule::shared);
    EXPECT_EQ(c.reason(), "controllers 2, 5 of the subsystem have this namespace too, and write_cache.shared is false");
    EXPECT_EQ(c.mode(write_through).planned(), "write back");
    EXPECT_EQ(c.shared_with({2}).reason(),
              "controller 2 of the subsystem has this namespace too, and write_cache.shared is false");
}

TEST(ASharedNamespace, IsWrittenThroughWhereThatIsAllowedAndEveryControllerReads0And0)
{
    CacheCase c = shared_case();
    EXPECT_EQ(c.rule(), CacheRule::disabled);
    EXPECT_EQ(c.planned(), "write through");
    c.leaf().path = true;
    EXPECT_EQ(c.rule(), CacheRule::disabled);
}

TEST(ASharedNamespace, StaysWriteBackWhereAControllerIsMissing)
{
    CacheCase c = shared_case();
    c.peers.pop_back();
    EXPECT_EQ(c.rule(), CacheRule::shared);
    EXPECT_EQ(c.reason(),
              "controllers 2, 5 of the subsystem have this namespace too, and controller 2 is not reached from here");
    c.peers.clear();
    EXPECT_EQ(c.rule(), CacheRule::shared);
}

TEST(ASharedNamespace, StaysWriteBackWhereOneControllerSaysAnythingElse)
{
    const std::vector<Result<std::optional<WriteCacheFeature>>> answers{
        timed_out,
        std::optional<WriteCacheFeature>{},
        std::optional{wce(true, false)},
        std::optional{wce(false, true)},
        std::optional{wce(false, std::nullopt)},
        std::optional{saveable_wce(false, false, true)},
        std::optional{saveable_wce(false, false, std::nullopt)},
        std::optional{WriteCacheFeature{false, false, std::nullopt, false, true, true}},
    };
    for (std::size_t which : {0U, 1U})
        for (const auto& answer : answers) {
            CacheCase c = shared_case();
            c.policy.trust_current.value = true;
            c.peers[which].write_cache = answer;
            EXPECT_EQ(c.rule(), CacheRule::shared) << c.reason();
        }
    CacheCase c = shared_case();
    c.peers[0].write_cache = std::optional{wce(true, false)};
    EXPECT_EQ(c.reason(), "controllers 2, 5 of the subsystem have this namespace too, and the cache of controller 5 is enabled "
                          "(WCE 1)");
}

TEST(ASharedNamespace, StaysWriteBackWhereOneOfTwoWithTheSameNumberSaysAnythingElse)
{
    CacheCase c = shared_case();
    c.peers.push_back({2, std::optional{wce(true, true)}});
    EXPECT_EQ(c.rule(), CacheRule::shared);
}

TEST(ASharedNamespace, DoesNotCareForControllersThatDoNotHaveIt)
{
    CacheCase c = shared_case();
    c.peers.push_back({9, std::optional{wce(true, true)}});
    EXPECT_EQ(c.rule(), CacheRule::disabled);
}

TEST(ASharedNamespace, StaysWriteBackWhereAResetBringsTheOwnCacheBackWhateverIsTrusted)
{
    CacheCase c = shared_case();
    c.policy.trust_current.value = true;
    for (const std::optional<bool> by_default : {std::optional(true), std::optional<bool>{}}) {
        c.feature(wce(false, by_default));
        EXPECT_EQ(c.rule(), CacheRule::shared);
    }
    EXPECT_EQ(c.shared_with({}).rule(), CacheRule::trusted);
}

TEST(ANamespaceOfWhichNobodyKnowsWhoHasIt, StaysWriteBack)
{
    CacheCase c;
    c.policy.shared.value = true;
    c.leaf().shared_with = Refusal{"nvme0: Identify 12h", "4002h", "the drive does not know the request"};
    EXPECT_EQ(c.rule(), CacheRule::shared);
    EXPECT_EQ(c.reason(), "which controllers have this namespace could not be read: nvme0: Identify 12h: \"4002h\": the drive "
                          "does not know the request");
    c.leaf().shared_with = Refusal{};
    EXPECT_EQ(c.rule(), CacheRule::shared);
}

// S9

TEST(ADeviceMapper, ThatSamplesTheModeMeansWriteBack)
{
    CacheCase c;
    c.layer({"dm-0", write_back, "", ""});
    EXPECT_EQ(c.rule(), CacheRule::stacked);
    EXPECT_EQ(c.reason(), "dm-0 takes over the cache mode when its table is loaded and does not look again");
    EXPECT_EQ(c.mode(write_through).planned(), "write back");
    EXPECT_TRUE(c.leaf_decision().deaf_layers.empty());
}

TEST(ADeviceMapper, OfALaterKernelDoesNotMatter)
{
    CacheCase c;
    c.machine.dm_samples_cache_mode = false;
    c.layer({"dm-0", write_back, "", ""});
    EXPECT_EQ(c.rule(), CacheRule::disabled);
    c.layer({"dm-11", write_back, "", ""});
    EXPECT_EQ(c.rule(), CacheRule::disabled);
}

TEST(ADeviceMapper, ThatReadsWriteThroughIsDeaf)
{
    CacheCase c;
    c.machine.dm_samples_cache_mode = false;
    c.layer({"dm-0", write_through, "", ""});
    EXPECT_EQ(c.rule(), CacheRule::stacked);
    EXPECT_EQ(c.reason(), "dm-0 reads write through and does not look again");
    EXPECT_EQ(c.leaf_decision().deaf_layers, std::vector<std::string>{"dm-0"});
    EXPECT_FALSE(c.decide().unsafe()) << "the cache is off";
    c.feature(wce(true, false));
    EXPECT_EQ(c.leaf_decision().deaf_layers, std::vector<std::string>{"dm-0"});
    EXPECT_TRUE(c.decide().unsafe()) << "it suppresses flushes, though the leaf does not";
    EXPECT_FALSE(c.leaf_decision().unsafe);
    EXPECT_EQ(c.planned(), "");
    c.controller.write_cache = timed_out;
    EXPECT_TRUE(c.decide().unsafe()) << "the cache might be on";
}

TEST(ADeviceMapper, OverADriveWithoutACacheIsNotDeaf)
{
    CacheCase c;
    c.identify(0, 0x5f).mode(write_through, false).layer({"dm-0", write_through, "", ""});
    EXPECT_TRUE(c.leaf_decision().deaf_layers.empty());
    EXPECT_FALSE(c.decide().unsafe());
}

TEST(ADeviceMapper, HigherUpIsDeafToo)
{
    CacheCase c;
    c.machine.dm_samples_cache_mode = false;
    c.layer({"md127", write_back, "raid1", "resync"});
    c.leaf().layers.push_back({"dm-3", write_through, "", ""});
    EXPECT_EQ(c.rule(), CacheRule::stacked);
    EXPECT_EQ(c.leaf_decision().deaf_layers, std::vector<std::string>{"dm-3"});
}

TEST(ALayerWhoseModeCouldNotBeRead, MeansWriteBack)
{
    CacheCase c;
    c.machine.dm_samples_cache_mode = false;
    c.layer({"dm-0", "", "", ""});
    EXPECT_EQ(c.rule(), CacheRule::stacked);
    EXPECT_EQ(c.reason(), "the cache mode of dm-0 could not be read");
    CacheCase raid;
    EXPECT_EQ(raid.layer({"md127", "", "raid1", "resync"}).rule(), CacheRule::stacked);
}

TEST(AnArray, ThatPassesFlushesOnDoesNotMatter)
{
    for (const char* level : {"raid0", "raid1", "raid10", "linear"})
        for (const char* consistency : {"", "none", "resync", "bitmap", "unknown"}) {
            CacheCase c;
            EXPECT_EQ(c.layer({"md127", write_back, level, consistency}).rule(), CacheRule::disabled) << level << consistency;
        }
    for (const char* level : {"raid4", "raid5", "raid6"})
        for (const char* consistency : {"resync", "bitmap"}) {
            CacheCase c;
            EXPECT_EQ(c.layer({"md_d0", write_back, level, consistency}).rule(), CacheRule::disabled) << level << consistency;
        }
}

TEST(AnArray, WithAJournalOrAPartialParityLogMeansWriteBack)
{
    for (const char* level : {"raid4", "raid5", "raid6"})
        for (const char* consistency : {"journal", "ppl", "unknown", ""}) {
            CacheCase c;
            EXPECT_EQ(c.layer({"md127", write_back, level, consistency}).rule(), CacheRule::stacked) << level << consistency;
        }
    CacheCase c;
    EXPECT_EQ(c.layer({"md127", write_back, "raid5", "ppl"}).reason(),
              "md127 (raid5, consistency policy ppl) is not known to pass on every flush");
}

TEST(AnArray, OfAnUnknownLevelMeansWriteBack)
{
    for (const char* level : {"faulty", "multipath", "container", "raid50", ""}) {
        CacheCase c;
        EXPECT_EQ(c.layer({"md127", write_back, level, "resync"}).rule(), CacheRule::stacked) << level;
    }
}

TEST(ALayerOfAnotherKind, MeansWriteBack)
{
    for (const char* name : {"bcache0", "drbd1", "zram0", "nvme0n1p1", "d", ""}) {
        CacheCase c;
        EXPECT_EQ(c.layer({name, write_back, "", ""}).rule(), CacheRule::stacked) << name;
        CacheCase disguised;
        EXPECT_EQ(disguised.layer({name, write_back, "raid1", "resync"}).rule(), CacheRule::stacked) << name;
    }
    CacheCase c;
    EXPECT_EQ(c.layer({"bcache0", write_back, "", ""}).reason(),
              "bcache0 is not of a kind that is known to pass on every flush");
}

TEST(OneBadLayer, AmongGoodOnesIsEnough)
{
    CacheCase c;
    c.layer({"md127", write_back, "raid1", "resync"}).layer({"bcache0", write_back, "", ""});
    c.layer({"md126", write_back, "raid0", ""});
    EXPECT_EQ(c.rule(), CacheRule::stacked);
}

TEST(AHolderOfWhichNothingIsKnown, MeansWriteBack)
{
    CacheCase c;
    c.machine.dm_samples_cache_mode = false;
    c.leaf().holders = {"dm-0"};
    EXPECT_EQ(c.rule(), CacheRule::stacked);
    EXPECT_EQ(c.reason(), "nothing could be read of dm-0, which is on it");
}

TEST(AnExport, MeansWriteBack)
{
    for (const char* name : {"iblock_0/disk", "rnbd nvme0n1", "xen vbd-1-51712"}) {
        CacheCase c;
        c.leaf().exports = {name};
        EXPECT_EQ(c.rule(), CacheRule::stacked) << name;
    }
    CacheCase c;
    c.leaf().exports = {"iblock_0/disk"};
    EXPECT_EQ(c.reason(), "it is handed out to others by iblock_0/disk, which look at the cache mode only once");
}

TEST(AllowStacked, TakesTheRiskOfEveryLayer)
{
    CacheCase c;
    c.layer({"dm-0", write_through, "", ""}).layer({"bcache0", "", "", ""});
    c.leaf().holders.push_back("dm-7");
    c.leaf().exports = {"iblock_0/disk"};
    c.policy.allow_stacked.value = true;
    EXPECT_EQ(c.rule(), CacheRule::disabled);
    EXPECT_EQ(c.leaf_decision().deaf_layers, std::vector<std::string>{"dm-0"});
    EXPECT_EQ(c.planned(), "write through");
}

// S5

TEST(ADriveThatNobodyWatches, StaysWriteBack)
{
    CacheCase c;
    c.detection = {CacheDetection::Method::none, "there is no tracefs"};
    EXPECT_EQ(c.rule(), CacheRule::unwatched);
    EXPECT_EQ(c.reason(), "nobody would notice when the cache is enabled again: there is no tracefs");
    EXPECT_EQ(c.mode(write_through).planned(), "write back");
    c.detection = {};
    EXPECT_EQ(c.reason(), "nobody would notice when the cache is enabled again: nobody watches feature 06h");
}

TEST(Polling, IsEnoughOnlyWhereTheAdministratorSaysSo)
{
    CacheCase c;
    c.detection = {CacheDetection::Method::poll, {}};
    EXPECT_EQ(c.rule(), CacheRule::unwatched);
    EXPECT_EQ(c.reason(),
              "nobody would notice when the cache is enabled again: polling is all there is, and watch is not \"poll\"");
    c.policy.watch.value = CacheWatch::poll;
    EXPECT_EQ(c.rule(), CacheRule::disabled);
    EXPECT_EQ(c.planned(), "write through");
}

TEST(TheTrace, IsEnoughWhereverItWorks)
{
    CacheCase c;
    c.policy.watch.value = CacheWatch::poll;
    EXPECT_EQ(c.rule(), CacheRule::disabled);
}

// The plan.

TEST(APlan, SaysWhatItDoesAndWhy)
{
    CacheCase c;
    EXPECT_EQ(
        c.plan(),
        (std::vector{CacheModeChange{c.controller.id, "nvme0", "nvme0n1", "write back", "write through", "write cache",
                                     "the cache is disabled (WCE 0), and the default WCE, which a reset brings, is 0", 7001}}));
    c.mode(write_through).feature(wce(true, true));
    EXPECT_EQ(
        c.plan(),
        (std::vector{CacheModeChange{c.controller.id, "nvme0", "nvme0n1", "write through", "write back", "write cache, enabled",
                                     "the cache is enabled (WCE 1), so what was not flushed is lost with the power", 7001}}));
}

TEST(APlan, IsEmptyOnceItWasCarriedOut)
{
    CacheCase c;
    EXPECT_EQ(c.mode(write_through).rule(), CacheRule::disabled);
    EXPECT_TRUE(c.plan().empty());
    EXPECT_TRUE(c.mode(write_back).feature(wce(true, true)).plan().empty());
}

TEST(APlan, IsEmptyForWhatIsOnlyObserved)
{
    CacheCase c;
    c.policy.mode.value = CacheMode::observe;
    EXPECT_EQ(c.rule(), CacheRule::disabled);
    EXPECT_TRUE(c.plan().empty());
    c.mode(write_through).feature(wce(true, true));
    EXPECT_EQ(c.decide().mode, CacheMode::observe);
    EXPECT_TRUE(c.decide().unsafe()) << "reported all the same";
    EXPECT_TRUE(c.plan().empty());
}

TEST(APlan, JudgesEachLeafByItself)
{
    CacheCase c;
    c.controller.leaves = {leaf_named("nvme0n1"), leaf_named("nvme0n2"), leaf_named("nvme0n3"), leaf_named("nvme0n4")};
    c.controller.leaves[1].holders = {"dm-0"};
    c.controller.leaves[2].cache_mode = std::string(write_through);
    c.controller.leaves[3].cache_mode = std::string(write_through);
    c.controller.leaves[3].shared_with = std::vector<std::uint16_t>{2};
    const CacheDecision d = c.decide();
    ASSERT_EQ(d.leaves.size(), 4U);
    EXPECT_EQ(d.leaves[0].rule, CacheRule::disabled);
    EXPECT_EQ(d.leaves[1].rule, CacheRule::stacked);
    EXPECT_EQ(d.leaves[2].rule, CacheRule::disabled);
    EXPECT_EQ(d.leaves[3].rule, CacheRule::shared);
    const auto changes = c.plan();
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[0].leaf + " -> " + changes[0].to, "nvme0n1 -> write through");
    EXPECT_EQ(changes[1].leaf + " -> " + changes[1].to, "nvme0n4 -> write back");
}

TEST(APlan, LeavesADiskAloneThatWasNotDecidedAbout)
{
    CacheCase c;
    const CacheDecision before = c.decide();
    c.controller.leaves.front().name = "nvme0n2";
    EXPECT_TRUE(plan_cache(c.question(), before).empty());
}

TEST(AControllerWithoutDisks, HasNothingToDecide)
{
    CacheCase c;
    c.controller.leaves.clear();
    EXPECT_TRUE(c.decide().leaves.empty());
    EXPECT_FALSE(c.decide().unsafe());
    EXPECT_TRUE(c.plan().empty());
    EXPECT_EQ(c.decide().reason, "the cache is disabled (WCE 0), and the default WCE, which a reset brings, is 0");
}

TEST(ADecision, KeepsHowItIsWatched)
{
    CacheCase c;
    c.detection = {CacheDetection::Method::none, "there is no tracefs"};
    EXPECT_EQ(c.decide().detection, c.detection);
}

} // namespace
} // namespace nvmepolicy
