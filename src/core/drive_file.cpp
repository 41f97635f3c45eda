// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/drive_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "nvmepolicy/decode.h"

namespace nvmepolicy {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// MP has 16 bits in units of 0.01 W.
constexpr double largest_power_w = 655.35;

/// The value as written. Lists and objects are not followed: they may be nested deeper than the stack is.
std::string describe(const json& value)
{
    if (value.is_structured())
        return value.is_array() ? "[...]" : "{...}";
    return printable_ascii(value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80));
}

/// Reads members by key; the first that does not fit becomes the refusal of the whole file.
class Reader {
public:
    Reader(std::string where, const json& object) : where_(std::move(where)), object_(object) {}

    /// The member, or none when it is missing or null.
    const json* find(const char* key) const
    {
        const auto found = object_.find(key);
        return found == object_.end() || found->is_null() ? nullptr : &*found;
    }
    std::string text(const char* key)
    {
        const json* value = find(key);
        if (value && !value->is_string())
            refuse(key, *value, "a text or null");
        return value && value->is_string() ? printable_ascii(value->get<std::string>()) : std::string{};
    }
    std::optional<std::uint32_t> number(const char* key, std::uint32_t largest)
    {
        const json* value = find(key);
        if (!value)
            return std::nullopt;
        if (value->is_number_unsigned() && value->get<std::uint64_t>() <= largest)
            return static_cast<std::uint32_t>(value->get<std::uint64_t>());
        refuse(key, *value, fmt::format("a whole number from 0 to {} or null", largest));
        return std::nullopt;
    }
    std::optional<std::uint8_t> byte(const char* key)
    {
        const auto value = number(key, UINT8_MAX);
        return value ? std::optional{static_cast<std::uint8_t>(*value)} : std::nullopt;
    }
    std::optional<bool> flag(const char* key)
    {
        const json* value = find(key);
        if (!value)
            return std::nullopt;
        if (value->is_boolean())
            return value->get<bool>();
        if (value->is_number_unsigned() && value->get<std::uint64_t>() <= 1)
            return value->get<std::uint64_t>() == 1;
        refuse(key, *value, "true, false or null");
        return std::nullopt;
    }
    /// 0 is what a drive reports when it reports nothing.
    std::optional<Microseconds> latency(const char* key)
    {
        const auto value = number(key, UINT32_MAX);
        return value && *value != 0 ? std::optional{Microseconds{*value}} : std::nullopt;
    }
    std::optional<Microwatts> power(const char* key)
    {
        const json* value = find(key);
        if (!value)
            return std::nullopt;
        if (!value->is_number() || !(value->get<double>() >= 0) || value->get<double>() > largest_power_w) {
            refuse(key, *value, "watts from 0 to 655.35 or null");
            return std::nullopt;
        }
        const auto microwatts = std::llround(value->get<double>() * 1e6);
        return microwatts == 0 ? std::nullopt : std::optional{Microwatts{microwatts}};
    }
    std::optional<std::uint16_t> pci_id(const char* key)
    {
        const json* value = find(key);
        if (!value)
            return std::nullopt;
        auto id = value->is_string() ? decode_pci_id("", value->get<std::string>()) : Result<std::uint16_t>(Refusal{});
        if (id)
            return *id;
        refuse(key, *value, "a text such as \"0x144d\" or null");
        return std::nullopt;
    }
    void refuse(const std::string& key, const json& found, const std::string& allowed)
    {
        if (!refusal_)
            refusal_ = Refusal{where_ + "/" + key, describe(found), "allowed is " + allowed, RefusalKind::invalid};
    }
    [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }

private:
    std::string where_;
    const json& object_;
    std::optional<Refusal> refusal_;
};

Result<PowerState> read_power_state(const std::string& where, const json& object, int index)
{
    if (!object.is_object())
        return Refusal{where, "", "not an object", RefusalKind::invalid};
    Reader in(where, object);
    const auto number = in.number("state", highest_npss);
    if (!in.refusal() && (!number || static_cast<int>(*number) != index))
        in.refuse("state", number ? json(*number) : json(nullptr), fmt::format("{} here, states are listed in order", index));
    const auto operational = in.flag("operational");
    if (!operational && !in.refusal())
        in.refuse("operational", json(nullptr), "true or false");
    PowerState state{index,
                     in.power("max_power_w"),
                     in.power("idle_power_w"),
                     in.power("active_power_w"),
                     in.latency("entry_latency_us"),
                     in.latency("exit_latency_us"),
                     operational.value_or(true)};
    if (in.refusal())
        return *in.refusal();
    return state;
}

