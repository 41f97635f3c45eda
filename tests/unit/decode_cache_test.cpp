// SPDX-License-Identifier: LGPL-2.1-or-later
// What drives and kernels say of a write cache, as it should be and as it should not.
#include "nvmepolicy/decode_cache.h"

#include <gtest/gtest.h>

namespace nvmepolicy {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes& put(Bytes& page, std::size_t at, std::uint64_t value, std::size_t length)
{
    for (std::size_t i = 0; i < length; ++i)
        page[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    return page;
}

Result<WriteCacheFeature> feature(const WriteCacheReadings& readings)
{
    return decode_write_cache("nvme0: Get Features 06h", readings);
}

TEST(Feature06h, IsReadWithAllThatTheDriveKnows)
{
    EXPECT_EQ(*feature({0, 1, 0, 5}), (WriteCacheFeature{false, true, false, true, false, true}));
    EXPECT_EQ(feature({0, 1, 0, 5})->after_reset(), false) << "what is saved counts";
    EXPECT_EQ(*feature({1, 0, 1, 7}), (WriteCacheFeature{true, false, true, true, true, true}));
}

TEST(Feature06h, HasNoSavedValueWhereItCannotBeSaved)
{
    EXPECT_EQ(*feature({0, 1, 0, 4}), (WriteCacheFeature{false, true, std::nullopt, false, false, true}));
    EXPECT_EQ(feature({0, 1, 0, 4})->after_reset(), true);
    EXPECT_EQ(*feature({0, 0, 1, 0}), (WriteCacheFeature{false, false, std::nullopt, false, false, false}));
}

TEST(Feature06h, WithoutCapabilitiesIsOnlyWhatItIsNow)
{
    EXPECT_EQ(*feature({0, 0, 0, std::nullopt}), (WriteCacheFeature{}));
    EXPECT_EQ(feature({0, 0, 0, std::nullopt})->after_reset(), std::nullopt);
    EXPECT_EQ(*feature({1, {}, {}, {}}), (WriteCacheFeature{true, {}, {}, false, false, {}}));
}

TEST(Feature06h, LeavesOutWhatWasNotAnswered)
{
    EXPECT_EQ(feature({0, std::nullopt, 0, 4})->after_reset(), std::nullopt);
    EXPECT_EQ(feature({0, 0, std::nullopt, 5})->after_reset(), std::nullopt);
}

TEST(Feature06h, LeavesOutWhatItCannotBe)
{
    EXPECT_EQ(feature({0, 2, 0, 4})->after_reset(), std::nullopt);
    EXPECT_EQ(feature({0, 0, 0x80000000, 5})->after_reset(), std::nullopt);
    EXPECT_EQ(*feature({0, 0, 0, 8}), (WriteCacheFeature{})) << "capabilities that nothing defines";
    EXPECT_EQ(*feature({0, 0, 0, 0xffffffff}), (WriteCacheFeature{}));
}

TEST(Feature06h, WithReservedBitsIsRefused)
{
    EXPECT_EQ(
        feature({0x100, 0, 0, 4}).error().text(),
        "nvme0: Get Features 06h: \"0x100\": the volatile write cache is enabled (1) or not (0); the other bits are reserved");
    for (const std::uint32_t value : {2U, 3U, 0x80000000U, 0xffffffffU})
        EXPECT_EQ(feature({value, 0, 0, 4}).error().kind, RefusalKind::invalid) << value;
}

TEST(ACriticalWarning, IsTheFirstByte)
{
    Bytes page(512);
    EXPECT_EQ(*decode_critical_warning("nvme0", page), 0);
    page[0] = 0x10;
    page[1] = 0xff;
    EXPECT_EQ(*decode_critical_warning("nvme0", page), warning_backup_failed);
}

TEST(ACriticalWarning, OfAPageThatIsCutShortIsRefused)
{
    EXPECT_EQ(decode_critical_warning("nvme0: Get Log Page 02h", Bytes(511)).error().text(),
              "nvme0: Get Log Page 02h: \"511 bytes\": a SMART / Health Information page has 512 bytes; this one is cut short");
    EXPECT_FALSE(decode_critical_warning("nvme0", {}));
}

Result<std::vector<std::uint16_t>> attached(const std::vector<std::uint16_t>& ids, std::uint16_t own,
                                            std::optional<std::uint16_t> count = {})
{
    Bytes page(4096);
    put(page, 0, count.value_or(static_cast<std::uint16_t>(ids.size())), 2);
    for (std::size_t i = 0; i < ids.size(); ++i)
        put(page, 2 + 2 * i, ids[i], 2);
    return decode_attached_controllers("nvme0: Identify 12h", page, own);
}

TEST(AControllerList, NamesTheOthers)
{
    EXPECT_EQ(*attached({1}, 1), std::vector<std::uint16_t>{});
    EXPECT_EQ(*attached({0, 1, 0x102}, 1), (std::vector<std::uint16_t>{0, 0x102}));
    EXPECT_EQ(*attached({0}, 0), std::vector<std::uint16_t>{}) << "0 is a controller like any other";
}

TEST(AControllerList, EndsWhereItSays)
{
    EXPECT_EQ(*attached({1, 2, 3}, 1, std::uint16_t{2}), std::vector<std::uint16_t>{2});
}

TEST(AControllerList, MayBeFull)
{
    std::vector<std::uint16_t> ids;
    for (std::uint16_t i = 0; i < 2047; ++i)
        ids.push_back(static_cast<std::uint16_t>(3 * i));
    EXPECT_EQ(attached(ids, 6138)->size(), 2046U);
    EXPECT_EQ(attached(ids, 6138, std::uint16_t{2048}).error().text(),
              "nvme0: Identify 12h: \"2048 controllers\": a controller list has at most 2047");
}

TEST(AControllerList, WithoutTheControllerThatWasAskedIsRefused)
{
    EXPECT_EQ(attached({2, 3}, 1).error().text(),
              "nvme0: Identify 12h: \"2 controllers\": controller 1 was asked, and is not among them");
    EXPECT_EQ(attached({}, 0).error().text(),
              "nvme0: Identify 12h: \"0 controllers\": controller 0 was asked, and is not among them");
}

TEST(AControllerList, ThatDoesNotRiseIsRefused)
{
    EXPECT_EQ(attached({1, 3, 2}, 1).error().text(), "nvme0: Identify 12h: \"2 after 3\": a controller list rises");
    EXPECT_FALSE(attached({1, 1}, 1));
    EXPECT_FALSE(attached({1, 2, 0}, 1));
    EXPECT_FALSE(attached({1}, 1, std::uint16_t{2})) << "a second one that is 0";
}

TEST(AControllerList, CutShortOrOfAllOnesIsRefused)
{
    EXPECT_EQ(decode_attached_controllers("nvme0", Bytes(4095), 0).error().text(),
              "nvme0: \"4095 bytes\": a controller list has 4096 bytes; this one is cut short");
    EXPECT_FALSE(decode_attached_controllers("nvme0", {}, 0));
    EXPECT_FALSE(decode_attached_controllers("nvme0", Bytes(4096, 0xff), 0xffff));
}

bool disturbs(std::uint32_t effects, std::size_t opcode = 0x0a)
{
    Bytes log(4096);
    put(log, 4 * opcode, effects, 4);
    const auto read = decode_get_features_disturbs("nvme0", log);
    EXPECT_TRUE(read);
    return read && *read;
}

TEST(AGetFeatures, ThatIsMerelySupportedDisturbsNobody)
{
    EXPECT_FALSE(disturbs(0));
    EXPECT_FALSE(disturbs(1)) << "CSUPP";
    EXPECT_FALSE(disturbs(2)) << "LBCC";
    EXPECT_FALSE(disturbs(1U << 19)) << "USS";
}

TEST(AGetFeatures, WithEffectsOnMoreThanItselfDisturbs)
{
    EXPECT_TRUE(disturbs(1U << 2)) << "NCC";
    EXPECT_TRUE(disturbs(1U << 3)) << "NIC";
    EXPECT_TRUE(disturbs(1U << 4)) << "CCC";
    for (const std::uint32_t cse : {1U, 2U, 4U})
        EXPECT_TRUE(disturbs(1 | cse << 16)) << cse;
}

TEST(AGetFeatures, IsNotDisturbingForWhatIsSaidOfAnotherCommand)
{
    EXPECT_FALSE(disturbs(0xffffffff, 0x09));
    EXPECT_FALSE(disturbs(0xffffffff, 0x0b));
    EXPECT_FALSE(disturbs(0xffffffff, 256 + 0x0a)) << "an I/O command";
}

TEST(ALogOfCommandEffects, CutShortIsRefused)
{
    EXPECT_EQ(
        decode_get_features_disturbs("nvme0: Get Log Page 05h", Bytes(512)).error().text(),
        "nvme0: Get Log Page 05h: \"512 bytes\": a Commands Supported and Effects log has 4096 bytes; this one is cut short");
}

TEST(TheFlushesOfADisk, AreField16OfItsStat)
{
    // Linux 6.1, as the kernel pads it.
    EXPECT_EQ(*decode_flushes("stat", "     123        0     4567       89      1       2        3        4        0       11"
                                      "      12        0        0        0        0       50      970\n"),
              50U);
    EXPECT_EQ(*decode_flushes("stat", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 18446744073709551615 17"), UINT64_MAX);
    EXPECT_EQ(*decode_flushes("stat", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n"), 16U) << "more may come";
}

TEST(TheFlushesOfADisk, OfAnOldKernelAreNotThere)
{
    const auto read = decode_flushes("nvme0n1/stat", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().text(), "nvme0n1/stat: \"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15?\": not a row of at least 17 decimal "
                                   "numbers, of which number 16 counts flushes");
    EXPECT_FALSE(decode_flushes("stat", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"));
}

TEST(TheFlushesOfADisk, OfAnythingElseAreRefused)
{
    for (const char* text :
         {"", "\n", "   ", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 x 17", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 -1 17",
          "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16x 17", "-1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
          "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 18446744073709551616 17"})
        EXPECT_EQ(decode_flushes("stat", text).error().kind, RefusalKind::invalid) << text;
}

} // namespace
} // namespace nvmepolicy
