// SPDX-License-Identifier: LGPL-2.1-or-later
#include "simulated_host.h"

#include <cerrno>
#include <fmt/format.h>

#include "host/errno_refusal.h"
#include "host/laned_device.h"
#include "simulated_attributes.h"

namespace nvmepolicy {
namespace {

/// The directory of a controller.
class ControllerDirectory : public Directory {
public:
    ControllerDirectory(SimulatedKernel& kernel, std::string path, SimulatedKernel::Held controller)
        : kernel_(kernel)
        , path_(std::move(path))
        , controller_(std::move(controller))
    {
    }
    [[nodiscard]] const std::string& path() const override { return path_; }
    [[nodiscard]] std::uint64_t object() const override { return controller_->object; }

    [[nodiscard]] Result<std::string> read(const std::string& attribute) const override
    {
        const std::lock_guard lock(kernel_.time());
        if (const auto refusal = refusal_of(attribute))
            return *refusal;
        auto text = attribute_text(*controller_, attribute);
        return text ? Result<std::string>(*std::move(text))
                    : Result<std::string>(errno_refusal(path_ + "/" + attribute, "", ENOENT));
    }
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& below) const override
    {
        const std::lock_guard lock(kernel_.time());
        if (const auto refusal = refusal_of(below))
            return *refusal;
        auto names = attribute_names(*controller_, below);
        if (names.empty())
            return errno_refusal(path_ + "/" + below, "", ENOENT);
        return names;
    }
    [[nodiscard]] const SimulatedKernel::Held& controller() const { return controller_; }

private:
    [[nodiscard]] std::optional<Refusal> refusal_of(const std::string& asked) const
    {
        kernel_.time().step(controller_->name + ": " + asked);
        if (controller_->gone)
            return errno_refusal(path_ + "/" + asked, "", ENOENT); // kernfs_iop_lookup()
        const auto fault = controller_->faults.find(asked);
        return fault == controller_->faults.end() ? std::nullopt : std::optional{fault->second};
    }

    SimulatedKernel& kernel_;
    std::string path_;
    SimulatedKernel::Held controller_;
};

/// A directory whose content is taken when it is opened.
class PlainDirectory : public Directory {
public:
    PlainDirectory(std::string path, std::map<std::string, std::string> texts)
        : path_(std::move(path))
        , texts_(std::move(texts))
    {
    }
    [[nodiscard]] const std::string& path() const override { return path_; }
    [[nodiscard]] std::uint64_t object() const override { return 0; }
    [[nodiscard]] Result<std::string> read(const std::string& attribute) const override
    {
        const auto found = texts_.find(attribute);
        return found == texts_.end() ? Result<std::string>(errno_refusal(path_ + "/" + attribute, "", ENOENT))
                                     : Result<std::string>(found->second);
    }
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& below) const override
    {
        auto names = children(texts_, below);
        if (names.empty() && below != ".")
            return errno_refusal(path_ + "/" + below, "", ENOENT);
        return names;
    }

private:
    std::string path_;
    std::map<std::string, std::string> texts_;
};

/// `fault`s are found by these names, which are older than the protocol's.
std::string call_name(const std::string& request)
{
    const std::string verb = request.substr(0, request.find(' '));
    return verb == "read-attribute" ? request.substr(verb.size() + 1) : verb;
}

/// A line on which a test's faults come first.
class FaultyLine : public SimulatedLine {
public:
    FaultyLine(SimulatedKernel& kernel, const std::string& name, const SimulatedKernel::Held& controller, Waiting& waiting,
               const Patience& patience, PendingCalls& left_behind)
        : SimulatedLine(kernel, name, controller, waiting, patience, left_behind)
        , kernel_(kernel)
        , controller_(controller)
    {
    }
    [[nodiscard]] Result<FeatureReply> ask(const std::string& where, const std::string& request) override
    {
        const auto fault = fault_of(request);
        return fault ? *fault : SimulatedLine::ask(where, request);
    }
    [[nodiscard]] Result<FeatureReply> ask_drive(const std::string& where, const std::string& request) override
    {
        const auto fault = fault_of(request);
        return fault ? *fault : SimulatedLine::ask_drive(where, request);
    }

private:
    [[nodiscard]] std::optional<Refusal> fault_of(const std::string& request) const
    {
        const std::lock_guard lock(kernel_.time());
        const auto fault = controller_->faults.find(call_name(request));
        return fault == controller_->faults.end() || controller_->gone ? std::nullopt : std::optional{fault->second};
    }

