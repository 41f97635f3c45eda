// SPDX-License-Identifier: LGPL-2.1-or-later
// Any bytes as a drive file: no crash, printable messages, and a drive that comes back from its own file.
#include <cstdint>

#include "nvmepolicy/drive_file.h"
#include "require.h"

using namespace nvmepolicy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    const std::string text(reinterpret_cast<const char*>(bytes), size);
    const auto drive = parse_drive_file("drive.json", text);
    if (!drive) {
        require_printable(drive.error().text(), "a message that is not printable");
        return 0;
    }
    require_printable(drive->model, "a model that is not printable");
    const std::string formatted = format_drive_file(*drive);
    const auto again = parse_drive_file("again.json", formatted);
    require(again.has_value(), "a formatted drive file that is refused", formatted);
    require(*again == *drive, "a drive that does not come back", formatted);
    require(format_drive_file(*again) == formatted, "a drive that is formatted otherwise", formatted);

    for (const LatencyTolerance& tolerance : {LatencyTolerance::of(Microseconds{0}), LatencyTolerance::of(Microseconds{25000}),
                                              LatencyTolerance::of(largest_tolerance), LatencyTolerance::any()}) {
        const PredictedTable table = predict_apst_table(drive->inputs({}), tolerance);
        require(table.command_sent == (drive->apst_supported() && drive->npss <= highest_npss), "a command out of place", text);
        require(!table.command_sent
                    || table.feature.enabled == (tolerance.limit() != Microseconds{0} && !drive->quirks.no_apst),
                "APSTE is wrong", text);
    }
    return 0;
}
