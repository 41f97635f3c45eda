// SPDX-License-Identifier: LGPL-2.1-or-later
#include "simulated_attributes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <set>

#include "nvmepolicy/plan.h"

namespace nvmepolicy {
namespace {

/// What an attribute of the identity reads before the driver knows it.
constexpr const char* not_yet = "(efault)\n";

/// One subsystem a controller here, numbered alike.
std::string disk_of(const SimulatedController& c)
{
    return c.name + "n1";
}

bool has_cache(const SimulatedController& c)
{
    return (c.drive.vwc.value_or(1) & 1) != 0; // as in identify_page()
}

std::string cache_mode(const SimulatedController& c)
{
    if (!has_cache(c))
        return "write through\n";
    return (c.cache_mode.empty() ? "write back" : c.cache_mode) + "\n";
}

std::optional<std::string> pci_id(const std::optional<std::uint16_t>& id)
{
    return id ? std::optional{fmt::format("0x{:04x}\n", *id)} : std::nullopt;
}

struct Attribute {
    const char* name;
    std::optional<std::string> (*text)(const SimulatedController& c);
};

constexpr auto attributes = std::to_array<Attribute>({
    {"serial", [](const auto& c) { return std::optional<std::string>(c.identified ? c.id.serial + "\n" : not_yet); }},
    {"model", [](const auto& c) { return std::optional(c.identified ? fmt::format("{:<40}\n", c.drive.model) : not_yet); }},
    {"firmware_rev",
     [](const auto& c) { return std::optional(c.identified ? fmt::format("{:<8}\n", c.drive.firmware) : not_yet); }},
    {"subsysnqn", [](const auto& c) { return std::optional(c.identified ? c.id.subsystem_nqn + "\n" : not_yet); }},
    {"cntlid", [](const auto& c) { return std::optional(fmt::format("{}\n", c.identified ? c.id.cntlid : 0)); }},
    {"state", [](const auto& c) { return std::optional(show(c.state) + "\n"); }},
    {"transport", [](const auto&) { return std::optional<std::string>("pcie\n"); }},
    {"address", [](const auto& c) { return std::optional(fmt::format("0000:{:02x}:00.0\n", c.id.cntlid & 0xffU)); }},
    {"device/vendor", [](const auto& c) { return pci_id(c.drive.pci_vendor_id); }},
    {"device/device", [](const auto& c) { return pci_id(c.drive.pci_device_id); }},
    {"power/control", [](const auto&) { return std::optional<std::string>("auto\n"); }},
    {tolerance_attribute,
     [](const auto& c) { return c.tolerance_file ? std::optional(c.tolerance.kernel_text() + "\n") : std::nullopt; }},
    {"queue/write_cache", [](const auto& c) { return std::optional(cache_mode(c)); }},
    {"queue/fua", [](const auto& c) { return std::optional<std::string>(has_cache(c) ? "1\n" : "0\n"); }},
});

/// Where an attribute is: those of the queue belong to the disk.
std::string place_of(const SimulatedController& c, const Attribute& attribute)
{
    const std::string name = attribute.name;
    return name.starts_with("queue/") ? disk_of(c) + "/" + name : name;
}

} // namespace

std::optional<std::string> attribute_text(const SimulatedController& c, const std::string& attribute)
{
    const std::string disk = disk_of(c) + "/";
    const std::string name = attribute.starts_with(disk + "queue/") ? attribute.substr(disk.size()) : attribute;
    if (name == attribute && name.starts_with("queue/"))
        return std::nullopt;
    const auto* const found = std::ranges::find_if(attributes, [&](const Attribute& a) { return name == a.name; });
    return found == attributes.end() ? std::nullopt : found->text(c);
}

std::vector<std::string> attribute_names(const SimulatedController& c, const std::string& below)
{
    std::map<std::string, std::string> all;
    for (const Attribute& attribute : attributes)
        if (attribute.text(c))
            all[place_of(c, attribute)];
    return children(all, below);
}

std::optional<LatencyTolerance> tolerance_of_text(std::string_view text)
{
    text = text.substr(0, text.find('\0')); // For the kernel it ends there.
    if (text.ends_with('\n'))
        text.remove_suffix(1);
    if (text == "auto")
        return LatencyTolerance::automatic();
    if (text == "any")
        return LatencyTolerance::any();
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+'))
        text.remove_prefix(1);
    int base = 10;
    if (text.starts_with('0'))
        base = 8;
    if (text.size() > 2 && (text.starts_with("0x") || text.starts_with("0X"))) {
        base = 16;
        text.remove_prefix(2);
    }
    std::uint64_t us = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), us, base);
    const auto largest = static_cast<std::uint64_t>(largest_tolerance.count()) + 1;
    if (error != std::errc{} || end != text.data() + text.size() || us > (negative ? 0 : largest))
        return std::nullopt;
    return us == largest ? LatencyTolerance::any() : LatencyTolerance::of(Microseconds{static_cast<std::int64_t>(us)});
}

std::map<std::string, std::string> module_parameters(const Machine& m)
{
    return {
        {"default_ps_max_latency_us", fmt::format("{}\n", m.default_ps_max_latency_us.value_or(100000))},
        {"apst_primary_timeout_ms", fmt::format("{}\n", m.apst.primary_timeout_ms)},
        {"apst_primary_latency_tol_us", fmt::format("{}\n", m.apst.primary_latency_tol_us)},
        {"apst_secondary_timeout_ms", fmt::format("{}\n", m.apst.secondary_timeout_ms)},
        {"apst_secondary_latency_tol_us", fmt::format("{}\n", m.apst.secondary_latency_tol_us)},
        {"force_apst", m.force_apst ? "Y\n" : "N\n"},
    };
}

std::map<std::string, std::string> power_supplies(const Machine& m)
{
    const bool battery = m.power_source == PowerSource::battery;
    return {{"AC/type", "Mains\n"},
            {"AC/online", battery ? "0\n" : "1\n"},
            {"BAT0/type", "Battery\n"},
            {"BAT0/present", "1\n"},
            {"BAT0/scope", "System\n"}};
}

std::vector<std::string> children(const std::map<std::string, std::string>& all, const std::string& below)
{
    const std::string prefix = below == "." ? "" : below + "/";
    std::set<std::string> names;
    for (const auto& [path, text] : all)
        if (path.starts_with(prefix))
            names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
    return {names.begin(), names.end()};
}

} // namespace nvmepolicy
