// SPDX-License-Identifier: LGPL-2.1-or-later
#include "identify_page.h"

#include <algorithm>

#include "nvmepolicy/decode.h"

namespace nvmepolicy {
namespace {

class Page {
public:
    void put(std::size_t at, std::uint64_t value, std::size_t bytes)
    {
        for (std::size_t i = 0; i < bytes; ++i)
            bytes_[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
    void put(std::size_t at, const std::string& text, std::size_t length, char padding)
    {
        for (std::size_t i = 0; i < length; ++i)
            bytes_[at + i] = static_cast<std::uint8_t>(i < text.size() ? text[i] : padding);
    }
    std::vector<std::uint8_t> take() { return std::move(bytes_); }

private:
    std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(identify_page_size);
};

/// A power as 16 bits and a scale: 1 is 0.0001 W, 2 is 0.01 W. The finer one where the value fits.
struct Scaled {
    std::uint16_t value = 0;
    unsigned scale = 0;
};

Scaled scaled(const std::optional<Microwatts>& power)
{
    if (!power)
        return {};
    if (power->count <= 100LL * UINT16_MAX)
        return {static_cast<std::uint16_t>(power->count / 100), 1};
    return {static_cast<std::uint16_t>(std::min<std::int64_t>(power->count / 10000, UINT16_MAX)), 2};
}

void put_power_state(Page& page, std::size_t at, const PowerState& s)
{
    const Scaled max = scaled(s.max_power);
    page.put(at, max.value, 2);
    page.put(at + 3, (max.scale == 1 ? 1U : 0U) | (s.operational ? 0U : 2U), 1);
    page.put(at + 4, static_cast<std::uint64_t>(s.entry_latency.value_or(Microseconds{0}).count()), 4);
    page.put(at + 8, static_cast<std::uint64_t>(s.exit_latency.value_or(Microseconds{0}).count()), 4);
    const Scaled idle = scaled(s.idle_power);
    page.put(at + 16, idle.value, 2);
    page.put(at + 18, static_cast<std::uint64_t>(idle.scale) << 6U, 1);
    const Scaled active = scaled(s.active_power);
    page.put(at + 20, active.value, 2);
    page.put(at + 22, static_cast<std::uint64_t>(active.scale) << 6U, 1);
}

} // namespace

std::vector<std::uint8_t> identify_page(const DriveFile& drive, const std::string& serial, std::uint16_t cntlid,
                                        const std::string& subsystem_nqn)
{
    Page page;
    page.put(0, drive.pci_vendor_id.value_or(0), 2);
    page.put(2, drive.pci_subsystem_vendor_id.value_or(0), 2);
    page.put(4, serial, 20, ' ');
    page.put(24, drive.model, 40, ' ');
    page.put(64, drive.firmware, 8, ' ');
    page.put(78, cntlid, 2);
    page.put(80, 0x00010400, 4);
    page.put(263, static_cast<std::uint64_t>(drive.npss), 1);
    page.put(265, drive.apsta.value_or(drive.apst_supported() ? 1 : 0), 1);
    // Where the source does not show it, a cache is the more careful guess.
    page.put(525, drive.vwc.value_or(1), 1);
    page.put(768, subsystem_nqn, 256, '\0');
    for (const PowerState& state : drive.power_states)
        put_power_state(page, 2048 + 32 * static_cast<std::size_t>(state.index), state);
    return page.take();
}

} // namespace nvmepolicy
