// SPDX-License-Identifier: LGPL-2.1-or-later
// From a path to the drives, on a sysfs made of directories and links as the kernel lays them out.
#include "host/controllers_behind.h"

#include <sys/sysmacros.h>

#include "temporary_directory.h"

namespace nvmepolicy {
namespace {

using Names = std::vector<std::string>;

struct Machine {
    TemporaryDirectory root;

    /// A disk on a controller: nvme0n1 of nvme0, or, for another bus, sda.
    void disk(const std::string& name, const std::string& owner, const std::string& number)
    {
        block("devices/pci/" + owner + "/" + name, name, number);
        root.link("sys/devices/pci/" + owner + "/" + name + "/device", "..");
    }
    void partition(const std::string& owner, const std::string& disk, const std::string& name, const std::string& number)
    {
        block("devices/pci/" + owner + "/" + disk + "/" + name, name, number);
        root.write("sys/devices/pci/" + owner + "/" + disk + "/" + name + "/partition", "1\n");
    }
    /// A device of DM or MD above others; `below` are paths below sys.
    void stacked(const std::string& name, const std::string& number, const Names& below)
    {
        block("devices/virtual/block/" + name, name, number);
        for (const std::string& one : below)
            root.link("sys/devices/virtual/block/" + name + "/slaves/" + one.substr(one.rfind('/') + 1), root / ("sys/" + one));
    }
    void block(const std::string& where, const std::string& name, const std::string& number)
    {
        root.write("sys/" + where + "/dev", number + "\n");
        root.link("sys/dev/block/" + number, root / ("sys/" + where));
        root.link("sys/class/block/" + name, root / ("sys/" + where));
    }
    [[nodiscard]] Names behind(unsigned major_number, unsigned minor_number) const
    {
        const auto found = controllers_behind_device("/srv", makedev(major_number, minor_number), root.path());
        return found ? *found : Names{found.error().text()};
    }
};

TEST(AFileOnAPartition, IsOnThePartitionsDrive)
{
    Machine m;
    m.disk("nvme0n1", "nvme0", "259:0");
    m.partition("nvme0", "nvme0n1", "nvme0n1p2", "259:2");
    EXPECT_EQ(m.behind(259, 0), Names{"nvme0"});
    EXPECT_EQ(m.behind(259, 2), Names{"nvme0"});
}

TEST(ALogicalVolumeOnARaid, IsOnAllItsDrivesOnce)
{
    Machine m;
    m.disk("nvme0n1", "nvme0", "259:0");
    m.disk("nvme1n1", "nvme1", "259:1");
    m.disk("sda", "0:0:0:0", "8:0");
    m.partition("nvme1", "nvme1n1", "nvme1n1p1", "259:3");
    m.stacked("md0", "9:0", {"devices/pci/nvme0/nvme0n1", "devices/pci/nvme1/nvme1n1/nvme1n1p1", "devices/pci/0:0:0:0/sda"});
    m.stacked("dm-0", "253:0", {"devices/virtual/block/md0"});
    m.stacked("dm-1", "253:1", {"devices/virtual/block/dm-0", "devices/virtual/block/md0"});
    EXPECT_EQ(m.behind(253, 1), (Names{"nvme0", "nvme1"}));
}

TEST(AMultipathHead, IsBehindEachControllerThatHasAPathToIt)
{
    Machine m;
    m.block("devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "nvme0n1", "259:0");
    m.root.link("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/device", "..");
    for (const char* controller : {"nvme0", "nvme1", "nvme2"}) {
        m.root.write(std::string("sys/devices/pci/") + controller + "/state", "live\n");
        m.root.link(std::string("sys/devices/virtual/nvme-subsystem/nvme-subsys0/") + controller,
                    m.root / (std::string("sys/devices/pci/") + controller));
    }
    EXPECT_EQ(m.behind(259, 0), (Names{"nvme0", "nvme1", "nvme2"}));
    m.root.write("sys/devices/pci/nvme0/nvme0c0n1/dev", "0:0\n");
    m.root.write("sys/devices/pci/nvme2/nvme0c2n1/dev", "0:0\n");
    EXPECT_EQ(m.behind(259, 0), (Names{"nvme0", "nvme2"}));
}

TEST(AnotherDisk, IsRefusedByItsName)
{
    Machine m;
    m.disk("sda", "0:0:0:0", "8:0");
    EXPECT_EQ(m.behind(8, 0), Names{"/srv: is not on an NVMe drive but on sda"});
    EXPECT_EQ(m.behind(8, 1), Names{"/srv: there is no block device 8:1"});
}

TEST(ALoopInSysfs, Ends)
{
    Machine m;
    m.stacked("dm-0", "253:0", {"devices/virtual/block/dm-0"});
    EXPECT_EQ(m.behind(253, 0), Names{"/srv: is not on an NVMe drive"});
}

/// What lies on a file system without a device number of its own.
struct AMount : testing::Test {
    Machine m;
    [[nodiscard]] Names behind(const std::string& mountinfo)
    {
        m.root.write("proc/self/mountinfo", "x\n20 1 0:1 / / rw - overlay overlay rw\n" + mountinfo);
        const std::string file = m.root.write("data/a file", "");
        const auto found = controllers_behind_mount(file, m.root.path());
        return found ? *found : Names{found.error().reason};
    }
    [[nodiscard]] std::string line(const std::string& rest) const
    {
        return "30 20 0:30 / " + m.root.path() + "/data rw shared:1 - " + rest + " rw\n";
    }
};

TEST_F(AMount, OfBtrfsIsOnAllDrivesOfTheFileSystem)
{
    m.disk("nvme0n1", "nvme0", "259:0");
    m.disk("nvme1n1", "nvme1", "259:1");
    EXPECT_EQ(behind(line("btrfs /dev/nvme0n1")), Names{"nvme0"});
    m.root.link("sys/fs/btrfs/0b0b/devices/nvme0n1", m.root / "sys/class/block/nvme0n1");
    m.root.link("sys/fs/btrfs/0b0b/devices/nvme1n1", m.root / "sys/class/block/nvme1n1");
    EXPECT_EQ(behind(line("btrfs /dev/nvme0n1")), (Names{"nvme0", "nvme1"}));
}

TEST_F(AMount, WithoutADriveIsRefusedByWhatItIs)
{
    EXPECT_EQ(behind(""), Names{"is on an overlay file system: name a path on one of the file systems that it is made of"});
    EXPECT_EQ(behind(line("tmpfs tmpfs")), Names{"is on tmpfs, in memory, not on a drive"});
    EXPECT_EQ(behind(line("nfs4 server:/export")), Names{"is on nfs4, which does not say on which drives"});
    EXPECT_EQ(behind(line("zfs pool/data")),
              Names{"is on zfs of \"pool/data\", which is no block device: name a block device such as /dev/nvme0n1"});
}

TEST(APathThatIsNotThere, IsRefused)
{
    const auto found = controllers_behind("/no/such/place");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().text(), "/no/such/place: No such file or directory");
}

} // namespace
} // namespace nvmepolicy