ApstQuirks read_quirks(Reader& in)
{
    ApstQuirks quirks;
    const json* names = in.find("kernel_quirks");
    if (!names)
        return quirks;
    if (!names->is_array()) {
        in.refuse("kernel_quirks", *names, "a list of quirk names");
        return quirks;
    }
    for (const json& name : *names) {
        quirks.no_apst = quirks.no_apst || name == "no_apst";
        quirks.no_deepest_ps = quirks.no_deepest_ps || name == "no_deepest_ps";
        if (name != "no_apst" && name != "no_deepest_ps")
            in.refuse("kernel_quirks", name, "no_apst and no_deepest_ps");
    }
    return quirks;
}

ordered_json hex(const std::optional<std::uint16_t>& id)
{
    return id ? ordered_json(fmt::format("0x{:04x}", *id)) : ordered_json(nullptr);
}

ordered_json watts(const std::optional<Microwatts>& power)
{
    return power ? ordered_json(static_cast<double>(power->count) / 1e6) : ordered_json(nullptr);
}

template <class T>
ordered_json or_null(const std::optional<T>& value)
{
    return value ? ordered_json(*value) : ordered_json(nullptr);
}

std::string version_text(std::uint32_t version)
{
    if (version == 0)
        return {};
    const unsigned tertiary = version & 0xffU;
    return fmt::format("{}.{}", version >> 16U, (version >> 8U) & 0xffU) + (tertiary ? fmt::format(".{}", tertiary) : "");
}

std::string slug_of(std::string_view model)
{
    std::string slug;
    for (const char c : model) {
        const bool upper = c >= 'A' && c <= 'Z';
        if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            slug += static_cast<char>(upper ? c - 'A' + 'a' : c);
        else if (!slug.empty() && slug.back() != '-')
            slug += '-';
    }
    while (slug.ends_with('-'))
        slug.pop_back();
    return slug.empty() ? "drive" : slug;
}

/// As the files in tests/drives have it.
ordered_json to_json(const ApstFeature& table, std::size_t states)
{
    ordered_json entries = ordered_json::array();
    for (std::size_t i = 0; i < states; ++i)
        entries.push_back({{"state", i}, {"raw", fmt::format("0x{:016x}", table.entries[i].raw)}});
    return {{"command_sent", true},
            {"apste", table.enabled ? 1 : 0},
            {"deepest_state", or_null(table.deepest_state())},
            {"entries", std::move(entries)}};
}

} // namespace

bool DriveFile::apst_supported() const
{
    if (apsta)
        return *apsta != 0;
    return std::ranges::any_of(power_states, [](const PowerState& s) { return !s.operational; });
}

ApstTableInputs DriveFile::inputs(const ApstParameters& parameters) const
{
    return {apst_supported(), npss, power_states, quirks, parameters};
}

Result<DriveFile> parse_drive_file(const std::string& where, std::string_view text)
{
    if (text.size() > largest_drive_file)
        return Refusal{where, std::to_string(text.size()) + " bytes", "larger than 1 MiB, not a drive file",
                       RefusalKind::invalid};
    const json document = json::parse(text, nullptr, false);
    if (document.is_discarded())
        return Refusal{where, "", "not valid JSON", RefusalKind::invalid};
    if (!document.is_object())
        return Refusal{where, "", "not a JSON object", RefusalKind::invalid};
    Reader in(where + ": ", document);
    if (const json* version = in.find("schema_version"); !version || *version != 1)
        in.refuse("schema_version", version ? *version : json(nullptr), "1");

    DriveFile drive;
    drive.slug = in.text("slug");
    drive.model = in.text("model");
    drive.firmware = in.text("firmware");
    drive.pci_vendor_id = in.pci_id("pci_vendor_id");
    drive.pci_device_id = in.pci_id("pci_device_id");
    drive.pci_subsystem_vendor_id = in.pci_id("pci_subsystem_vendor_id");
    drive.nvme_version = in.text("nvme_version");
    drive.apsta = in.byte("apsta");
    drive.vwc = in.byte("vwc");
    drive.observed_wce = in.flag("observed_wce");
    drive.quirks = read_quirks(in);

    const json* states = in.find("power_states");
    if (!states || !states->is_array() || states->empty() || states->size() > ApstFeature::states) {
        const json found = states && states->is_array() ? json(states->size()) : json(nullptr);
        in.refuse("power_states", states && !states->is_array() ? *states : found, "a list of 1 to 32 power states");
        return *in.refusal();
    }
    for (const json& object : *states) {
        const auto index = static_cast<int>(drive.power_states.size());
        auto state = read_power_state(fmt::format("{}: /power_states/{}", where, index), object, index);
        if (!state)
            return state.error();
        drive.power_states.push_back(*state);
    }
    const int last = static_cast<int>(drive.power_states.size()) - 1;
    const auto npss = in.byte("npss");
    drive.npss = npss.value_or(static_cast<std::uint8_t>(last));
    if (!in.refusal() && std::min(drive.npss, highest_npss) != last)
        in.refuse("npss", json(drive.npss), fmt::format("{}, the index of the last of the power states listed", last));
    if (in.refusal())
        return *in.refusal();
    return drive;
}

