// SPDX-License-Identifier: LGPL-2.1-or-later
// From a host to facts. Knows attribute names; knows no policy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host.h"
#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// One controller, with the directory and the device that its facts came from: a write goes through the same ones.
struct Sighting {
    Controller controller;
    std::unique_ptr<Directory> directory;
    std::unique_ptr<ControllerDevice> device;
};

/// Names in `class/nvme`, nvme2 before nvme10. No such class: no controllers, the driver is not loaded.
[[nodiscard]] Result<std::vector<std::string>> controller_names(Host& host);

/// Looks at one controller. Refuses only when it cannot be identified (it has left, or is not known to the kernel yet);
/// what else could not be read is a Refusal in its place.
[[nodiscard]] Result<Sighting> observe_controller(Host& host, const std::string& name);

/// Only what a restore needs: a controller's identity as its directory has it, and its tolerance. It is asked for its
/// APST table first, since a drive that does not answer must not be let near the file, whose lock everybody shares.
[[nodiscard]] Result<Sighting> observe_tolerance(Host& host, std::unique_ptr<Directory> directory, const std::string& name);

/// Reads the file alone; no value inside: it does not exist.
[[nodiscard]] Result<std::optional<LatencyTolerance>> read_tolerance(const Sighting& sighting);

/// Reads tolerance and APST table again, through the same directory and device. A controller that turns out to have left
/// meanwhile gets state `deleting`, and refusals of kind `gone`.
void observe_apst(Sighting& sighting);

/// Reads what can be said of the controller's disks. To be done last: a frozen queue may hold it up, and with it everything
/// that is asked of this device later.
void observe_leaves(Sighting& sighting);

/// Who the opened directory belongs to, read anew.
[[nodiscard]] Result<ControllerId> observe_identity(const Directory& directory);

/// Power source and module parameters. What cannot be read is taken as the kernel's default, and said in `complaints`.
[[nodiscard]] Machine observe_machine(Host& host, std::vector<Refusal>& complaints);

/// The module parameters alone. They may be changed at any time, and no event tells.
void observe_parameters(Host& host, Machine& machine, std::vector<Refusal>& complaints);

/// Subsystems with their controllers and heads, by links only: nvme-subsys0 need not hold nvme0.
[[nodiscard]] std::vector<Subsystem> observe_subsystems(Host& host);

} // namespace nvmepolicy
