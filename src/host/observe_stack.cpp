// SPDX-License-Identifier: LGPL-2.1-or-later
#include "observe_stack.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <fmt/format.h>
#include <set>

#include "labels.h"

namespace nvmepolicy {
namespace {

constexpr std::size_t most_layers = 64; ///< more than anybody stacks; ends a loop that sysfs should not have

std::string joined(const std::string& below, const std::string& name)
{
    return below == "." ? name : below + "/" + name;
}

void insert_line(const Directory& directory, const std::string& attribute, std::set<std::string>& into)
{
    if (auto text = label_or_empty(directory, attribute); !text.empty())
        into.insert(std::move(text));
}

/// Who is on a disk and on its partitions, and the device numbers of both.
void add_disk(const Directory& directory, const std::string& disk, const std::string& below, std::set<std::string>& holders,
              std::set<std::string>& numbers)
{
    const auto add = [&](const std::string& place) {
        if (const auto names = directory.list(joined(place, "holders")))
            holders.insert(names->begin(), names->end());
        insert_line(directory, joined(place, "dev"), numbers);
    };
    add(below);
    // nvme0n1p2, dm-0p1, sda1: partitions are the children that begin with the disk's name and have a number of their own.
    if (const auto children = directory.list(below))
        for (const std::string& child : *children)
            if (child.size() > disk.size() && child.starts_with(disk))
                add(joined(below, child));
}

/// "hhhh:hh" of xenstore is hexadecimal. Source: xen_vbd_create(), backend_changed().
std::string decimal_numbers(const std::string& hexadecimal)
{
    const std::size_t colon = hexadecimal.find(':');
    unsigned major = 0;
    unsigned minor = 0;
    const char* const text = hexadecimal.data();
    if (colon == std::string::npos || std::from_chars(text, text + colon, major, 16).ec != std::errc{}
        || std::from_chars(text + colon + 1, text + hexadecimal.size(), minor, 16).ec != std::errc{})
        return {};
    return fmt::format("{}:{}", major, minor);
}

/// "Major: 259 Minor: 3" somewhere in a text of several lines. Source: iblock_show_configfs_dev_params().
std::string numbers_of_info(const std::string& info)
{
    const auto number_after = [&info](std::string_view word) {
        const std::size_t at = info.find(word);
        unsigned number = 0;
        const char* const end = info.data() + info.size();
        const bool found = at != std::string::npos
                           && std::from_chars(info.data() + at + word.size(), end, number).ec == std::errc{};
        return found ? std::to_string(number) : std::string{};
    };
    const std::string major = number_after("Major: ");
    const std::string minor = number_after("Minor: ");
    return major.empty() || minor.empty() ? std::string{} : major + ":" + minor;
}

/// One whose device cannot be told may be ours.
void add_export(const std::string& name, const std::string& numbers, const std::set<std::string>& ours,
                std::vector<std::string>& exports)
{
    if (numbers.empty() || ours.contains(numbers))
        exports.push_back(name);
}

std::vector<std::string> names_in(const Directory& directory, const std::string& below = ".")
{
    const auto names = directory.list(below);
    return names ? *names : std::vector<std::string>{};
}

std::vector<std::string> observe_exports(Host& host, const std::set<std::string>& ours)
{
    std::vector<std::string> exports;
    if (const auto lio = host.open_directory("kernel/config/target/core"))
        for (const std::string& adapter : names_in(**lio))
            if (adapter.starts_with("iblock_"))
                for (const std::string& name : names_in(**lio, adapter)) {
                    const auto info = (*lio)->read(adapter + "/" + name + "/info");
                    const bool is_attribute = !info && info.error().kind != RefusalKind::denied; // of the adapter
                    if (!is_attribute)
                        add_export(adapter + "/" + name, info ? numbers_of_info(*info) : std::string{}, ours, exports);
                }
    if (const auto rnbd = host.open_directory("class/rnbd-server/ctl/devices"))
        for (const std::string& name : names_in(**rnbd))
            add_export("rnbd " + name, label_or_empty(**rnbd, name + "/block_dev/dev"), ours, exports);
    if (const auto xen = host.open_directory("bus/xen-backend/devices"))
        for (const std::string& name : names_in(**xen))
            if (name.starts_with("vbd-"))
                add_export("xen " + name, decimal_numbers(label_or_empty(**xen, name + "/physical_device")), ours, exports);
    return exports;
}

Layer observe_layer(const Directory* directory, const std::string& name)
{
    Layer layer{name, {}, {}, {}};
    if (!directory)
        return layer;
    layer.cache_mode = label_or_empty(*directory, "queue/write_cache");
    layer.raid_level = label_or_empty(*directory, "md/level");
    layer.consistency_policy = label_or_empty(*directory, "md/consistency_policy");
    return layer;
}

} // namespace

Stack observe_stack(Host& host, const Directory& directory, const std::string& disk, const std::string& below)
{
    Stack stack;
    std::set<std::string> numbers;
    std::set<std::string> holders;
    add_disk(directory, disk, below, holders, numbers);
    stack.holders.assign(holders.begin(), holders.end());
    std::set<std::string> seen = holders;
    std::deque<std::string> next(holders.begin(), holders.end());
    while (!next.empty() && stack.layers.size() < most_layers) {
        const std::string name = next.front();
        next.pop_front();
        const auto opened = host.open_directory("class/block/" + name);
        stack.layers.push_back(observe_layer(opened ? opened->get() : nullptr, name));
        if (!opened)
            continue;
        std::set<std::string> above;
        add_disk(**opened, name, ".", above, numbers);
        for (const std::string& one : above)
            if (seen.insert(one).second)
                next.push_back(one);
    }
    stack.exports = observe_exports(host, numbers);
    return stack;
}

} // namespace nvmepolicy
