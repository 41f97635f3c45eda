// SPDX-License-Identifier: LGPL-2.1-or-later
// A disk below the controller's directory: its queue's mode, and how a Flush gets to its namespace.
//
// A plain disk is flushed by its generic character node, ngCnH: that is bound to one namespace, it is no way to its data for
// anybody who may only open character nodes, and opening it changes nothing about the block device. A path disk (hidden, so
// without a node) is flushed by the controller's node, which works while the controller has no other namespace (S11); the
// kernel then knows only one that can be meant, and checks its number. Elsewhere there is no way, and a leaf that cannot be
// flushed is none that may go write through.
#pragma once

#include <cstdint>
#include <string_view>

#include "drive.h"

namespace nvmepolicy {

/// nvme0n1 or nvme0c1n1, and nothing that could lead out of the directory.
[[nodiscard]] bool is_leaf_name(std::string_view text);

constexpr std::size_t leaf_name_size = 32; ///< as long as a disk's name can be, with its end. Source: DISK_NAME_LEN

enum class CacheMode { write_back, write_through };

/// `queue/write_cache` below the controller's directory, for reading and writing; -1 with errno.
[[nodiscard]] int open_cache_mode(const char* leaf);
/// Success says that the kernel took it. On Linux 6.12 the write waits for all requests of the disk.
[[nodiscard]] device_protocol::AnswerLine write_cache_mode(int fd, CacheMode mode);

/// Where a Flush goes.
struct FlushRoute {
    int node = -1;
    std::uint32_t nsid = 0;
};
/// `ok`, or an answer that says why there is none: EOPNOTSUPP for a path disk whose controller has several namespaces, ESTALE
/// where a node's name belongs to something else by now.
[[nodiscard]] device_protocol::AnswerLine open_flush_route(const char* leaf, FlushRoute& route);
void close_flush_route(FlushRoute& route);

/// Reads an attribute below the controller's directory without its newline; -1 with errno. What does not fit is EFBIG.
[[nodiscard]] int read_line(const char* path, char* to, std::size_t size);

} // namespace nvmepolicy
