// SPDX-License-Identifier: LGPL-2.1-or-later
// The disks below a controller, path disks included.
#include <algorithm>
#include <filesystem>

#include "labels.h"
#include "nvmepolicy/decode.h"
#include "object_names.h"
#include "observe.h"

namespace nvmepolicy {
namespace {

/// Holders of a disk and of its partitions: `nvme0n1/holders`, `nvme0n1/nvme0n1p2/holders`.
std::vector<std::string> holders(const Directory& directory, const std::string& disk)
{
    std::vector<std::string> found;
    const auto add = [&](const std::string& below) {
        if (const auto names = directory.list(below + "/holders"))
            found.insert(found.end(), names->begin(), names->end());
    };
    add(disk);
    if (const auto children = directory.list(disk))
        for (const std::string& child : *children)
            if (child.starts_with(disk + "p"))
                add((std::filesystem::path(disk) / child).string());
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

Result<std::string> waited_line(ControllerDevice& device, const std::string& attribute)
{
    const auto raw = device.read_attribute(attribute);
    return raw ? decode_line(attribute, *raw) : raw.error();
}

std::vector<Leaf> leaves(const Directory& directory, ControllerDevice& device)
{
    std::vector<Leaf> found;
    const auto children = directory.list();
    if (!children)
        return found;
    for (const std::string& child : *children) {
        if (!is_disk(child) && !is_path(child))
            continue;
        Leaf leaf;
        leaf.name = child;
        leaf.path = is_path(child);
        leaf.cache_mode = waited_line(device, child + "/queue/write_cache");
        if (const auto fua = device.read_attribute(child + "/queue/fua"))
            if (const auto flag = decode_flag(child, *fua))
                leaf.fua = *flag;
        leaf.holders = holders(directory, child);
        leaf.ana_state = label_or_empty(directory, child + "/ana_state");
        found.push_back(std::move(leaf));
    }
    return found;
}

} // namespace

void observe_leaves(Sighting& s)
{
    s.controller.leaves = leaves(*s.directory, *s.device);
}

} // namespace nvmepolicy
