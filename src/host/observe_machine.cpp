// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>

#include "nvmepolicy/decode.h"
#include "object_names.h"
#include "observe.h"

namespace nvmepolicy {
namespace {

/// Missing parameters are right where the driver is not loaded; anything else is worth a word.
void complain(std::vector<Refusal>& complaints, const Refusal& refusal)
{
    if (refusal.kind != RefusalKind::absent && refusal.kind != RefusalKind::gone)
        complaints.push_back(refusal);
}

std::optional<std::uint64_t> parameter(const Directory& parameters, const std::string& name, std::vector<Refusal>& complaints)
{
    const auto raw = parameters.read(name);
    const auto number = raw ? decode_number(parameters.path() + "/" + name, *raw) : raw.error();
    if (number)
        return *number;
    complain(complaints, number.error());
    return std::nullopt;
}

} // namespace

void observe_parameters(Host& host, Machine& machine, std::vector<Refusal>& complaints)
{
    const auto directory = host.open_directory("module/nvme_core/parameters");
    if (!directory)
        return complain(complaints, directory.error());
    const Directory& parameters = **directory;
    machine.default_ps_max_latency_us = parameter(parameters, "default_ps_max_latency_us", complaints);
    const auto shape = [&](const char* name, std::uint64_t& value) {
        value = parameter(parameters, name, complaints).value_or(value);
    };
    shape("apst_primary_timeout_ms", machine.apst.primary_timeout_ms);
    shape("apst_primary_latency_tol_us", machine.apst.primary_latency_tol_us);
    shape("apst_secondary_timeout_ms", machine.apst.secondary_timeout_ms);
    shape("apst_secondary_latency_tol_us", machine.apst.secondary_latency_tol_us);
    if (const auto raw = parameters.read("force_apst"))
        if (const auto flag = decode_flag(parameters.path() + "/force_apst", *raw))
            machine.force_apst = *flag;
}

namespace {

std::string line_or_empty(const Directory& directory, const std::string& attribute)
{
    const auto raw = directory.read(attribute);
    if (!raw)
        return {};
    const auto text = decode_line(attribute, *raw);
    return text ? *text : std::string{};
}

/// On battery: a system-scope battery exists and no mains or USB supply is online. Batteries of mice do not count.
/// Source: Documentation/ABI/testing/sysfs-class-power.
PowerSource observe_power_source(Host& host)
{
    const auto directory = host.open_directory("class/power_supply");
    if (!directory)
        return PowerSource::ac;
    const auto names = (*directory)->list();
    if (!names)
        return PowerSource::ac;
    bool battery = false;
    for (const std::string& name : *names) {
        const std::string type = line_or_empty(**directory, name + "/type");
        if (line_or_empty(**directory, name + "/scope") == "Device")
            continue;
        if (type == "Battery") {
            // A bay may be empty; "present" is optional and then means yes.
            battery = battery || line_or_empty(**directory, name + "/present") != "0";
            continue;
        }
        const bool feeds = type == "Mains" || type.starts_with("USB") || type == "Wireless";
        const std::string online = line_or_empty(**directory, name + "/online");
        if (feeds && !online.empty() && online != "0")
            return PowerSource::ac;
    }
    return battery ? PowerSource::battery : PowerSource::ac;
}

} // namespace

Machine observe_machine(Host& host, std::vector<Refusal>& complaints)
{
    Machine machine;
    observe_parameters(host, machine, complaints);
    machine.power_source = observe_power_source(host);
    return machine;
}

std::vector<Subsystem> observe_subsystems(Host& host)
{
    std::vector<Subsystem> found;
    const auto top = host.open_directory("class/nvme-subsystem");
    if (!top)
        return found;
    auto names = (*top)->list();
    if (!names)
        return found;
    std::ranges::sort(*names, natural_order);
    for (const std::string& name : *names) {
        if (!is_subsystem(name))
            continue;
        const auto directory = host.open_directory("class/nvme-subsystem/" + name);
        if (!directory)
            continue; // It left between the two calls.
        Subsystem subsystem;
        subsystem.name = name;
        subsystem.nqn = line_or_empty(**directory, "subsysnqn");
        subsystem.iopolicy = line_or_empty(**directory, "iopolicy");
        if (const auto children = (*directory)->list())
            for (const std::string& child : *children) {
                if (is_controller(child))
                    subsystem.controllers.push_back(child);
                else if (is_disk(child))
                    subsystem.heads.push_back(child);
            }
        std::ranges::sort(subsystem.controllers, natural_order);
        found.push_back(std::move(subsystem));
    }
    return found;
}

} // namespace nvmepolicy
