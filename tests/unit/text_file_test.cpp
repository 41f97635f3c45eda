// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/text_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "host/object_names.h"
#include "host/storage.h"
#include "host/sysfs.h"
#include "temporary_directory.h"
#include "unprivileged.h"

namespace nvmepolicy {
namespace {

TEST(ATextFile, IsReadWhole)
{
    const TemporaryDirectory place;
    const std::string text = std::string("a\0b\n", 4) + std::string(100'000, 'x');
    EXPECT_EQ(*read_text_file(place.write("file", text), 200'000), text);
    EXPECT_EQ(*read_text_file(place.write("empty", ""), 0), "");
}

TEST(ATextFile, OfAMegabyteIsRefusedWhere256KilobytesAreAllowed)
{
    const TemporaryDirectory place;
    const std::string path = place.write("large", std::string(1024 * 1024, 'x'));
    EXPECT_EQ(read_text_file(path, 262144).error().text(), path + ": larger than the 262144 bytes that are allowed here");
    EXPECT_EQ(read_text_file(path, 1024 * 1024 - 1).error().kind, RefusalKind::invalid);
    EXPECT_TRUE(read_text_file(path, 1024 * 1024));
}

TEST(ATextFile, ThatIsMissingIsAbsent)
{
    const TemporaryDirectory place;
    const auto text = read_text_file(place / "none", 100);
    EXPECT_EQ(text.error().text(), place / "none" + ": there is no such file (ENOENT)");
    EXPECT_EQ(text.error().kind, RefusalKind::absent);
}

TEST(ALinkToDevNull, ReadsAsEmpty)
{
    const TemporaryDirectory place;
    place.link("masked", "/dev/null");
    EXPECT_EQ(*read_text_file(place / "masked", 100), "");
    EXPECT_EQ(*read_text_file("/dev/null", 100), "");
}

TEST(ALinkToNowhere, IsAbsent)
{
    const TemporaryDirectory place;
    place.link("dangling", "nowhere");
    EXPECT_EQ(read_text_file(place / "dangling", 100).error().kind, RefusalKind::absent);
}

TEST(ALinkToItself, IsRefused)
{
    const TemporaryDirectory place;
    place.link("loop", "loop");
    EXPECT_FALSE(read_text_file(place / "loop", 100));
}

TEST(AFifo, IsRefusedAndNotWaitedFor)
{
    const TemporaryDirectory place;
    ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
    EXPECT_EQ(read_text_file(place / "fifo", 100).error().text(), place / "fifo" + ": not a regular file");
}

TEST(ADirectory, IsNotATextFile)
{
    const TemporaryDirectory place;
    EXPECT_EQ(read_text_file(place.path(), 100).error().text(), place.path() + ": not a regular file");
}

TEST(AnotherDevice, IsNotATextFile)
{
    EXPECT_EQ(read_text_file("/dev/zero", 100).error().text(), "/dev/zero: not a regular file");
}

TEST(AFileOfSomebodyElse, IsDenied)
{
    const TemporaryDirectory place;
    const std::string path = place.write("secret", "x");
    ASSERT_EQ(::chmod(place.path().c_str(), 0755), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
    const Unprivileged nobody;
    EXPECT_EQ(read_text_file(path, 100).error().kind, RefusalKind::denied);
}

TEST(AReplacedFile, HoldsTheNewTextAndNothingElseIsLeft)
{
    const TemporaryDirectory place;
    place.write("file", "old and longer");
    ASSERT_TRUE(replace_text_file(place / "file", "new"));
    EXPECT_EQ(place.read("file"), "new");
    ASSERT_TRUE(replace_text_file(place / "file", ""));
    EXPECT_EQ(place.read("file"), "");
    EXPECT_FALSE(std::filesystem::exists(place / "file.new"));
}

TEST(AReplacedFile, IsMadeWhereThereWasNone)
{
    const TemporaryDirectory place;
    const std::string text(3'000'000, 'x');
    ASSERT_TRUE(replace_text_file(place / "file", text));
    EXPECT_EQ(place.read("file"), text);
}

TEST(AReplacedFile, DoesNotWriteThroughALink)
{
    const TemporaryDirectory place;
    place.write("target", "precious");
    place.link("file", place / "target");
    place.link("other.new", place / "target");
    ASSERT_TRUE(replace_text_file(place / "file", "new"));
    EXPECT_EQ(place.read("file"), "new");
    EXPECT_EQ(place.read("target"), "precious");
    EXPECT_FALSE(replace_text_file(place / "other", "new")) << "the draft is a link that somebody else put there";
    EXPECT_EQ(place.read("target"), "precious");
}

TEST(AReplacedFile, LeftOverFromACrashIsNoObstacle)
{
    const TemporaryDirectory place;
    place.write("file", "old");
    place.write("file.new", "half of a tex");
    ASSERT_TRUE(replace_text_file(place / "file", "new"));
    EXPECT_EQ(place.read("file"), "new");
}

TEST(AReplacement, ThatCannotBeMadeLeavesTheOldFile)
{
    const TemporaryDirectory place;
    EXPECT_EQ(replace_text_file(place / "none/file", "x").error().text(),
              place / "none/file.new" + ": there is no such file (ENOENT)");
    std::filesystem::create_directory(place / "directory");
    EXPECT_FALSE(replace_text_file(place / "directory", "x"));
    EXPECT_TRUE(std::filesystem::is_directory(place / "directory"));
}

TEST(AReplacement, OnAFullDiskSaysSo)
{
    // /dev/full cannot be renamed over, but writing to a draft on it tells ENOSPC; only root could try that in place.
    const TemporaryDirectory place;
    place.write("file", "old");
    std::filesystem::create_directory(place / "file.new");
    EXPECT_FALSE(replace_text_file(place / "file", "new"));
    EXPECT_EQ(place.read("file"), "old");
}

// The door to /sys, on a directory that only looks like one.

TEST(ASysfsDirectory, ReadsBelowItselfAndListsSorted)
{
    const TemporaryDirectory place;
    place.write("nvme0/serial", "S7U8NJ0X000001      \n");
    place.write("nvme0/power/control", "auto\n");
    place.write("nvme0/power/b", "");
    const auto directory = SysfsDirectory::open(place / "nvme0");
    ASSERT_TRUE(directory);
    EXPECT_EQ((*directory)->path(), place / "nvme0");
    EXPECT_EQ(*(*directory)->read("serial"), "S7U8NJ0X000001      \n");
    EXPECT_EQ(*(*directory)->read("power/control"), "auto\n");
    EXPECT_EQ(*(*directory)->list("power"), (std::vector<std::string>{"b", "control"}));
    EXPECT_EQ(*(*directory)->list("."), (std::vector<std::string>{"power", "serial"}));
    EXPECT_EQ((*directory)->read("model").error().text(), place / "nvme0/model" + ": there is no such file (ENOENT)");
    EXPECT_EQ((*directory)->list("queue").error().kind, RefusalKind::absent);
}

TEST(ASysfsDirectory, NeverReadsTheToleranceFile)
{
    const TemporaryDirectory place;
    place.write("nvme0/power/pm_qos_latency_tolerance_us", "100000\n");
    const auto directory = SysfsDirectory::open(place / "nvme0");
    EXPECT_EQ((*directory)->read("power/pm_qos_latency_tolerance_us").error().text(),
              place / "nvme0/power/pm_qos_latency_tolerance_us" + ": is read through the controller's device only");
}

TEST(ASysfsDirectory, KeepsMeaningTheOneThatItWasOpenedOn)
{
    const TemporaryDirectory place;
    place.write("nvme0/serial", "A\n");
    const auto directory = SysfsDirectory::open(place / "nvme0");
    std::filesystem::rename(place / "nvme0", place / "nvme1");
    place.write("nvme0/serial", "B\n");
    EXPECT_EQ(*(*directory)->read("serial"), "A\n");
}

TEST(AStorageDirectory, IsForOthersToReadWhateverTheUmask)
{
    const TemporaryDirectory place;
    for (const mode_t mask : {0U, 022U, 077U, 0777U}) {
        const std::string path = place / ("state" + std::to_string(mask));
        const mode_t before = ::umask(mask);
        const auto made = file_storage().make_directory(path);
        ::umask(before);
        ASSERT_TRUE(made) << made.error().text();
        EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(path).permissions()), 0755U) << mask;
    }
}

TEST(AStorageDirectory, ThatIsThereAlreadyStaysAsItIs)
{
    const TemporaryDirectory place;
    std::filesystem::create_directory(place / "state");
    std::filesystem::permissions(place / "state", std::filesystem::perms::owner_all);
    EXPECT_TRUE(file_storage().make_directory(place / "state"));
    EXPECT_EQ(std::filesystem::status(place / "state").permissions(), std::filesystem::perms::owner_all);
}

TEST(ASysfsDirectory, ThatIsAFileOrMissingIsRefused)
{
    const TemporaryDirectory place;
    place.write("file", "");
    EXPECT_FALSE(SysfsDirectory::open(place / "file"));
    EXPECT_EQ(SysfsDirectory::open(place / "none").error().kind, RefusalKind::absent);
}

TEST(AnAttribute, LargerThanAnyIsRefused)
{
    const TemporaryDirectory place;
    place.write("nvme0/serial", std::string(65537, 'x'));
    const auto directory = SysfsDirectory::open(place / "nvme0");
    EXPECT_EQ((*directory)->read("serial").error().reason, "larger than the 65536 bytes that are allowed here");
}

TEST(ObjectNames, AreTold)
{
    EXPECT_TRUE(is_controller("nvme0"));
    EXPECT_TRUE(is_controller("nvme123"));
    for (const char* name : {"", "nvme", "nvmex", "nvme0n1", "nvme-fabrics", "nvme0 ", "xnvme0", "nvme0c1n1"})
        EXPECT_FALSE(is_controller(name)) << name;
    EXPECT_TRUE(is_disk("nvme3n1"));
    for (const char* name : {"nvme3", "nvme3n", "nvme3n1p2", "nvme3c4n1", "nvmen1", "ng3n1"})
        EXPECT_FALSE(is_disk(name)) << name;
    EXPECT_TRUE(is_path("nvme3c4n1"));
    for (const char* name : {"nvme3n1", "nvme3c4", "nvme3cn1", "nvme3c4n1p1"})
        EXPECT_FALSE(is_path(name)) << name;
    EXPECT_TRUE(is_subsystem("nvme-subsys3"));
    EXPECT_FALSE(is_subsystem("nvme-subsys"));
    EXPECT_TRUE(natural_order("nvme2", "nvme10"));
    EXPECT_FALSE(natural_order("nvme10", "nvme2"));
}

} // namespace
} // namespace nvmepolicy
