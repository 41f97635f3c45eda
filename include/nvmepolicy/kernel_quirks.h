// SPDX-License-Identifier: LGPL-2.1-or-later
// Which quirk Linux applies to which drive, as far as it can be told from outside the kernel.
#pragma once

#include <optional>
#include <string_view>

#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// The quirks that Linux 6.12 lists for a PCI id or a model. Entries that also ask for a mainboard are left out: they
/// show in the table read back. Other kernels list more or fewer, so this is likely, not certain.
/// Source: nvme_id_table[] in drivers/nvme/host/pci.c, core_quirks[] in drivers/nvme/host/core.c.
[[nodiscard]] ApstQuirks listed_quirks(std::optional<std::uint16_t> pci_vendor_id, std::optional<std::uint16_t> pci_device_id,
                                       std::uint16_t identify_vendor_id, std::string_view model);

} // namespace nvmepolicy
