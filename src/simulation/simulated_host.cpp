// SPDX-License-Identifier: LGPL-2.1-or-later
#include "simulated_host.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "identify_page.h"
#include "nvmepolicy/decode.h"
#include "nvmepolicy/plan.h"

namespace nvmepolicy {
namespace {

Refusal no_such_file(const std::string& where)
{
    return {where, "", "there is no such file (ENOENT)", RefusalKind::absent};
}

ApstTableInputs driver_inputs(const SimulatedController& c, const Machine& machine)
{
    ApstTableInputs inputs = c.drive.inputs(machine.apst);
    if (machine.force_apst)
        inputs.quirks = {};
    return inputs;
}

bool has_tolerance_file(const SimulatedController& c, const Machine& machine)
{
    const ApstTableInputs inputs = driver_inputs(c, machine);
    return inputs.apst_supported && !inputs.quirks.no_apst;
}

/// What a controller's directory holds, by relative path.
std::map<std::string, std::string> attributes(const SimulatedController& c, const Machine& machine)
{
    std::map<std::string, std::string> all{
        {"serial", c.id.serial + "\n"},
        {"model", fmt::format("{:<40}\n", c.drive.model)},
        {"firmware_rev", fmt::format("{:<8}\n", c.drive.firmware)},
        {"subsysnqn", c.id.subsystem_nqn + "\n"},
        {"cntlid", fmt::format("{}\n", c.id.cntlid)},
        {"state", show(c.state) + "\n"},
        {"transport", "pcie\n"},
        {"address", fmt::format("0000:{:02x}:00.0\n", c.id.cntlid & 0xffU)},
        {"power/control", "auto\n"},
    };
    if (c.drive.pci_vendor_id)
        all["device/vendor"] = fmt::format("0x{:04x}\n", *c.drive.pci_vendor_id);
    if (c.drive.pci_device_id)
        all["device/device"] = fmt::format("0x{:04x}\n", *c.drive.pci_device_id);
    if (has_tolerance_file(c, machine))
        all[tolerance_attribute] = c.tolerance.kernel_text() + "\n";
    const std::string disk = c.name + "n1";                // One subsystem a controller here, numbered alike.
    const bool cache = (c.drive.vwc.value_or(1) & 1) != 0; // as in identify_page()
    all[disk + "/queue/write_cache"] = cache ? "write back\n" : "write through\n";
    all[disk + "/queue/fua"] = cache ? "1\n" : "0\n";
    return all;
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

/// The names directly below a directory of such a map.
std::vector<std::string> children(const std::map<std::string, std::string>& all, const std::string& below)
{
    const std::string prefix = below == "." ? "" : below + "/";
    std::set<std::string> names;
    for (const auto& [path, text] : all)
        if (path.starts_with(prefix))
            names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
    return {names.begin(), names.end()};
}

} // namespace

class SimulatedDirectory : public Directory {
public:
    SimulatedDirectory(SimulatedHost& host, const std::string& path, std::weak_ptr<SimulatedController> controller,
                       std::optional<std::map<std::string, std::string>> fixed)
        : host_(host)
        , path_("/sys/" + path)
        , controller_(std::move(controller))
        , fixed_(std::move(fixed))
    {
    }
    [[nodiscard]] const std::string& path() const override { return path_; }
    [[nodiscard]] std::uint64_t object() const override
    {
        const auto controller = controller_.lock();
        return controller ? controller->object : 0;
    }

