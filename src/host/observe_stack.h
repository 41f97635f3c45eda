// SPDX-License-Identifier: LGPL-2.1-or-later
// What is built on a disk, and who hands it out: those who may have taken over its cache mode once and never look again.
#pragma once

#include <string>
#include <vector>

#include "host.h"
#include "nvmepolicy/facts.h"

namespace nvmepolicy {

struct Stack {
    std::vector<std::string> holders; ///< directly on the disk or its partitions
    std::vector<Layer> layers;        ///< all the way up
    std::vector<std::string> exports; ///< LIO iblock, rnbd, xen-blkback, by a name that people find them under
};

/// `below`: where the disk is in that directory, "nvme0n1" or "." for the disk's own.
[[nodiscard]] Stack observe_stack(Host& host, const Directory& directory, const std::string& disk, const std::string& below);

} // namespace nvmepolicy