std::string format_drive_file(const DriveFile& drive, const std::optional<MeasuredTable>& measured)
{
    ordered_json quirks = ordered_json::array();
    if (drive.quirks.no_apst)
        quirks.push_back("no_apst");
    if (drive.quirks.no_deepest_ps)
        quirks.push_back("no_deepest_ps");
    ordered_json states = ordered_json::array();
    for (const PowerState& s : drive.power_states)
        states.push_back({{"state", s.index},
                          {"max_power_w", s.max_power ? watts(s.max_power) : ordered_json(0.0)},
                          {"operational", s.operational},
                          {"entry_latency_us", s.entry_latency.value_or(Microseconds{0}).count()},
                          {"exit_latency_us", s.exit_latency.value_or(Microseconds{0}).count()},
                          {"idle_power_w", watts(s.idle_power)},
                          {"active_power_w", watts(s.active_power)}});
    ordered_json document = {
        {"schema_version", 1},
        {"slug", drive.slug},
        {"model", drive.model},
        {"firmware", drive.firmware},
        {"pci_vendor_id", hex(drive.pci_vendor_id)},
        {"pci_device_id", hex(drive.pci_device_id)},
        {"pci_subsystem_vendor_id", hex(drive.pci_subsystem_vendor_id)},
        {"nvme_version", drive.nvme_version.empty() ? ordered_json(nullptr) : ordered_json(drive.nvme_version)},
        {"apsta", or_null(drive.apsta)},
        {"apsta_basis", drive.apsta ? "identify" : "not_shown"},
        {"npss", drive.npss},
        {"vwc", or_null(drive.vwc)},
        {"observed_wce", or_null(drive.observed_wce)},
        {"kernel_quirks", std::move(quirks)},
        {"power_states", std::move(states)},
    };
    if (measured)
        document["expected"]["tables"][measured->tolerance.kernel_text()] = to_json(measured->table, drive.power_states.size());
    return document.dump(1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

Result<DriveFile> capture(const Controller& controller)
{
    if (!controller.identify)
        return controller.identify.error();
    const IdentifyController& id = *controller.identify;
    DriveFile drive;
    drive.slug = slug_of(id.model);
    drive.model = id.model;
    drive.firmware = id.firmware;
    drive.pci_vendor_id = controller.pci_vendor_id ? controller.pci_vendor_id
                          : id.vendor_id           ? std::optional{id.vendor_id}
                                                   : std::nullopt;
    drive.pci_device_id = controller.pci_device_id;
    if (id.subsystem_vendor_id != 0)
        drive.pci_subsystem_vendor_id = id.subsystem_vendor_id;
    drive.nvme_version = version_text(id.version);
    drive.apsta = id.apsta;
    drive.npss = id.npss;
    drive.vwc = id.vwc;
    drive.quirks = controller.quirks.quirks;
    drive.power_states = id.power_states;
    return drive;
}

std::optional<MeasuredTable> measured_table(const Controller& c, const ApstParameters& parameters)
{
    const bool programmed = c.identify && c.identify->npss <= highest_npss && c.tolerance && *c.tolerance && c.apst && *c.apst;
    if (!programmed || !(parameters == ApstParameters{}))
        return std::nullopt;
    return MeasuredTable{**c.tolerance, **c.apst};
}

} // namespace nvmepolicy