    [[nodiscard]] Result<std::string> read(const std::string& attribute) const override
    {
        const std::lock_guard lock(host_.mutex_);
        const std::string where = path_ + "/" + attribute;
        const auto all = entries(attribute);
        if (!all)
            return all.error();
        const auto found = all->find(attribute);
        return found == all->end() ? Result<std::string>(no_such_file(where)) : Result<std::string>(found->second);
    }
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& below) const override
    {
        const std::lock_guard lock(host_.mutex_);
        const auto all = entries(below);
        if (!all)
            return all.error();
        auto names = children(*all, below);
        return names.empty() && below != "." ? Result<std::vector<std::string>>(no_such_file(path_ + "/" + below))
                                             : Result<std::vector<std::string>>(std::move(names));
    }
    [[nodiscard]] const std::weak_ptr<SimulatedController>& controller() const { return controller_; }

private:
    [[nodiscard]] Result<std::map<std::string, std::string>> entries(const std::string& asked) const
    {
        if (fixed_)
            return *fixed_;
        const auto controller = controller_.lock();
        if (!controller)
            return Refusal{path_ + "/" + asked, "", "the controller has left (ENODEV)", RefusalKind::gone};
        if (const auto fault = controller->faults.find(asked); fault != controller->faults.end())
            return fault->second;
        return attributes(*controller, host_.machine);
    }

    SimulatedHost& host_;
    std::string path_;
    std::weak_ptr<SimulatedController> controller_;
    std::optional<std::map<std::string, std::string>> fixed_; ///< a directory that is not a controller's
};

class SimulatedDevice : public ControllerDevice {
public:
    SimulatedDevice(SimulatedHost& host, std::string name, std::weak_ptr<SimulatedController> controller)
        : host_(host)
        , name_(std::move(name))
        , controller_(std::move(controller))
    {
    }

    [[nodiscard]] Result<std::vector<std::uint8_t>> identify_controller() override
    {
        return with<std::vector<std::uint8_t>>("identify", [](SimulatedController& c) {
            return identify_page(c.drive, c.id.serial, c.id.cntlid, c.id.subsystem_nqn);
        });
    }
    [[nodiscard]] Result<FeatureReply> get_feature(std::uint8_t feature, std::uint8_t, std::uint32_t length) override
    {
        return with<FeatureReply>("get-feature", [=, this](SimulatedController& c) -> Result<FeatureReply> {
            if (feature != 0x0c || !c.drive.apst_supported())
                return Refusal{name_, "", "the controller answered with NVMe status 002h (invalid field)",
                               RefusalKind::unsupported};
            FeatureReply reply{c.apst.enabled ? 1U : 0U, std::vector<std::uint8_t>(length)};
            for (std::size_t i = 0; i < reply.buffer.size() && i < apst_table_size; ++i)
                reply.buffer[i] = static_cast<std::uint8_t>(c.apst.entries[i / 8].raw >> (8 * (i % 8)));
            return reply;
        });
    }
    [[nodiscard]] Result<std::string> read_attribute(const std::string& attribute) override
    {
        return with<std::string>(attribute, [&](SimulatedController& c) -> Result<std::string> {
            const auto all = attributes(c, host_.machine);
            const auto found = all.find(attribute);
            return found == all.end() ? Result<std::string>(no_such_file(name_ + ": " + attribute))
                                      : Result<std::string>(found->second);
        });
    }
    [[nodiscard]] Result<std::string> read_tolerance() override
    {
        return with<std::string>("read-tolerance", [](SimulatedController& c) { return c.tolerance.kernel_text() + "\n"; });
    }
    [[nodiscard]] Result<void> write_tolerance(const LatencyTolerance& tolerance, const StillWanted& still_wanted) override
    {
        const auto done = with<bool>("write-tolerance", [&](SimulatedController& c) -> Result<bool> {
            if (still_wanted && !still_wanted())
                return Refusal{name_, tolerance.kernel_text(), "not written, the wishes have changed meanwhile",
                               RefusalKind::try_later};
            host_.write_tolerance(c, tolerance);
            return true;
        });
        return done ? Result<void>{} : Result<void>(done.error());
    }

private:
    template <class T, class Action>
    Result<T> with(const std::string& call, const Action& action)
    {
        const std::lock_guard lock(host_.mutex_);
        const auto controller = controller_.lock();
        if (!controller)
            return Refusal{name_ + ": " + call, "", "the controller has left (ENODEV)", RefusalKind::gone};
        if (const auto fault = controller->faults.find(call); fault != controller->faults.end())
            return fault->second;
        return action(*controller);
    }

