// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernel texts and controller pages become facts here, and only here. Nothing is trusted before it is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "nvmepolicy/facts.h"

namespace nvmepolicy {

inline constexpr std::size_t identify_page_size = 4096; ///< bytes of every Identify data structure
inline constexpr std::size_t apst_table_size = 256;     ///< bytes of the feature 0Ch buffer

/// Decodes an Identify Controller page. Refuses a short page, one of all zeros or all ones, and one without a serial
/// and model; everything else is taken as the drive says it, NPSS above 31 included.
/// Source: NVMe Base Specification 1.4c, figures 247 and 248.
[[nodiscard]] Result<IdentifyController> decode_identify(const std::string& where, std::span<const std::uint8_t> page);

/// Decodes what Get Features 0Ch returned: APSTE in bit 0 of the result, the table in the buffer.
[[nodiscard]] Result<ApstFeature> decode_apst_feature(const std::string& where, std::span<const std::uint8_t> buffer,
                                                      std::uint32_t result);

/// One line of a sysfs attribute without its newline and padding. Refuses an empty text, `(efault)` (what the kernel
/// shows before it has identified the controller: try later), NUL and control characters, and more than 4096 bytes.
[[nodiscard]] Result<std::string> decode_line(const std::string& where, std::string_view raw);

/// `power/pm_qos_latency_tolerance_us`: `auto`, `any`, or decimal microseconds.
[[nodiscard]] Result<LatencyTolerance> decode_tolerance(const std::string& where, std::string_view raw);

/// An unsigned decimal number of at most `largest`.
[[nodiscard]] Result<std::uint64_t> decode_number(const std::string& where, std::string_view raw,
                                                  std::uint64_t largest = UINT64_MAX);

/// A hexadecimal number with 0x, as PCI's `vendor` and `device` have it, of at most 16 bits.
[[nodiscard]] Result<std::uint16_t> decode_pci_id(const std::string& where, std::string_view raw);

/// A boolean module parameter, `Y` or `N`.
[[nodiscard]] Result<bool> decode_flag(const std::string& where, std::string_view raw);

/// `state` of a controller; an unfamiliar word is ControllerState::unknown.
[[nodiscard]] ControllerState decode_state(std::string_view raw);

/// `quirks` of a controller (Linux 7.0): one lower-case name a line, or `none`. Names that do not concern APST are ignored.
[[nodiscard]] ApstQuirks decode_quirks(std::string_view raw);

/// The text with everything that is not printable ASCII replaced by `?`, and without blanks at its ends: what a drive
/// or a file calls itself goes into JSON, terminals and labels.
[[nodiscard]] std::string printable_ascii(std::string_view text);

} // namespace nvmepolicy
