// SPDX-License-Identifier: LGPL-2.1-or-later
#include "look.h"

#include <algorithm>
#include <fmt/format.h>

#include "command_line/usage.h"
#include "host/installation.h"
#include "host/linux_host.h"
#include "host/observe.h"
#include "host/policy_store.h"
#include "nvmepolicy/wording.h"
#include "simulation/load_drives.h"

namespace nvmepolicy {
namespace {

/// A person waits for the answer; drives that take longer are reported as such.
constexpr std::chrono::milliseconds time_to_answer{1500};

struct Stage {
    std::unique_ptr<Host> host;
    std::unique_ptr<LedgerStore> ledger;
    std::unique_ptr<BreakerStore> breaker;
};

std::optional<Stage> set_stage(const LookOptions& options, const Installation& here)
{
    if (options.simulate) {
        LoadedDrives drives = load_drives(*options.simulate);
        for (const Refusal& error : drives.errors)
            complain("nvmepolicyctl", error.text());
        if (!drives.host)
            return std::nullopt;
        return Stage{std::move(drives.host), std::make_unique<LedgerStore>(), std::make_unique<BreakerStore>()};
    }
    auto ledger = LedgerStore::open(here.runtime_directory + "/originals.json");
    if (!ledger) { // Looking is what one needs most when something is damaged.
        complain("nvmepolicyctl", "looking without the record of earlier runs: " + ledger.error().text());
        ledger = std::make_unique<LedgerStore>();
    }
    std::optional<Refusal> complaint;
    auto breaker = BreakerStore::read(here.state_directory, complaint);
    if (complaint)
        complain("nvmepolicyctl", complaint->text());
    return Stage{std::make_unique<LinuxHost>(Patience{time_to_answer}, here.device_program()), *std::move(ledger),
                 std::move(breaker)};
}

bool is_there(Host& host, const std::string& name)
{
    const auto names = controller_names(host);
    if (!names) {
        complain("nvmepolicyctl", names.error().text());
        return false;
    }
    if (std::ranges::find(*names, name) != names->end())
        return true;
    complain_about_controller(name, *names);
    return false;
}

} // namespace

void complain_about_controller(const std::string& name, const std::vector<std::string>& names)
{
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    complain("nvmepolicyctl",
             fmt::format("there is no controller \"{}\"{}; there {}", printable(name), suggestion(name, candidates),
                         names.empty() ? "are none" : fmt::format("are {}", fmt::join(names, ", "))));
}

bool report_policy_errors(const PolicyReading& reading)
{
    for (const Refusal& error : reading.errors)
        complain("nvmepolicyctl", error.text());
    return reading.errors.empty();
}

std::optional<Look> look_around(const LookOptions& options, const std::optional<std::string>& only)
{
    const Installation here = this_installation();
    PolicyReading reading = load_policy({.vendor_directory = here.vendor_directory}, options.config);
    if (!report_policy_errors(reading))
        return std::nullopt;
    auto stage = set_stage(options, here);
    if (!stage || (only && !is_there(*stage->host, *only)))
        return std::nullopt;
    if (!options.simulate && !options.json)
        complain("nvmepolicyctl", "looking at the drives directly, without the daemon");
    return Look{run_round(*stage->host, reading.policy, *stage->ledger, *stage->breaker, Intent::look, only),
                stage->host->simulated()};
}

} // namespace nvmepolicy
