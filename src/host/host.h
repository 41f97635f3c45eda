// SPDX-License-Identifier: LGPL-2.1-or-later
// The seam between deciding and the world. LinuxHost stands behind it on a real machine, SimulatedHost in memory; observe
// and apply know neither. Everything here hands out and takes raw texts and bytes; what they mean is decode's business.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nvmepolicy/result.h"
#include "nvmepolicy/units.h"

namespace nvmepolicy {

/// A directory below /sys, opened once. Whatever takes its name later, this object keeps meaning the one it was opened
/// on, and answers RefusalKind::gone once that has left. Reading never sends a command to a drive: the one attribute
/// where the kernel would, the latency tolerance, is refused here and belongs to ControllerDevice.
class Directory {
public:
    virtual ~Directory() = default;
    /// The path as a person would type it, for messages.
    [[nodiscard]] virtual const std::string& path() const = 0;
    /// A number that no other directory has or will have while the machine runs. Source: kernfs node ids.
    [[nodiscard]] virtual std::uint64_t object() const = 0;
    /// The text of an attribute as the kernel gave it, with its newline.
    [[nodiscard]] virtual Result<std::string> read(const std::string& attribute) const = 0;
    /// The names in this directory or in one below it, sorted.
    [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& below = ".") const = 0;
};

/// Whether what was decided is still what is wanted.
using StillWanted = std::function<bool()>;

/// What Get Features returned.
struct FeatureReply {
    std::uint32_t result = 0;         ///< dword 0 of the completion
    std::vector<std::uint8_t> buffer; ///< as long as asked for
};

/// What one controller can be asked and told. Each call may take as long as a sick controller likes, up to the deadline
/// that the host was made with; then it returns RefusalKind::timed_out, and so do all later calls on this object.
/// The commands' own timeouts are the kernel's and never shortened: on PCIe a timed-out admin command resets the controller.
class ControllerDevice {
public:
    virtual ~ControllerDevice() = default;
    /// Identify, CNS 01h: 4096 bytes.
    [[nodiscard]] virtual Result<std::vector<std::uint8_t>> identify_controller() = 0;
    /// Get Features, NSID 0. `select`: 0 current, 1 default, 2 saved, 3 capabilities.
    [[nodiscard]] virtual Result<FeatureReply> get_feature(std::uint8_t feature, std::uint8_t select, std::uint32_t length) = 0;
    /// An attribute below the controller's directory that may have to be waited for: those of a queue that is frozen.
    [[nodiscard]] virtual Result<std::string> read_attribute(const std::string& attribute) = 0;
    /// `power/pm_qos_latency_tolerance_us`. It sits behind one lock for all devices of the machine.
    [[nodiscard]] virtual Result<std::string> read_tolerance() = 0;
    /// Success says that the kernel took the value, not that the drive follows it. `still_wanted` is asked once it is our turn
    /// at the lock, which may be a minute later; empty: it is.
    [[nodiscard]] virtual Result<void> write_tolerance(const LatencyTolerance& tolerance, const StillWanted& still_wanted) = 0;
};

class Host {
public:
    virtual ~Host() = default;
    /// `path` is relative to /sys: "class/nvme/nvme0".
    [[nodiscard]] virtual Result<std::unique_ptr<Directory>> open_directory(const std::string& path) = 0;
    /// The controller that `directory` is open on. Opening sends nothing.
    [[nodiscard]] virtual std::unique_ptr<ControllerDevice> open_device(const Directory& directory,
                                                                        const std::string& name) = 0;
    /// Controllers, subsystems and disks below this host are not real.
    [[nodiscard]] virtual bool simulated() const = 0;
};

} // namespace nvmepolicy