    SimulatedKernel& kernel_;
    SimulatedKernel::Held controller_;
};

std::unique_ptr<Directory> plain(const std::string& path, std::map<std::string, std::string> texts)
{
    return std::make_unique<PlainDirectory>("/sys/" + path, std::move(texts));
}

} // namespace

SimulatedHost::SimulatedHost() : SimulatedHost(std::make_shared<OwnKernel>()) {}

SimulatedHost::SimulatedHost(std::shared_ptr<OwnKernel> own)
    : machine(own->kernel.machine)
    , own_(std::move(own))
    , kernel_(own_->kernel)
    , patience_{std::chrono::hours(1)}
    , process_(std::make_shared<Process>(own_->waiting))
{
}

SimulatedHost::SimulatedHost(SimulatedKernel& kernel, Waiting& waiting, Patience patience)
    : machine(kernel.machine)
    , kernel_(kernel)
    , patience_(patience)
    , process_(std::make_shared<Process>(waiting))
{
}

SimulatedHost::SimulatedHost(const SimulatedHost& same, Patience patience)
    : machine(same.machine)
    , own_(same.own_)
    , kernel_(same.kernel_)
    , patience_(patience)
    , process_(same.process_)
{
}

SimulatedController& SimulatedHost::add(const DriveFile& drive)
{
    const std::lock_guard lock(kernel_.time());
    const int number = own_->drives++;
    const std::string slug = drive.slug.empty() ? fmt::format("nvme{}", number) : drive.slug;
    return *kernel_.probe({drive,
                           {"nqn.2014-08.org.nvmexpress:simulated:" + slug,
                            fmt::format("SIMULATED{:04}", number),
                            static_cast<std::uint16_t>(number),
                            {}}});
}

void SimulatedHost::remove(const std::string& name)
{
    const std::lock_guard lock(kernel_.time());
    if (const auto c = kernel_.find(name))
        kernel_.remove(c);
}

SimulatedController* SimulatedHost::find(const std::string& name)
{
    const std::lock_guard lock(kernel_.time());
    return kernel_.find(name).get();
}

void SimulatedHost::rename(SimulatedController& controller, const std::string& name)
{
    kernel_.rename(controller.name, name);
}

void SimulatedHost::write_tolerance(SimulatedController& controller, const LatencyTolerance& tolerance)
{
    kernel_.write_tolerance(kernel_.find(controller.name), tolerance);
}

Result<std::unique_ptr<Directory>> SimulatedHost::open_directory(const std::string& path)
{
    const std::lock_guard lock(kernel_.time());
    kernel_.time().step("open " + path);
    const auto name_in = [&path](std::string_view directory) {
        return path.starts_with(directory) ? path.substr(directory.size()) : std::string{};
    };
    if (path == "class/nvme") {
        std::map<std::string, std::string> names;
        for (const std::string& name : kernel_.names())
            names[name];
        return plain(path, std::move(names));
    }
    if (path == "module/nvme_core/parameters")
        return plain(path, module_parameters(machine));
    if (path == "class/power_supply")
        return plain(path, power_supplies(machine));
    if (const auto c = kernel_.find(name_in("class/nvme/")))
        return std::unique_ptr<Directory>(std::make_unique<ControllerDirectory>(kernel_, "/sys/" + path, c));
    // One subsystem a controller, numbered alike.
    if (path == "class/nvme-subsystem") {
        std::map<std::string, std::string> names;
        for (const std::string& name : kernel_.names())
            names["nvme-subsys" + name.substr(4)];
        return plain(path, std::move(names));
    }
    if (const std::string number = name_in("class/nvme-subsystem/nvme-subsys"); !number.empty())
        if (const auto c = kernel_.find("nvme" + number))
            return plain(path, {{"subsysnqn", c->id.subsystem_nqn + "\n"}, {"iopolicy", "numa\n"}, {c->name, ""}});
    return errno_refusal("/sys/" + path, "", ENOENT);
}

std::unique_ptr<ControllerDevice> SimulatedHost::open_device(const Directory& directory, const std::string& name)
{
    const auto& c = dynamic_cast<const ControllerDirectory&>(directory).controller();
    auto line = std::make_unique<FaultyLine>(kernel_, name, c, process_->waiting, patience_, process_->left_behind);
    return std::make_unique<LanedDevice>(name, c->object, std::move(line), process_->lane, patience_);
}

} // namespace nvmepolicy
