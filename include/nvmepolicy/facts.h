// SPDX-License-Identifier: LGPL-2.1-or-later
// What is true right now: controllers, their subsystems and disks, and the machine they are in.
// Facts are read anew for each look; what could not be read is a Refusal, never a guess and never a zero.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvmepolicy/apst_table.h"
#include "nvmepolicy/result.h"
#include "nvmepolicy/units.h"

namespace nvmepolicy {

/// Which controller this is, whatever number the kernel gave it this time. Over fabrics a target may hand out another
/// controller id at each reconnect of one and the same controller object, so there the path stands in for it.
struct ControllerId {
    std::string subsystem_nqn; ///< `subsysnqn`
    std::string serial;        ///< `serial`, without its padding; bytes that cannot be shown as \xff
    std::uint16_t cntlid = 0;  ///< `cntlid` of a PCIe controller, else 0
    std::string path{};        ///< `address` of a fabrics controller, without `src_addr`, else empty
    friend auto operator<=>(const ControllerId&, const ControllerId&) = default;
    friend bool operator==(const ControllerId&, const ControllerId&) = default;
};

/// State of the kernel's controller object, as `state` shows it. Source: nvme_sysfs_show_state().
enum class ControllerState {
    created,    ///< "new": probed, nothing known of it yet.
    live,       ///< Serves commands. Only now may it be asked anything.
    resetting,  ///< On its way to connecting, or back to live.
    connecting, ///< Being initialised; for fabrics also: trying to reach the target, for minutes.
    deleting,   ///< Will be gone, or is.
    dead,       ///< 6.12: a reset failed; it stays like that without any event.
    unknown,    ///< A word that we do not know.
};
[[nodiscard]] std::string show(ControllerState state);

/// What Identify Controller (CNS 01h) says, as far as we use it. Source: NVMe 1.4c, figure 247.
struct IdentifyController {
    std::uint16_t vendor_id = 0;           ///< VID
    std::uint16_t subsystem_vendor_id = 0; ///< SSVID
    std::string serial;                    ///< SN, printable, without padding
    std::string model;                     ///< MN, printable, without padding
    std::string firmware;                  ///< FR, printable, without padding
    std::uint16_t cntlid = 0;              ///< CNTLID
    std::uint32_t version = 0;             ///< VER, for example 0x00010400; 0 before NVMe 1.2
    std::string subsystem_nqn;             ///< SUBNQN; empty on old drives
    bool multi_controller = false;         ///< CMIC bit 1
    std::uint16_t oncs = 0;                ///< ONCS
    std::uint8_t vwc = 0;                  ///< VWC; bit 0: a volatile write cache is present
    std::uint8_t apsta = 0;                ///< APSTA; the kernel takes any bit for "supported"
    std::uint8_t npss = 0;                 ///< NPSS, index of the last state, as reported: may be above 31
    std::vector<PowerState> power_states;  ///< 0 … min(NPSS, 31)
    friend bool operator==(const IdentifyController&, const IdentifyController&) = default;
};

/// The kernel quirks that concern APST, and how we know.
struct QuirkKnowledge {
    enum class Source {
        none,         ///< Nothing known; only the table read back can tell.
        kernel,       ///< `quirks` of the controller (Linux 7.0): certain.
        device_table, ///< By vendor, device and model, as Linux 6.12 lists them: likely; other kernels list others.
    };
    ApstQuirks quirks;
    Source source = Source::none;
    friend bool operator==(const QuirkKnowledge&, const QuirkKnowledge&) = default;
};

/// A disk behind a controller: a plain disk, or one path of a multipath head.
struct Leaf {
    std::string name;                           ///< nvme0n1, or nvme0c1n1 for a hidden path disk
    bool path = false;                          ///< true: a path; its head has the node
    Result<std::string> cache_mode = Refusal{}; ///< `queue/write_cache`: "write back" or "write through"
    std::optional<bool> fua;                    ///< `queue/fua`
    std::vector<std::string> holders;           ///< what is stacked directly on the disk or its partitions, for example dm-0
    std::string ana_state;                      ///< `ana_state` of a path; empty without ANA
    friend bool operator==(const Leaf&, const Leaf&) = default;
};

/// One controller.
struct Controller {
    std::string name; ///< nvme0: where it is now, not who it is
    ControllerId id;
    /// Tells this kernel object from any other, also from a later one of that identity and name.
    std::uint64_t object = 0;
    std::string model;
    std::string firmware;
    std::string transport; ///< pcie, tcp, rdma, fc, loop
    std::string address;   ///< PCI function, or traddr=…,trsvcid=…
    ControllerState state = ControllerState::unknown;
    std::optional<std::uint16_t> pci_vendor_id;
    std::optional<std::uint16_t> pci_device_id;

    Result<IdentifyController> identify = Refusal{};
    /// `power/pm_qos_latency_tolerance_us`; no value inside: the file does not exist.
    Result<std::optional<LatencyTolerance>> tolerance = Refusal{};
    /// Get Features 0Ch; no value inside: not asked, because the drive does not support it.
    Result<std::optional<ApstFeature>> apst = Refusal{};
    QuirkKnowledge quirks;
    std::vector<Leaf> leaves;
};

/// An NVM subsystem and how it is reached.
struct Subsystem {
    std::string name; ///< nvme-subsys0
    std::string nqn;
    std::string iopolicy;                 ///< empty where the kernel has none
    std::vector<std::string> controllers; ///< nvme0, nvme1: by the links, never by the number
    std::vector<std::string> heads;       ///< disks with a node that several paths lead to
    friend bool operator==(const Subsystem&, const Subsystem&) = default;
};

/// Where the machine's power comes from. A machine without batteries and mains supplies is on AC.
enum class PowerSource { ac, battery };

/// The machine around the controllers.
struct Machine {
    PowerSource power_source = PowerSource::ac;
    /// nvme_core's default_ps_max_latency_us, the tolerance of new controllers; none when the module is not loaded.
    std::optional<std::uint64_t> default_ps_max_latency_us;
    bool force_apst = false;
    ApstParameters apst;
};

/// Wake latencies that were measured on this very drive and firmware, by power state.
struct MeasuredWake {
    int state = 0;
    Microseconds wake_latency{0};
    friend bool operator==(const MeasuredWake&, const MeasuredWake&) = default;
};

} // namespace nvmepolicy
