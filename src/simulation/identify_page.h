// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvmepolicy/drive_file.h"

namespace nvmepolicy {

/// The Identify Controller page of a drive that a drive file describes: decode_identify() in reverse.
/// Source: NVMe 1.4c, figures 247 and 248.
[[nodiscard]] std::vector<std::uint8_t> identify_page(const DriveFile& drive, const std::string& serial, std::uint16_t cntlid,
                                                      const std::string& subsystem_nqn);

} // namespace nvmepolicy
