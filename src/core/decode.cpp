// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/decode.h"

#include <algorithm>
#include <charconv>

namespace nvmepolicy {
namespace {

constexpr std::size_t longest_line = 4096;

/// Little-endian fields of a page, by byte offset.
class Page {
public:
    explicit Page(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint8_t byte(std::size_t at) const { return bytes_[at]; }
    [[nodiscard]] std::uint16_t word(std::size_t at) const
    {
        return static_cast<std::uint16_t>(bytes_[at] | (bytes_[at + 1] << 8));
    }
    [[nodiscard]] std::uint32_t dword(std::size_t at) const
    {
        return word(at) | (static_cast<std::uint32_t>(word(at + 2)) << 16);
    }
    [[nodiscard]] std::uint64_t qword(std::size_t at) const
    {
        return dword(at) | (static_cast<std::uint64_t>(dword(at + 4)) << 32);
    }
    [[nodiscard]] std::string text(std::size_t at, std::size_t length) const
    {
        const auto field = bytes_.subspan(at, length);
        const auto end = std::ranges::find(field, std::uint8_t{0});
        return printable_ascii(std::string(field.begin(), end));
    }

private:
    std::span<const std::uint8_t> bytes_;
};

/// IPS and APS: 1 is 0.0001 W, 2 is 0.01 W; 0 and 3 say that nothing is reported.
std::optional<Microwatts> scaled_power(std::uint16_t value, unsigned scale)
{
    if (value == 0 || (scale != 1 && scale != 2))
        return std::nullopt;
    return Microwatts{value * (scale == 1 ? 100LL : 10000LL)};
}

std::optional<Microseconds> reported_latency(std::uint32_t microseconds)
{
    return microseconds == 0 ? std::nullopt : std::optional{Microseconds{microseconds}};
}

PowerState decode_power_state(const Page& page, std::size_t at, int index)
{
    PowerState state;
    state.index = index;
    const std::uint8_t flags = page.byte(at + 3);
    const bool fine_scale = (flags & 1) != 0; // MXPS
    if (const std::uint16_t power = page.word(at))
        state.max_power = Microwatts{power * (fine_scale ? 100LL : 10000LL)};
    state.operational = (flags & 2) == 0; // NOPS
    state.entry_latency = reported_latency(page.dword(at + 4));
    state.exit_latency = reported_latency(page.dword(at + 8));
    state.idle_power = scaled_power(page.word(at + 16), page.byte(at + 18) >> 6U);
    state.active_power = scaled_power(page.word(at + 20), page.byte(at + 22) >> 6U);
    return state;
}

std::string_view without_newline(std::string_view raw)
{
    if (raw.ends_with('\n'))
        raw.remove_suffix(1);
    return raw;
}

bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

Refusal not_a(const std::string& where, std::string_view raw, std::string reason)
{
    return {where, printable_ascii(without_newline(raw).substr(0, 80)), std::move(reason), RefusalKind::invalid};
}

} // namespace

std::string printable_ascii(std::string_view text)
{
    std::string out(text);
    std::ranges::replace_if(
        out, [](char c) { return !is_printable(c); }, '?');
    const auto first = out.find_first_not_of(' ');
    if (first == std::string::npos)
        return {};
    return out.substr(first, out.find_last_not_of(' ') - first + 1);
}

Result<IdentifyController> decode_identify(const std::string& where, std::span<const std::uint8_t> bytes)
{
    if (bytes.size() < identify_page_size)
        return Refusal{where, std::to_string(bytes.size()) + " bytes",
                       "an Identify Controller page has 4096 bytes; this one is cut short", RefusalKind::invalid};
    bytes = bytes.first(identify_page_size);
    const auto all = [&](std::uint8_t value) { return std::ranges::all_of(bytes, [=](std::uint8_t b) { return b == value; }); };
    if (all(0x00))
        return Refusal{where, "", "the controller answered with an Identify page of all zeros", RefusalKind::invalid};
    if (all(0xff))
        return Refusal{where, "", "the controller answered with an Identify page of all ones, as one does that left the bus",
                       RefusalKind::invalid};

    const Page page(bytes);
    IdentifyController id;
    id.vendor_id = page.word(0);
    id.subsystem_vendor_id = page.word(2);
    id.serial = page.text(4, 20);
    id.model = page.text(24, 40);
    id.firmware = page.text(64, 8);
    if (id.serial.empty() && id.model.empty())
        return Refusal{where, "", "the Identify page names neither a serial number nor a model", RefusalKind::invalid};
    id.multi_controller = (page.byte(76) & 2) != 0;
    id.cntlid = page.word(78);
    id.version = page.dword(80);
    id.npss = page.byte(263);
    id.apsta = page.byte(265);
    id.oncs = page.word(520);
    id.vwc = page.byte(525);
    id.subsystem_nqn = page.text(768, 256);
    const int last = std::min<int>(id.npss, highest_npss);
    for (int i = 0; i <= last; ++i)
        id.power_states.push_back(decode_power_state(page, 2048 + 32 * static_cast<std::size_t>(i), i));
    return id;
}

Result<ApstFeature> decode_apst_feature(const std::string& where, std::span<const std::uint8_t> buffer, std::uint32_t result)
{
    if (buffer.size() < apst_table_size)
        return Refusal{where, std::to_string(buffer.size()) + " bytes", "an APST table has 256 bytes; this one is cut short",
                       RefusalKind::invalid};
    const Page page(buffer);
    ApstFeature feature;
    feature.enabled = (result & 1) != 0;
    for (std::size_t i = 0; i < ApstFeature::states; ++i)
        feature.entries[i].raw = page.qword(8 * i);
    return feature;
}

Result<std::string> decode_line(const std::string& where, std::string_view raw)
{
    const std::string_view line = without_newline(raw);
    if (line.size() > longest_line)
        return not_a(where, line, "longer than any sysfs attribute");
    if (line == "(efault)")
        return Refusal{where, "(efault)", "the kernel has not identified this controller yet", RefusalKind::try_later};
    if (!std::ranges::all_of(line, is_printable))
        return not_a(where, line, "not a line of printable text");
    const std::string text = printable_ascii(line);
    if (text.empty())
        return Refusal{where, "", "empty", RefusalKind::invalid};
    return text;
}

Result<LatencyTolerance> decode_tolerance(const std::string& where, std::string_view raw)
{
    const std::string_view text = without_newline(raw);
    if (text == "auto")
        return LatencyTolerance::automatic();
    if (text == "any")
        return LatencyTolerance::any();
    const auto number = decode_number(where, raw, static_cast<std::uint64_t>(largest_tolerance.count()));
    if (!number)
        return not_a(where, raw, "neither \"auto\", \"any\" nor a number of microseconds up to 2147483646");
    return LatencyTolerance::of(Microseconds{static_cast<std::int64_t>(*number)});
}

Result<std::uint64_t> decode_number(const std::string& where, std::string_view raw, std::uint64_t largest)
{
    const std::string_view text = without_newline(raw);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || number > largest)
        return not_a(where, raw, "not a decimal number from 0 to " + std::to_string(largest));
    return number;
}

Result<std::uint16_t> decode_pci_id(const std::string& where, std::string_view raw)
{
    std::string_view text = without_newline(raw);
    std::uint16_t number = 0;
    if (text.starts_with("0x")) {
        text.remove_prefix(2);
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
        if (!text.empty() && error == std::errc{} && end == text.data() + text.size())
            return number;
    }
    return not_a(where, raw, "not a PCI id such as 0x144d");
}

Result<bool> decode_flag(const std::string& where, std::string_view raw)
{
    const std::string_view text = without_newline(raw);
    if (text == "Y" || text == "1")
        return true;
    if (text == "N" || text == "0")
        return false;
    return not_a(where, raw, "neither Y nor N");
}

ControllerState decode_state(std::string_view raw)
{
    const std::string_view text = without_newline(raw);
    if (text == "live")
        return ControllerState::live;
    if (text == "new")
        return ControllerState::created;
    if (text == "resetting")
        return ControllerState::resetting;
    if (text == "connecting")
        return ControllerState::connecting;
    if (text == "dead")
        return ControllerState::dead;
    if (text.starts_with("deleting"))
        return ControllerState::deleting;
    return ControllerState::unknown;
}

std::string show(ControllerState state)
{
    switch (state) {
    case ControllerState::created: return "new";
    case ControllerState::live: return "live";
    case ControllerState::resetting: return "resetting";
    case ControllerState::connecting: return "connecting";
    case ControllerState::deleting: return "deleting";
    case ControllerState::dead: return "dead";
    case ControllerState::unknown: break;
    }
    return "unknown";
}

ApstQuirks decode_quirks(std::string_view raw)
{
    ApstQuirks quirks;
    while (!raw.empty()) {
        const auto end = std::min(raw.find('\n'), raw.size());
        const std::string_view name = raw.substr(0, end);
        quirks.no_apst = quirks.no_apst || name == "no_apst";
        quirks.no_deepest_ps = quirks.no_deepest_ps || name == "no_deepest_ps";
        raw.remove_prefix(std::min(end + 1, raw.size()));
    }
    return quirks;
}

} // namespace nvmepolicy
