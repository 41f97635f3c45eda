// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/kernel_quirks.h"

#include <algorithm>
#include <array>

namespace nvmepolicy {
namespace {

struct PciId {
    std::uint16_t vendor, device;
    friend bool operator==(const PciId&, const PciId&) = default;
};

// 126f:1001 and 15b7:5009 are in 6.12 but not in 6.1.
constexpr std::array no_deepest_ps = {
    PciId{0x8086, 0xf1a5}, PciId{0x126f, 0x1001}, PciId{0x126f, 0x2262}, PciId{0x15b7, 0x5009}, PciId{0x1cc1, 0x8201},
    PciId{0x2646, 0x2262}, PciId{0x2646, 0x2263}, PciId{0x1e49, 0x0021}, PciId{0x1e49, 0x0041}, PciId{0x025e, 0xf1ac},
};

} // namespace

ApstQuirks listed_quirks(std::optional<std::uint16_t> pci_vendor_id, std::optional<std::uint16_t> pci_device_id,
                         std::uint16_t identify_vendor_id, std::string_view model)
{
    ApstQuirks quirks;
    if (pci_vendor_id && pci_device_id)
        quirks.no_deepest_ps = std::ranges::find(no_deepest_ps, PciId{*pci_vendor_id, *pci_device_id}) != no_deepest_ps.end();
    // The kernel compares the whole space-padded field, so one letter more is another model.
    quirks.no_apst = (identify_vendor_id == 0x1179 && model == "THNSF5256GPUK TOSHIBA")
                     || (identify_vendor_id == 0x1e0f && model == "KCD6XVUL6T40");
    quirks.no_deepest_ps |= identify_vendor_id == 0x144d && model == "Samsung Portable SSD X5";
    return quirks;
}

} // namespace nvmepolicy
