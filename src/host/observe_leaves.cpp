// SPDX-License-Identifier: LGPL-2.1-or-later
// The disks below a controller, path disks included.
#include "labels.h"
#include "nvmepolicy/decode.h"
#include "nvmepolicy/decode_cache.h"
#include "object_names.h"
#include "observe.h"
#include "observe_stack.h"

namespace nvmepolicy {
namespace {

Result<std::string> waited_line(ControllerDevice& device, const std::string& attribute)
{
    const auto raw = device.read_attribute(attribute);
    return raw ? decode_line(attribute, *raw) : raw.error();
}

/// nvme0c1n1 is a path of nvme0n1, which is what everything is built on.
std::string head_of(const std::string& path)
{
    const std::size_t c = path.find('c');
    return path.substr(0, c) + path.substr(path.find('n', c));
}

void observe_layers(Host& host, const Directory& directory, Leaf& leaf)
{
    Stack stack;
    if (!leaf.path)
        stack = observe_stack(host, directory, leaf.name, leaf.name);
    else if (const std::string head = head_of(leaf.name); const auto opened = host.open_directory("class/block/" + head))
        stack = observe_stack(host, **opened, head, ".");
    leaf.holders = std::move(stack.holders);
    leaf.layers = std::move(stack.layers);
    leaf.exports = std::move(stack.exports);
}

Leaf observe_leaf(Host& host, const Directory& directory, ControllerDevice& device, const std::string& name)
{
    Leaf leaf;
    leaf.name = name;
    leaf.path = is_path(name);
    leaf.cache_mode = waited_line(device, name + "/queue/write_cache");
    if (const auto fua = device.read_attribute(name + "/queue/fua"))
        if (const auto flag = decode_flag(name + "/queue/fua", *fua))
            leaf.fua = *flag;
    leaf.ana_state = label_or_empty(directory, name + "/ana_state");
    if (const auto raw = directory.read(name + "/nsid"))
        if (const auto number = decode_number(name + "/nsid", *raw, UINT32_MAX))
            leaf.nsid = static_cast<std::uint32_t>(*number);
    if (const auto raw = directory.read(name + "/stat")) {
        leaf.activity = *raw;
        if (const auto flushes = decode_flushes(name + "/stat", *raw))
            leaf.flushes = *flushes;
    }
    observe_layers(host, directory, leaf);
    return leaf;
}

} // namespace

void observe_leaves(Host& host, Sighting& s)
{
    s.controller.leaves.clear();
    const auto children = s.directory->list();
    if (!children)
        return;
    for (const std::string& child : *children)
        if (is_disk(child) || is_path(child))
            s.controller.leaves.push_back(observe_leaf(host, *s.directory, *s.device, child));
}

} // namespace nvmepolicy
