// SPDX-License-Identifier: LGPL-2.1-or-later
// The door to the drive: commands, and device nodes. drive.cpp is the only file that knows libnvme. Tests put another one in
// its place, since a Flush needs a drive.
#pragma once

#include <cstdint>

#include "device_protocol.h"

namespace nvmepolicy {

// Each may take as long as the drive does. `page` has room for device_protocol::largest_buffer bytes.

[[nodiscard]] device_protocol::AnswerLine identify(std::uint8_t cns, std::uint32_t nsid, std::uint8_t* page);
/// From its start, without Retain Asynchronous Event, NSID FFFFFFFFh.
[[nodiscard]] device_protocol::AnswerLine get_log(std::uint8_t page_id, std::uint32_t length, std::uint8_t* page);
[[nodiscard]] device_protocol::AnswerLine get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length,
                                                      std::uint8_t* page);
/// Feature 06h, NSID 0.
[[nodiscard]] device_protocol::AnswerLine set_write_cache(bool enabled, bool save);

/// Opens a node below /dev for commands; -1 with errno. Its number is for the caller to compare.
[[nodiscard]] int open_node(const char* name);
/// A Flush by a node that open_node() or the starter of this process opened. As a passthrough it bypasses the queue's idea of
/// whether there is a cache.
[[nodiscard]] device_protocol::AnswerLine flush(int node, std::uint32_t nsid);

/// From errno.
[[nodiscard]] device_protocol::AnswerLine error_answer();
[[nodiscard]] inline device_protocol::AnswerLine error_answer(int number)
{
    return {device_protocol::AnswerKind::error_number, static_cast<std::uint32_t>(number), 0};
}

} // namespace nvmepolicy
