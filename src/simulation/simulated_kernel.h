// SPDX-License-Identifier: LGPL-2.1-or-later
// The NVMe driver and the PM QoS core as Linux 6.1 and 6.12 have them, as far as this project meets them.
// tests/vm/cases/same-as-simulated compares what it does with the real ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/uevents.h"
#include "kernel_time.h"
#include "simulated_controller.h"

namespace nvmepolicy {

enum class KernelVersion { linux_6_1, linux_6_12 };

/// What is put into a slot.
struct PluggedDrive {
    DriveFile drive;
    ControllerId id;
};

/// How a system call ends.
struct KernelAnswer {
    enum class Kind { ok, error_number, nvme_status } kind = Kind::ok;
    std::uint32_t number = 0; ///< command result, errno, or NVMe status
    std::vector<std::uint8_t> buffer{};
};

/// A system call that somebody waits for, or has given up waiting for.
struct PendingCall {
    bool returned = false;
    KernelAnswer answer;
};

class SimulatedKernel {
public:
    using Held = std::shared_ptr<SimulatedController>;
    explicit SimulatedKernel(KernelTime& time) : time_(time) {}

    Machine machine{PowerSource::ac, 100000, false, {}}; ///< module parameters and power source
    KernelVersion version = KernelVersion::linux_6_12;
    /// An admin command that takes longer makes the driver reset the controller. Source: nvme_timeout().
    Milliseconds admin_timeout{60'000};
    /// How long a drive needs to activate its firmware; the driver waits for it. Source: nvme_fw_act_work().
    Milliseconds firmware_activation{5'000};
    std::function<void(const Uevent&)> announce;                       ///< a uevent, on the kernel's netlink group
    std::function<void(const SimulatedController&)> tolerance_written; ///< as inotify has it
    /// A process of ours makes a system call, by a request of device_protocol.h.
    std::function<void(const SimulatedController&, const std::string& request, const std::shared_ptr<PendingCall>&)> requested;
    /// A drive has got Set Features 0Ch with this table, and answers with this NVMe status.
    std::function<void(const SimulatedController&, const ApstFeature&, std::uint32_t status)> programmed;
    /// A tolerance file has got a value; `by_us`: through such a request.
    std::function<void(const SimulatedController&, const LatencyTolerance& before, bool by_us)> stored;

    [[nodiscard]] KernelTime& time() const { return time_; }
    [[nodiscard]] Held find(const std::string& name) const;
    [[nodiscard]] std::vector<std::string> names() const;
    /// Held by whoever is inside a tolerance file; everybody else waits.
    [[nodiscard]] bool pm_qos_is_locked() const { return pm_qos_served_ != pm_qos_tickets_; }

    // What befalls the machine. Each takes its time.

    /// Hot-plug. Source: nvme_probe(), nvme_init_ctrl(), nvme_init_ctrl_finish().
    Held probe(const PluggedDrive& plugged);
    /// Hot-unplug. Source: nvme_remove() of a drive that is not there any more: what it has not answered is cancelled first.
    /// One that is there is waited for: its disks take the PM QoS lock to leave, which a write under way holds.
    void remove(const Held& c);
    /// With another firmware, if one is given. Source: nvme_reset_work(), nvme_init_identify().
    void reset(const Held& c, const std::optional<DriveFile>& firmware = {});
    /// Without a reset: no event tells, and nothing is read anew. Source: nvme_fw_act_work().
    void activate_firmware(const Held& c);

    /// A number is not always free again when its controller comes back. Source: nvme_release_subsystem().
    void rename(const std::string& from, const std::string& to);

    // System calls.

    /// A request of device_protocol.h.
    [[nodiscard]] KernelAnswer call(const Held& c, const std::string& request);
    /// Source: pm_qos_latency_tolerance_us_store(), nvme_set_latency_tolerance().
    KernelAnswer write_tolerance(const Held& c, const LatencyTolerance& tolerance, bool by_us = false);
    /// What stands in the file's way: ENOENT, and EINVAL for a text that is no tolerance.
    KernelAnswer write_text(const Held& c, std::string_view text, bool by_us = false);

private:
    class PmQosLock;

    /// One admin command; `execute` is what the drive does. One of the driver's own is not held up by the reset it is part of.
    KernelAnswer command(const Held& c, const std::string& kind, bool by_driver, const std::function<KernelAnswer()>& execute);
    KernelAnswer get_feature(const Held& c, unsigned feature, std::uint32_t length);
    KernelAnswer read_tolerance(const Held& c);
    void identify(const Held& c); ///< by the driver: as part of an initialisation
    void program(const Held& c, bool by_driver);
    void enter(const Held& c, ControllerState state);
    void send(const Held& c, const std::string& action, const std::string& nvme_event = "");
    [[nodiscard]] std::string lowest_free_name() const;

    KernelTime& time_;
    std::map<std::string, Held> controllers_;
    std::uint64_t next_object_ = 1;
    std::uint64_t pm_qos_tickets_ = 0;
    std::uint64_t pm_qos_served_ = 0;
};

} // namespace nvmepolicy
