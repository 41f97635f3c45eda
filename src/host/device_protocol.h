// SPDX-License-Identifier: LGPL-2.1-or-later
// What is said between a program and its child process nvmepolicy-device, which makes the calls that may hang.
// Text lines, so that the child can be tried by hand:
//     echo identify 1 0 | nvmepolicy-device 3</sys/class/nvme/nvme0 4</dev/nvme0
// Requests, one a line:
//     identify CNS NSID                     CNS 1 or 18
//     get-log PAGE LENGTH                   from its start, without Retain Asynchronous Event, NSID FFFFFFFFh
//     get-feature FEATURE SELECT LENGTH
//     set-write-cache WCE SAVE              0 or 1 each
//     read-attribute PATH
//     read-tolerance
//     write-tolerance TEXT
//     write-back LEAF                       also where it reads so already
//     flush LEAF                            NVM Flush, whatever the mode of the queue; for a path disk, descriptor 4 is needed
// A guard (see cache_guard.h) is the same program with one more descriptor, and serves these and no others:
//     hold LEAF                             opens what is needed, writes write back, and a Flush
//     write-through LEAF DOUBTS             one that is held; ESTALE where there have been more doubts than DOUBTS
//     give-back LEAF                        write back and a Flush; ok as well where nothing is owed, EAGAIN where it still is:
//                                           then the guard goes on trying
// EAGAIN for hold and write-through: the controller is not live, or something is owed. EOPNOTSUPP for hold and flush: a Flush
// cannot be led to that leaf. LEAF is the name of a disk below the controller's directory, of at most 31 characters.
// Answers, one each, in order, and an `ok 0 0` before the first request; LENGTH bytes follow the line:
//     ok RESULT LENGTH
//     errno NUMBER 0
//     status NUMBER 0
// The end of the requests ends the process; a guard puts everything back before, however long that takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nvmepolicy::device_protocol {

inline constexpr int directory_fd = 3; ///< the controller's directory in sysfs
inline constexpr int node_fd = 4;      ///< /dev/nvmeN; closed where it could not be opened
/// Of a guard: an eventfd that counts doubts. Each tells it to put everything back before it does anything else. A counter, not
/// messages, so that none is lost while the guard hangs and so that whoever doubts never waits.
inline constexpr int doubts_fd = 5;
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
