// SPDX-License-Identifier: LGPL-2.1-or-later
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command_line/usage.h"
#include "commands.h"
#include "host/text_file.h"
#include "report/json.h"
#include "report/text.h"

namespace nvmepolicy {
namespace {

struct PredictOptions {
    std::string drive;
    std::string tolerance = "100000";
    bool json = false;
};

int predict(const PredictOptions& options)
{
    const auto tolerance = parse_tolerance("--tolerance", options.tolerance);
    if (!tolerance) {
        complain("nvmepolicyctl", tolerance.error().text());
        return exit_usage;
    }
    const auto text = read_text_file(options.drive, largest_drive_file);
    const auto drive = text ? parse_drive_file(options.drive, *text) : Result<DriveFile>(text.error());
    if (!drive) {
        complain("nvmepolicyctl", drive.error().text());
        return exit_failed;
    }
    const PredictedTable table = predict_apst_table(drive->inputs(ApstParameters{}), *tolerance);
    fmt::print("{}", options.json ? to_text(predict_json(*drive, *tolerance, table)) : predict_text(*drive, *tolerance, table));
    return exit_done;
}

} // namespace

void add_predict(CLI::App& app, Chosen& chosen)
{
    CLI::App& command =
        *app.add_subcommand("predict", "The APST table that the kernel makes for a drive file; needs neither daemon nor drive");
    const auto options = std::make_shared<PredictOptions>();
    command.add_option("--drive", options->drive, "Drive file, as capture writes it")->required()->type_name("FILE");
    command
        .add_option("--tolerance", options->tolerance,
                    "A duration (25ms), a bare number of microseconds as in the kernel's file, any, or auto")
        ->type_name("T")
        ->capture_default_str();
    command.add_flag("--json", options->json, "Print one JSON document");
    command.callback([options, &chosen] { chosen = [options] { return predict(*options); }; });
}

} // namespace nvmepolicy
