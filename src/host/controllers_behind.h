// SPDX-License-Identifier: LGPL-2.1-or-later
// Which controllers serve what is at a path: from a file, directory, mount point or block device down through file system,
// partitions, device mapper and MD to the drives.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "nvmepolicy/result.h"

namespace nvmepolicy {

/// Names such as nvme0, in order, each once; never empty. `path` is looked up as it is, /sys and /proc below `root`, which
/// is not empty in tests only. Refuses what is not there, and what does not lie on an NVMe drive, with what it lies on.
[[nodiscard]] Result<std::vector<std::string>> controllers_behind(const std::string& path, const std::string& root = "");

/// The same for a block device. `path` is for the message.
[[nodiscard]] Result<std::vector<std::string>> controllers_behind_device(const std::string& path, dev_t device,
                                                                         const std::string& root = "");

/// The same by the mount that a path lies on: for file systems whose device number is made up, such as btrfs.
[[nodiscard]] Result<std::vector<std::string>> controllers_behind_mount(const std::string& path, const std::string& root = "");

} // namespace nvmepolicy
