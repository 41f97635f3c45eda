// SPDX-License-Identifier: LGPL-2.1-or-later
// Drive files: what a drive reports about its power states, as JSON without a serial number. `capture` writes them;
// `predict`, `--simulate` and the tests read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvmepolicy/facts.h"

namespace nvmepolicy {

/// The facts of a drive file. A source often shows only part of them; what it did not show is none.
struct DriveFile {
    std::string slug;
    std::string model;
    std::string firmware;
    std::optional<std::uint16_t> pci_vendor_id, pci_device_id, pci_subsystem_vendor_id;
    std::string nvme_version; ///< as written, "1.4"
    std::optional<std::uint8_t> apsta;
    int npss = 0; ///< 0 … 255
    std::optional<std::uint8_t> vwc;
    std::optional<bool> observed_wce; ///< Get Features 06h, where the source shows it
    ApstQuirks quirks;                ///< what Linux 6.12 applies to this model
    std::vector<PowerState> power_states;

    /// APSTA where known; otherwise a non-operational state is taken as the sign of support.
    [[nodiscard]] bool apst_supported() const;
    /// The predictor's inputs. They refer to this object's states.
    [[nodiscard]] ApstTableInputs inputs(const ApstParameters& parameters) const;
    friend bool operator==(const DriveFile&, const DriveFile&) = default;
};

/// The largest drive file that is read, in bytes.
inline constexpr std::size_t largest_drive_file = std::size_t{1024} * 1024;

/// Reads a drive file (schema_version 1). Unknown keys are allowed: the files carry notes and expectations too.
/// Refuses with the JSON pointer of the value, what was found and what is allowed.
[[nodiscard]] Result<DriveFile> parse_drive_file(const std::string& where, std::string_view text);

/// The table that a drive was found to hold, and the tolerance under which it did.
struct MeasuredTable {
    LatencyTolerance tolerance;
    ApstFeature table;
};

/// The JSON text of a drive file, for `capture`. A measured table becomes the one that the tests expect.
[[nodiscard]] std::string format_drive_file(const DriveFile& drive, const std::optional<MeasuredTable>& measured = {});

/// What `capture` keeps of a controller. No serial number.
[[nodiscard]] Result<DriveFile> capture(const Controller& controller);

/// What the kernel was seen to make of that drive; none where it programs nothing, or not as the tests predict it: by other
/// module parameters than the kernel's own.
[[nodiscard]] std::optional<MeasuredTable> measured_table(const Controller& controller, const ApstParameters& parameters);

} // namespace nvmepolicy
