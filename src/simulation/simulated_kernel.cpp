// SPDX-License-Identifier: LGPL-2.1-or-later
#include "simulated_kernel.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <sstream>
#include <utility>

#include "identify_page.h"
#include "nvmepolicy/decode.h"
#include "simulated_attributes.h"

namespace nvmepolicy {
namespace {

constexpr std::uint32_t invalid_field = 0x4002; ///< with "do not retry"
constexpr std::uint32_t host_path_error = 0x370;

KernelAnswer error_number(int error)
{
    return {KernelAnswer::Kind::error_number, static_cast<std::uint32_t>(error)};
}

KernelAnswer nvme_status(std::uint32_t status)
{
    return {KernelAnswer::Kind::nvme_status, status};
}

KernelAnswer text_answer(const std::string& text)
{
    return {KernelAnswer::Kind::ok, 0, {text.begin(), text.end()}};
}

/// Source: nvme_configure_apst(), which looks at the module parameters of this moment, but for force_apst.
ApstTableInputs driver_inputs(const SimulatedController& c, const Machine& machine)
{
    ApstTableInputs inputs = c.drive.inputs(machine.apst);
    inputs.quirks = {!c.apst_enabled, c.quirks.no_deepest_ps};
    return inputs;
}

/// What the kernel makes of the number that is in the module parameter when a controller object is made.
LatencyTolerance initial_tolerance(const Machine& machine)
{
    const std::uint64_t us = machine.default_ps_max_latency_us.value_or(100000);
    return us > static_cast<std::uint64_t>(largest_tolerance.count())
               ? LatencyTolerance::any()
               : LatencyTolerance::of(Microseconds{static_cast<std::int64_t>(us)});
}

} // namespace

/// The one mutex of the PM QoS core: first come, first served. Source: dev_pm_qos_mtx, dev_pm_qos_sysfs_mtx.
class SimulatedKernel::PmQosLock {
public:
    PmQosLock(SimulatedKernel& kernel, const std::string& who) : kernel_(kernel)
    {
        const std::uint64_t ticket = kernel_.pm_qos_tickets_++;
        kernel_.time_.sleep_until(
            who + " waits for the PM QoS lock", [this, ticket] { return kernel_.pm_qos_served_ == ticket; }, std::nullopt);
    }
    ~PmQosLock() { ++kernel_.pm_qos_served_; }
    PmQosLock(const PmQosLock&) = delete;
    PmQosLock& operator=(const PmQosLock&) = delete;
    PmQosLock(PmQosLock&&) = delete;
    PmQosLock& operator=(PmQosLock&&) = delete;

private:
    SimulatedKernel& kernel_;
};

SimulatedKernel::Held SimulatedKernel::find(const std::string& name) const
{
    const auto found = controllers_.find(name);
    return found == controllers_.end() ? nullptr : found->second;
}

std::vector<std::string> SimulatedKernel::names() const
{
    std::vector<std::string> all;
    all.reserve(controllers_.size());
    for (const auto& [name, controller] : controllers_)
        all.push_back(name);
    return all;
}

std::string SimulatedKernel::lowest_free_name() const
{
    for (std::size_t number = 0;; ++number)
        if (std::string name = fmt::format("nvme{}", number); !controllers_.contains(name))
            return name;
}

void SimulatedKernel::enter(const Held& c, ControllerState state)
{
    c->state = state;
    time_.step(fmt::format("{} is {}", c->name, show(state)));
}

void SimulatedKernel::send(const Held& c, const std::string& action, const std::string& nvme_event)
{
    if (announce)
        announce({"nvme", action, c->name, nvme_event});
}

SimulatedKernel::Held SimulatedKernel::probe(const PluggedDrive& plugged)
{
    const std::lock_guard lock(time_);
    auto c = std::make_shared<SimulatedController>();
    c->name = lowest_free_name();
    c->object = next_object_++;
    c->id = plugged.id;
    c->drive = plugged.drive;
    c->identified = false;
    c->state = version == KernelVersion::linux_6_1 ? ControllerState::resetting : ControllerState::created;
    controllers_[c->name] = c;
    send(c, "add");
    {
        const PmQosLock pm_qos(*this, c->name);
        c->tolerance = c->driver_copy = initial_tolerance(machine); // nvme_add_ctrl(), nvme_init_ctrl() of 6.1
    }
    if (c->leaving)
        return c;
    enter(c, ControllerState::connecting);
    if (c->leaving)
        return c;
    identify(c);
    program(c, true);
    time_.step(c->name + " is programmed and not live yet");
    if (c->leaving)
        return c;
    c->state = ControllerState::live;
    send(c, "change", "connected");
    return c;
}

/// Source: nvme_init_identify(), dev_pm_qos_expose_latency_tolerance(), dev_pm_qos_hide_latency_tolerance().
void SimulatedKernel::identify(const Held& c)
{
    if (!std::exchange(c->identified, true))
        c->quirks = c->drive.quirks;
    if (machine.force_apst)
        c->quirks.no_deepest_ps = false; // for good
    const bool wanted = c->drive.apst_supported() && (!c->quirks.no_apst || machine.force_apst);
    if (wanted == std::exchange(c->apst_enabled, wanted))
        return;
    if (wanted) {
        c->tolerance_file = !c->leaving;
        return;
    }
    const PmQosLock pm_qos(*this, c->name);
    c->tolerance_file = false;
    c->tolerance = c->driver_copy = LatencyTolerance::automatic(); // The request goes with the file, and the driver is told.
}

void SimulatedKernel::remove(const Held& c)
{
    const std::lock_guard lock(time_);
    if (c->leaving)
        return;
    c->leaving = true;
    enter(c, ControllerState::deleting);
    {
        const PmQosLock pm_qos(*this, c->name);
        c->tolerance_file = false;
    }
    time_.step(c->name + " has lost its files");
    c->gone = true;
    controllers_.erase(c->name);
    send(c, "remove");
}

void SimulatedKernel::reset(const Held& c, const std::optional<DriveFile>& firmware)
{
    const std::lock_guard lock(time_);
    if (c->leaving || c->state != ControllerState::live)
        return;
    ++c->resets;
    enter(c, ControllerState::resetting);
    if (c->leaving)
        return;
    enter(c, ControllerState::connecting);
    if (c->leaving)
        return;
    if (firmware)
        c->drive = *firmware;
    c->apst = {}; // An APST table does not survive a Controller Level Reset.
    identify(c);
    program(c, true);
    time_.step(c->name + " is programmed and not live yet");
    if (c->leaving)
        return;
    c->state = ControllerState::live;
    if (version == KernelVersion::linux_6_1)
        c->cache_mode.clear();
    send(c, "change", "connected");
}

void SimulatedKernel::rename(const std::string& from, const std::string& to)
{
    const std::lock_guard lock(time_);
    auto renamed = controllers_.extract(from);
    renamed.key() = renamed.mapped()->name = to;
    controllers_.insert(std::move(renamed));
}

void SimulatedKernel::activate_firmware(const Held& c)
{
    const std::lock_guard lock(time_);
    if (c->leaving || c->state != ControllerState::live)
        return;
    enter(c, ControllerState::resetting);
    time_.sleep_until(
        c->name + " activates its firmware", [&c] { return c->leaving; }, time_.now() + firmware_activation);
    if (!c->leaving)
        enter(c, ControllerState::live);
}

KernelAnswer SimulatedKernel::command(const Held& c, const std::string& kind, bool by_driver,
                                      const std::function<KernelAnswer()>& execute)
{
    const auto queue_runs = [&c] { return c->state != ControllerState::resetting || c->leaving; };
    time_.step(c->name + " gets " + kind);
    if (!by_driver)
        time_.sleep_until(c->name + ": " + kind + " waits for the admin queue", queue_runs, std::nullopt);
    if (c->leaving)
        return error_number(c->gone ? ENODEV : EINTR);
    if (!by_driver && c->state != ControllerState::live)
        return nvme_status(host_path_error);
    Fate fate{c->command_time, 0, 0};
    if (const auto found = c->fates.find(kind); found != c->fates.end() && !by_driver) {
        fate = found->second;
        if (--found->second.times == 0)
            c->fates.erase(found);
    }
    const int resets = c->resets;
    const auto disturbed = [&] { return c->leaving || c->resets != resets; };
    const bool too_long = fate.hang > admin_timeout;
    if (time_.sleep_until(c->name + " executes " + kind, disturbed, time_.now() + std::min(fate.hang, admin_timeout)))
        return c->leaving ? nvme_status(host_path_error) : error_number(EINTR);
    if (too_long) {
        time_.spawn(c->name + " is reset, " + kind + " has timed out", [this, c] { reset(c); });
        return error_number(EINTR);
    }
    return fate.status != 0 ? nvme_status(fate.status) : execute();
}

void SimulatedKernel::program(const Held& c, bool by_driver)
{
    const PredictedTable table = predict_apst_table(driver_inputs(*c, machine), c->driver_copy);
    if (!table.command_sent)
        return;
    // Whatever comes of it, the kernel does not tell anybody.
    static_cast<void>(command(c, "set-features", by_driver, [&] {
        ++c->set_features;
        const std::uint32_t status = c->refuses_apst ? invalid_field : 0;
        if (programmed)
            programmed(*c, table.feature, status);
        if (status != 0)
            return nvme_status(status);
        c->apst = table.feature;
        return KernelAnswer{};
    }));
}

KernelAnswer SimulatedKernel::write_tolerance(const Held& c, const LatencyTolerance& tolerance, bool by_us)
{
    const std::lock_guard lock(time_);
    time_.step(fmt::format("{} is written {}", c->name, tolerance.kernel_text()));
    if (!c->tolerance_file)
        return error_number(ENOENT);
    {
        const PmQosLock pm_qos(*this, c->name);
        if (!c->tolerance_file)
            return error_number(ENODEV);
        if (c->tolerance != tolerance) { // else the core does not even call the driver
            const LatencyTolerance before = std::exchange(c->tolerance, tolerance);
            if (stored)
                stored(*c, before, by_us);
            if (!c->driver_copy.same_effect(tolerance)) {
                c->driver_copy = tolerance;
                // In every other state the value is only stored, and the next initialisation uses it.
                if (c->state == ControllerState::live)
                    program(c, false);
            }
        }
    }
    if (tolerance_written)
        tolerance_written(*c);
    return {};
}

KernelAnswer SimulatedKernel::write_text(const Held& c, std::string_view text, bool by_us)
{
    if (const auto tolerance = tolerance_of_text(text))
        return write_tolerance(c, *tolerance, by_us);
    const std::lock_guard lock(time_);
    return error_number(c->tolerance_file ? EINVAL : ENOENT);
}

KernelAnswer SimulatedKernel::read_tolerance(const Held& c)
{
    time_.step(c->name + ": its tolerance is read");
    if (!c->tolerance_file)
        return error_number(ENOENT);
    const PmQosLock pm_qos(*this, c->name);
    return c->tolerance_file ? text_answer(c->tolerance.kernel_text() + "\n") : error_number(ENODEV);
}

KernelAnswer SimulatedKernel::get_feature(const Held& c, unsigned feature, std::uint32_t length)
{
    return command(c, "get-feature", false, [&] {
        if (feature != 0x0c || !c->drive.apst_supported())
            return nvme_status(invalid_field);
        KernelAnswer answer{KernelAnswer::Kind::ok, c->apst.enabled ? 1U : 0U, std::vector<std::uint8_t>(length)};
        for (std::size_t i = 0; i < answer.buffer.size() && i < apst_table_size; ++i)
            answer.buffer[i] = static_cast<std::uint8_t>(c->apst.entries[i / 8].raw >> (8 * (i % 8)));
        return answer;
    });
}

KernelAnswer SimulatedKernel::call(const Held& c, const std::string& request)
{
    const std::lock_guard lock(time_);
    std::istringstream words(request);
    std::string verb;
    words >> verb;
    if (verb == "identify")
        return command(c, verb, false, [&] {
            return KernelAnswer{KernelAnswer::Kind::ok, 0,
                                identify_page(c->drive, c->id.serial, c->id.cntlid, c->id.subsystem_nqn)};
        });
    if (verb == "get-feature") {
        unsigned feature = 0;
        unsigned select = 0;
        std::uint32_t length = 0;
        words >> feature >> select >> length;
        return get_feature(c, feature, length);
    }
    std::string argument;
    words >> argument;
    if (verb == "read-attribute") {
        const auto text = c->gone ? std::nullopt : attribute_text(*c, argument);
        return text ? text_answer(*text) : error_number(ENOENT);
    }
    if (verb == "read-tolerance")
        return read_tolerance(c);
    return write_text(c, argument, true);
}

} // namespace nvmepolicy
