// SPDX-License-Identifier: LGPL-2.1-or-later
// What is said between a program and its child process nvmepolicy-device, which makes the calls that may hang.
// Text lines, so that the child can be tried by hand:
//     echo identify | nvmepolicy-device 3</sys/class/nvme/nvme0 4</dev/nvme0
// Requests, one a line:
//     identify
//     get-feature FEATURE SELECT LENGTH
//     read-attribute PATH
//     read-tolerance
//     write-tolerance TEXT
// Answers, one each, in order, and an `ok 0 0` before the first request; LENGTH bytes follow the line:
//     ok RESULT LENGTH
//     errno NUMBER 0
//     status NUMBER 0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nvmepolicy::device_protocol {

inline constexpr int directory_fd = 3; ///< the controller's directory in sysfs
inline constexpr int node_fd = 4;      ///< /dev/nvmeN; closed where it could not be opened
inline constexpr std::uint32_t largest_buffer = 4096;

enum class AnswerKind { ok, error_number, status };

struct AnswerLine {
    AnswerKind kind = AnswerKind::ok;
    std::uint32_t number = 0; ///< command result, errno, or NVMe status
    std::uint32_t length = 0; ///< bytes that follow
};

[[nodiscard]] std::string format(const AnswerLine& line);
/// False for anything that is not an answer line.
[[nodiscard]] bool parse(std::string_view text, AnswerLine& line);

} // namespace nvmepolicy::device_protocol
