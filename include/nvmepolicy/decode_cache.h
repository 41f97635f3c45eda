// SPDX-License-Identifier: LGPL-2.1-or-later
// What a drive and the kernel say of a write cache becomes facts here. A value with bits that nothing defines is not taken for
// an answer: what would be lost by a wrong guess is data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nvmepolicy/decode.h"
#include "nvmepolicy/facts.h"

namespace nvmepolicy {

inline constexpr std::uint32_t smart_log_size = 512;            ///< bytes of log page 02h
inline constexpr std::uint32_t command_effects_log_size = 4096; ///< bytes of log page 05h
inline constexpr std::size_t controller_list_size = 4096;       ///< bytes of Identify CNS 12h
inline constexpr std::uint16_t longest_controller_list = 2047;  ///< entries of it

/// The results of Get Features 06h, one for each value of Select. None: not asked, or not answered.
struct WriteCacheReadings {
    std::uint32_t current = 0;
    std::optional<std::uint32_t> by_default;
    std::optional<std::uint32_t> saved;
    std::optional<std::uint32_t> capabilities;
};

/// Refuses a current value that is neither 0 nor 1. Any other that is not what it may be is left out; and without capabilities
/// nobody can tell which of default and saved value a reset brings, so both are.
/// Source: NVMe 1.4c, section 5.21.1.6 and figure 276.
[[nodiscard]] Result<WriteCacheFeature> decode_write_cache(const std::string& where, const WriteCacheReadings& readings);

/// The first byte of SMART / Health Information. Refuses a short page. Source: NVMe 1.4c, figure 196.
[[nodiscard]] Result<std::uint8_t> decode_critical_warning(const std::string& where, std::span<const std::uint8_t> page);

/// The other controllers that a namespace is attached to, by the list of Identify CNS 12h. Refuses a short page, a list of more
/// than 2047, one that does not rise, and one without the controller that was asked: it is about something else, or about
/// nothing. Source: NVMe 1.4c, section 4.10 and figure 244.
[[nodiscard]] Result<std::vector<std::uint16_t>>
decode_attached_controllers(const std::string& where, std::span<const std::uint8_t> page, std::uint16_t own_cntlid);

/// Whether the kernel stops I/O, scans or resets for a Get Features that comes through its ioctl: by CSE, NCC, NIC and CCC of
/// that command in the Commands Supported and Effects log. Refuses a short page.
/// Source: NVMe 1.4c, figure 202; nvme_passthru_start(), nvme_passthru_end().
[[nodiscard]] Result<bool> decode_get_features_disturbs(const std::string& where, std::span<const std::uint8_t> log);

/// Field 16 of a disk's `stat`: flushes that the drive completed. Refuses fewer than 17 fields (before Linux 5.5), and what is
/// not a row of decimal numbers. Source: part_stat_show().
[[nodiscard]] Result<std::uint64_t> decode_flushes(const std::string& where, std::string_view raw);

} // namespace nvmepolicy
