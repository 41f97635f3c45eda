// SPDX-License-Identifier: LGPL-2.1-or-later
// Feature 06h, and what else decides whether a flush may be left out.
#include "nvmepolicy/decode_cache.h"
#include "object_names.h"
#include "observe.h"

namespace nvmepolicy {
namespace {

constexpr std::uint8_t feature_write_cache = 0x06; // NVMe 1.4c, section 5.21.1.6
enum Select : std::uint8_t { current = 0, by_default = 1, saved = 2, capabilities = 3 };
constexpr std::uint8_t log_smart = 0x02; // NVMe 1.4c, section 5.14.1.2

Result<std::uint32_t> read_feature(ControllerDevice& device, std::uint8_t select)
{
    const auto reply = device.get_feature(feature_write_cache, select, 0);
    return reply ? Result<std::uint32_t>(reply->result) : Result<std::uint32_t>(reply.error());
}

/// What a drive does not support, it need not answer; an answer that is not there counts as "unknown" further on.
std::optional<std::uint32_t> value_or_none(const Result<std::uint32_t>& read)
{
    return read ? std::optional(*read) : std::nullopt;
}

Result<std::optional<WriteCacheFeature>> read_write_cache(const Controller& c, ControllerDevice& device)
{
    if (!c.identify)
        return c.identify.error();
    if (!c.identify->has_write_cache())
        return std::optional<WriteCacheFeature>{};
    if (c.get_features_disturbs)
        return Refusal{c.name + ": Get Features 06h", "",
                       "not asked: by its log of command effects this drive stops serving I/O for a Get Features",
                       RefusalKind::unsupported};
    WriteCacheReadings readings;
    const auto now = read_feature(device, Select::current);
    if (!now)
        return now.error();
    readings.current = *now;
    if (c.identify->selects_features()) {
        readings.by_default = value_or_none(read_feature(device, Select::by_default));
        readings.saved = value_or_none(read_feature(device, Select::saved));
        readings.capabilities = value_or_none(read_feature(device, Select::capabilities));
    }
    const auto feature = decode_write_cache(c.name + ": Get Features 06h", readings);
    return feature ? Result<std::optional<WriteCacheFeature>>(*feature) : feature.error();
}

Result<std::uint8_t> read_critical_warning(const Controller& c, ControllerDevice& device)
{
    const auto page = device.log_page(log_smart, smart_log_size);
    return page ? decode_critical_warning(c.name + ": Get Log Page 02h", *page) : Result<std::uint8_t>(page.error());
}

Result<std::vector<std::uint16_t>> read_shared_with(const Controller& c, ControllerDevice& device, const Leaf& leaf)
{
    const std::string where = c.name + ": Identify 12h";
    if (!c.identify->multi_controller)
        return std::vector<std::uint16_t>{};
    if (!leaf.nsid)
        return Refusal{where, "", "the namespace identifier of " + leaf.name + " could not be read", RefusalKind::failed};
    const auto page = device.identify_attached_controllers(*leaf.nsid);
    if (!page)
        return page.error();
    return decode_attached_controllers(where, *page, c.identify->cntlid);
}

} // namespace

void observe_write_cache(Sighting& s)
{
    Controller& c = s.controller;
    if (c.state != ControllerState::live)
        return;
    c.write_cache = read_write_cache(c, *s.device);
    const bool off = c.write_cache && c.write_cache->has_value() && !(**c.write_cache).enabled;
    if (!off)
        return; // The rest is only asked where a flush might be left out.
    c.critical_warning = read_critical_warning(c, *s.device);
    for (Leaf& leaf : c.leaves)
        leaf.shared_with = read_shared_with(c, *s.device, leaf);
}

Result<bool> read_write_cache_enabled(const Sighting& s)
{
    const auto read = read_feature(*s.device, Select::current);
    return read ? Result<bool>((*read & 1U) != 0) : Result<bool>(read.error());
}

std::vector<CachePeer> observe_peers(Host& host, const Sighting& s)
{
    std::vector<CachePeer> peers;
    const auto names = controller_names(host);
    if (!names)
        return peers;
    for (const std::string& name : *names) {
        if (name == s.controller.name)
            continue;
        const auto directory = host.open_directory("class/nvme/" + name);
        const auto id = directory ? observe_identity(**directory) : Result<ControllerId>(directory.error());
        if (!id || id->subsystem_nqn != s.controller.id.subsystem_nqn)
            continue;
        auto peer = sight_controller(host, name);
        if (!peer)
            continue;
        std::optional<bool> disturbs;
        identify_controller(*peer, disturbs);
        observe_write_cache(*peer);
        if (peer->controller.identify)
            peers.push_back({peer->controller.identify->cntlid, peer->controller.write_cache});
    }
    return peers;
}

} // namespace nvmepolicy
