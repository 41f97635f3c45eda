// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/decode_cache.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace nvmepolicy {
namespace {

constexpr std::uint32_t write_cache_enable = 1; // WCE; bits 31:1 are reserved

constexpr std::uint32_t saveable = 1;
constexpr std::uint32_t namespace_specific = 2;
constexpr std::uint32_t changeable = 4;
constexpr std::uint32_t all_capabilities = saveable | namespace_specific | changeable;

// Commands Supported and Effects log: a dword for each admin command, by opcode.
constexpr std::size_t get_features_entry = 4 * std::size_t{0x0a};
constexpr std::uint32_t namespace_capability_change = 1U << 2;  // NCC
constexpr std::uint32_t namespace_inventory_change = 1U << 3;   // NIC
constexpr std::uint32_t controller_capability_change = 1U << 4; // CCC
constexpr std::uint32_t submission_and_execution = 7U << 16;    // CSE

constexpr std::size_t flushes_field = 16;
constexpr std::size_t fields_with_flushes = 17;

Refusal too_short(const std::string& where, std::size_t found, const char* what, std::size_t wanted)
{
    return {where, fmt::format("{} bytes", found), fmt::format("{} has {} bytes; this one is cut short", what, wanted),
            RefusalKind::invalid};
}

std::uint16_t word(std::span<const std::uint8_t> page, std::size_t at)
{
    return static_cast<std::uint16_t>(page[at] | (page[at + 1] << 8));
}

/// None where it is no WCE.
std::optional<bool> enabled(const std::optional<std::uint32_t>& value)
{
    return value && *value <= write_cache_enable ? std::optional(*value == write_cache_enable) : std::nullopt;
}

/// A decimal number that takes up the whole word.
std::optional<std::uint64_t> number_in(std::string_view word)
{
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc{} && end == word.data() + word.size() ? std::optional(number) : std::nullopt;
}

} // namespace

Result<WriteCacheFeature> decode_write_cache(const std::string& where, const WriteCacheReadings& readings)
{
    const auto now = enabled(readings.current);
    if (!now)
        return Refusal{where, fmt::format("{:#x}", readings.current),
                       "the volatile write cache is enabled (1) or not (0); the other bits are reserved", RefusalKind::invalid};
    WriteCacheFeature feature;
    feature.enabled = *now;
    if (!readings.capabilities || (*readings.capabilities & ~all_capabilities) != 0)
        return feature;
    feature.saveable = (*readings.capabilities & saveable) != 0;
    feature.namespace_specific = (*readings.capabilities & namespace_specific) != 0;
    feature.changeable = (*readings.capabilities & changeable) != 0;
    feature.by_default = enabled(readings.by_default);
    if (feature.saveable)
        feature.saved = enabled(readings.saved);
    return feature;
}

Result<std::uint8_t> decode_critical_warning(const std::string& where, std::span<const std::uint8_t> page)
{
    if (page.size() < smart_log_size)
        return too_short(where, page.size(), "a SMART / Health Information page", smart_log_size);
    return page[0];
}

Result<std::vector<std::uint16_t>> decode_attached_controllers(const std::string& where, std::span<const std::uint8_t> page,
                                                               std::uint16_t own_cntlid)
{
    if (page.size() < controller_list_size)
        return too_short(where, page.size(), "a controller list", controller_list_size);
    const std::uint16_t count = word(page, 0);
    if (count > longest_controller_list)
        return Refusal{where, fmt::format("{} controllers", count),
                       fmt::format("a controller list has at most {}", longest_controller_list), RefusalKind::invalid};
    std::vector<std::uint16_t> others;
    bool lists_itself = false;
    for (std::size_t i = 1; i <= count; ++i) {
        const std::uint16_t cntlid = word(page, 2 * i);
        // 0 is a controller like any other, but only the first can be it.
        if (i > 1 && cntlid <= word(page, 2 * (i - 1)))
            return Refusal{where, fmt::format("{} after {}", cntlid, word(page, 2 * (i - 1))), "a controller list rises",
                           RefusalKind::invalid};
        if (cntlid == own_cntlid)
            lists_itself = true;
        else
            others.push_back(cntlid);
    }
    if (!lists_itself)
        return Refusal{where, fmt::format("{} controllers", count),
                       fmt::format("controller {} was asked, and is not among them", own_cntlid), RefusalKind::invalid};
    return others;
}

Result<bool> decode_get_features_disturbs(const std::string& where, std::span<const std::uint8_t> log)
{
    if (log.size() < command_effects_log_size)
        return too_short(where, log.size(), "a Commands Supported and Effects log", command_effects_log_size);
    const std::uint32_t effects =
        word(log, get_features_entry) | (static_cast<std::uint32_t>(word(log, get_features_entry + 2)) << 16);
    constexpr std::uint32_t disturbing =
        namespace_capability_change | namespace_inventory_change | controller_capability_change | submission_and_execution;
    return (effects & disturbing) != 0;
}

Result<std::uint64_t> decode_flushes(const std::string& where, std::string_view raw)
{
    const Refusal refusal{where, printable_ascii(raw.substr(0, 80)),
                          fmt::format("not a row of at least {} decimal numbers, of which number {} counts flushes",
                                      fields_with_flushes, flushes_field),
                          RefusalKind::invalid};
    std::uint64_t flushes = 0;
    std::size_t fields = 0;
    for (;;) {
        raw.remove_prefix(std::min(raw.find_first_not_of(" \n"), raw.size()));
        if (raw.empty())
            break;
        const std::size_t length = std::min(raw.find_first_of(" \n"), raw.size());
        const auto number = number_in(raw.substr(0, length));
        if (!number)
            return refusal;
        if (++fields == flushes_field)
            flushes = *number;
        raw.remove_prefix(length);
    }
    return fields < fields_with_flushes ? Result<std::uint64_t>(refusal) : flushes;
}

} // namespace nvmepolicy