    SimulatedHost& host_;
    std::string name_;
    std::weak_ptr<SimulatedController> controller_;
};

SimulatedHost::SimulatedHost()
{
    machine.default_ps_max_latency_us = 100000;
}

SimulatedController& SimulatedHost::add(const DriveFile& drive)
{
    const std::lock_guard lock(mutex_);
    const int number = next_number_++;
    auto c = std::make_shared<SimulatedController>();
    c->name = fmt::format("nvme{}", number);
    c->object = next_object_++;
    c->id = {fmt::format("nqn.2014-08.org.nvmexpress:simulated:{}", drive.slug.empty() ? c->name : drive.slug),
             fmt::format("SIMULATED{:04}", number),
             static_cast<std::uint16_t>(number),
             {}};
    c->drive = drive;
    c->tolerance = c->driver_copy =
        LatencyTolerance::of(Microseconds{static_cast<std::int64_t>(machine.default_ps_max_latency_us.value_or(100000))});
    program(*c);
    controllers_.push_back(std::move(c));
    return *controllers_.back();
}

void SimulatedHost::remove(const std::string& name)
{
    const std::lock_guard lock(mutex_);
    std::erase_if(controllers_, [&](const auto& c) { return c->name == name; });
}

SimulatedController* SimulatedHost::find(const std::string& name)
{
    const auto found = std::ranges::find(controllers_, name, [](const auto& c) { return c->name; });
    return found == controllers_.end() ? nullptr : found->get();
}

void SimulatedHost::program(SimulatedController& c)
{
    const PredictedTable table = predict_apst_table(driver_inputs(c, machine), c.driver_copy);
    if (!table.command_sent)
        return;
    ++c.set_features;
    if (!c.refuses_apst)
        c.apst = table.feature;
}

void SimulatedHost::write_tolerance(SimulatedController& c, const LatencyTolerance& tolerance)
{
    c.tolerance = tolerance;
    if (c.driver_copy.same_effect(tolerance))
        return;
    c.driver_copy = tolerance;
    // In every other state the value is only stored, and nothing sends it later.
    if (c.state == ControllerState::live)
        program(c);
}

Result<std::unique_ptr<Directory>> SimulatedHost::open_directory(const std::string& path)
{
    const std::lock_guard lock(mutex_);
    const auto fixed = [this, &path](std::map<std::string, std::string> all) {
        return std::unique_ptr<Directory>(
            std::make_unique<SimulatedDirectory>(*this, path, std::weak_ptr<SimulatedController>{}, std::move(all)));
    };
    std::map<std::string, std::string> names;
    if (path == "class/nvme") {
        for (const auto& c : controllers_)
            names[c->name] = "";
        return fixed(std::move(names));
    }
    if (path == "module/nvme_core/parameters")
        return fixed(module_parameters(machine));
    if (path == "class/power_supply")
        return fixed(power_supplies(machine));
    for (const auto& c : controllers_) {
        if (path == "class/nvme/" + c->name)
            return std::unique_ptr<Directory>(std::make_unique<SimulatedDirectory>(*this, path, c, std::nullopt));
        const std::string subsystem = fmt::format("nvme-subsys{}", c->name.substr(4));
        names[subsystem] = "";
        if (path == "class/nvme-subsystem/" + subsystem)
            return fixed({{"subsysnqn", c->id.subsystem_nqn + "\n"}, {"iopolicy", "numa\n"}, {c->name, ""}});
    }
    if (path == "class/nvme-subsystem")
        return fixed(std::move(names));
    return no_such_file("/sys/" + path);
}

std::unique_ptr<ControllerDevice> SimulatedHost::open_device(const Directory& directory, const std::string& name)
{
    return std::make_unique<SimulatedDevice>(*this, name, dynamic_cast<const SimulatedDirectory&>(directory).controller());
}

} // namespace nvmepolicy
