// SPDX-License-Identifier: LGPL-2.1-or-later
#include "controllers_behind.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "nvmepolicy/wording.h"

namespace nvmepolicy {
namespace {

namespace fs = std::filesystem;

constexpr int most_layers = 16; ///< more than anybody stacks; ends a loop that sysfs should not have

/// nvme0, nvme-subsys0: the prefix and digits, nothing else.
bool is_numbered(const std::string& name, std::string_view prefix)
{
    return name.starts_with(prefix) && name.size() > prefix.size()
           && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                          [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<fs::path> entries(const fs::path& directory)
{
    std::error_code ignored; // what is not there has no entries
    std::vector<fs::path> found;
    for (fs::directory_iterator it(directory, ignored), end; !ignored && it != end; it.increment(ignored))
        found.push_back(it->path());
    std::ranges::sort(found);
    return found;
}

std::string text_at(const fs::path& file)
{
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// What is found on the way down.
struct Found {
    std::set<std::string> controllers;
    std::set<std::string> others; ///< disks that are none of ours
};

/// A multipath head has no controller of its own. Those that lead to it have a disk of the path, nvme0c1n1, below them; where
/// there is none (as yet), all of the subsystem may.
void add_controllers_of_head(const fs::path& subsystem, const std::string& head, Found& found)
{
    const std::size_t space = head.rfind('n');
    std::set<std::string> all;
    std::set<std::string> with_path;
    for (const fs::path& entry : entries(subsystem)) {
        const std::string controller = entry.filename();
        if (!is_numbered(controller, "nvme"))
            continue;
        all.insert(controller);
        const std::string path_disk = head.substr(0, space) + "c" + controller.substr(4) + head.substr(space);
        std::error_code ignored;
        if (fs::exists(entry / path_disk, ignored))
            with_path.insert(controller);
    }
    found.controllers.merge(with_path.empty() ? all : with_path);
}

void descend(fs::path disk, Found& found, int layers)
{
    std::error_code error;
    if (fs::exists(disk / "partition", error))
        disk = disk.parent_path();
    const auto below = entries(disk / "slaves");
    for (const fs::path& slave : below)
        if (const fs::path real = fs::canonical(slave, error); !error && layers < most_layers)
            descend(real, found, layers + 1);
    if (!below.empty())
        return;
    const fs::path device = fs::canonical(disk / "device", error);
    const std::string owner = error ? std::string{} : device.filename().string();
    if (is_numbered(owner, "nvme"))
        found.controllers.insert(owner);
    else if (is_numbered(owner, "nvme-subsys"))
        add_controllers_of_head(device, disk.filename(), found);
    else
        found.others.insert(disk.filename());
}

Refusal not_there(const std::string& path, int error)
{
    return {printable(path), "", std::strerror(error), error == ENOENT ? RefusalKind::absent : RefusalKind::failed};
}

Result<std::vector<std::string>> result_of(const std::string& path, const Found& found)
{
    if (found.controllers.empty())
        return Refusal{
            printable(path), "",
            fmt::format("is not on an NVMe drive{}",
                        found.others.empty() ? std::string{} : " but on " + fmt::format("{}", fmt::join(found.others, ", "))),
            RefusalKind::unsupported};
    return std::vector<std::string>(found.controllers.begin(), found.controllers.end());
}

/// One line of /proc/self/mountinfo, as far as it matters. Source: proc_pid_mountinfo(5).
struct Mount {
    std::string point;
    std::string type;
    std::string source;
};

/// Blanks and backslashes are written as three octal digits.
std::string unescaped(const std::string& text)
{
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
        if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
            plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

std::optional<Mount> read_mount(const std::string& line)
{
    std::istringstream words(line);
    const std::vector<std::string> fields(std::istream_iterator<std::string>(words), {});
    const auto dash = std::find(fields.begin() + std::min<std::ptrdiff_t>(6, std::ssize(fields)), fields.end(), "-");
    if (fields.end() - dash < 3)
        return std::nullopt;
    return Mount{unescaped(fields[4]), dash[1], unescaped(dash[2])};
}

bool is_below(const std::string& path, const std::string& point)
{
    return point == "/" || path == point || path.starts_with(point + "/");
}

/// The mount that a real path lies on: the deepest, and of several there the newest.
std::optional<Mount> mount_of(const std::string& path, const std::string& root)
{
    std::istringstream lines(text_at(root + "/proc/self/mountinfo"));
    std::optional<Mount> best;
    for (std::string line; std::getline(lines, line);)
        if (auto mount = read_mount(line); mount && is_below(path, mount->point))
            if (!best || mount->point.size() >= best->point.size())
                best = std::move(mount);
    return best;
}

/// btrfs lists all drives of a file system below /sys/fs/btrfs/UUID/devices.
std::vector<fs::path> btrfs_members(const std::string& disk, const std::string& root)
{
    for (const fs::path& one : entries(root + "/sys/fs/btrfs")) {
        auto members = entries(one / "devices");
        if (std::ranges::any_of(members, [&](const fs::path& m) { return m.filename() == disk; }))
            return members;
    }
    return {};
}

std::string explanation_of(const Mount& mount)
{
    static const std::set<std::string> memory{"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"};
    static const std::set<std::string> network{"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "glusterfs", "afs"};
    if (mount.type == "overlay")
        return "is on an overlay file system: name a path on one of the file systems that it is made of";
    if (memory.contains(mount.type))
        return fmt::format("is on {}, in memory, not on a drive", mount.type);
    if (network.contains(mount.type) || mount.type.starts_with("fuse"))
        return fmt::format("is on {}, which does not say on which drives", printable(mount.type));
    return fmt::format("is on {} of \"{}\", which is no block device: name a block device such as /dev/nvme0n1",
                       printable(mount.type), printable(mount.source));
}

} // namespace

Result<std::vector<std::string>> controllers_behind_device(const std::string& path, dev_t device, const std::string& root)
{
    std::error_code error;
    const fs::path disk = fs::canonical(fmt::format("{}/sys/dev/block/{}:{}", root, major(device), minor(device)), error);
    if (error)
        return Refusal{printable(path), "", fmt::format("there is no block device {}:{}", major(device), minor(device)),
                       RefusalKind::absent};
    Found found;
    descend(disk, found, 0);
    return result_of(path, found);
}

Result<std::vector<std::string>> controllers_behind_mount(const std::string& path, const std::string& root)
{
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    const auto mount = error ? std::nullopt : mount_of(real, root);
    if (!mount)
        return Refusal{printable(path), "", "its mount was not found in /proc/self/mountinfo"};
    if (!mount->source.starts_with("/"))
        return Refusal{printable(path), "", explanation_of(*mount), RefusalKind::unsupported};
    const std::string source = fs::weakly_canonical(root + mount->source, error).filename();
    std::vector<fs::path> disks;
    if (mount->type == "btrfs")
        disks = btrfs_members(source, root);
    if (disks.empty())
        disks.emplace_back(root + "/sys/class/block/" + source);
    Found found;
    for (const fs::path& disk : disks) {
        const fs::path directory = fs::canonical(disk, error);
        if (!error)
            descend(directory, found, 0);
    }
    if (found.controllers.empty() && found.others.empty())
        return Refusal{printable(path), "", explanation_of(*mount), RefusalKind::unsupported};
    return result_of(path, found);
}

Result<std::vector<std::string>> controllers_behind(const std::string& path, const std::string& root)
{
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        return not_there(path, errno);
    if (S_ISBLK(status.st_mode))
        return controllers_behind_device(path, status.st_rdev, root);
    if (major(status.st_dev) == 0)
        return controllers_behind_mount(path, root);
    return controllers_behind_device(path, status.st_dev, root);
}

} // namespace nvmepolicy
