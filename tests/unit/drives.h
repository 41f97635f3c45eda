// SPDX-License-Identifier: LGPL-2.1-or-later
// The captured drives in tests/drives, and what the core's tests ask about them. Core only: no host, no simulation.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nvmepolicy/decide_apst.h"
#include "nvmepolicy/drive_file.h"
#include "nvmepolicy/verify.h"

namespace nvmepolicy {

inline std::filesystem::path drives_directory()
{
    return std::filesystem::path(NVMEPOLICY_SOURCE_DIR) / "tests/drives";
}

inline std::string content(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> drive_slugs()
{
    std::vector<std::string> slugs;
    for (const auto& entry : std::filesystem::directory_iterator(drives_directory()))
        if (entry.path().extension() == ".json")
            slugs.push_back(entry.path().stem().string());
    std::sort(slugs.begin(), slugs.end());
    return slugs;
}

/// A slug as the name of a test.
inline std::string slug_name(const testing::TestParamInfo<std::string>& row)
{
    std::string name = row.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

inline DriveFile drive_from(const std::string& slug)
{
    const auto drive = parse_drive_file(slug, content(drives_directory() / (slug + ".json")));
    EXPECT_TRUE(drive) << drive.error().text();
    return drive ? *drive : DriveFile{};
}

inline PowerState operational(int index)
{
    PowerState state;
    state.index = index;
    state.max_power = Microwatts{6'000'000};
    return state;
}

/// A sleep state by its latencies in microseconds; 0 is unreported, as in the drive's page.
inline PowerState sleep_state(int index, std::int64_t entry_us, std::int64_t exit_us)
{
    const auto reported = [](std::int64_t us) { return us == 0 ? std::nullopt : std::optional{Microseconds{us}}; };
    PowerState state;
    state.index = index;
    state.max_power = Microwatts{50'000};
    state.entry_latency = reported(entry_us);
    state.exit_latency = reported(exit_us);
    state.operational = false;
    return state;
}

/// A controller with these states, as it is read on a machine that booted with the kernel's defaults. Its table is the
/// one that the kernel makes of `tolerance`.
inline Controller controller_with(std::vector<PowerState> states, const LatencyTolerance& tolerance, const Machine& machine,
                                  ApstQuirks in_the_kernel = {})
{
    IdentifyController id;
    id.serial = "S7U8NJ0X000001";
    id.model = "Samsung SSD 990 EVO Plus 4TB";
    id.apsta = 1;
    id.npss = static_cast<std::uint8_t>(states.size() - 1);
    id.power_states = std::move(states);
    Controller c;
    c.name = "nvme0";
    c.id = {"nqn.1994-11.com.samsung:nvme:990EVOPlus:M.2:S7U8NJ0X000001", id.serial, 1};
    c.model = id.model;
    c.transport = "pcie";
    c.state = ControllerState::live;
    c.identify = id;
    c.tolerance = std::optional{tolerance};
    ApstTableInputs inputs = kernel_inputs(c, machine);
    inputs.quirks = in_the_kernel;
    c.apst = std::optional{predict_apst_table(inputs, tolerance).feature};
    return c;
}

inline Controller controller_of(const DriveFile& drive, const LatencyTolerance& tolerance, const Machine& machine,
                                ApstQuirks in_the_kernel = {})
{
    Controller c = controller_with(drive.power_states, tolerance, machine, in_the_kernel);
    IdentifyController id = *c.identify;
    id.model = drive.model;
    id.firmware = drive.firmware;
    id.npss = static_cast<std::uint8_t>(drive.npss);
    id.apsta = drive.apst_supported() ? 1 : 0;
    id.vendor_id = drive.pci_vendor_id.value_or(0);
    c.model = drive.model;
    c.firmware = drive.firmware;
    c.pci_vendor_id = drive.pci_vendor_id;
    c.pci_device_id = drive.pci_device_id;
    c.identify = id;
    return c;
}

/// Linux as Debian ships it, on AC.
inline Machine machine_at_boot(std::optional<std::uint64_t> default_ps_max_latency_us = 100000)
{
    Machine machine;
    machine.default_ps_max_latency_us = default_ps_max_latency_us;
    return machine;
}

/// A question with everything in it by value, to be changed one thing at a time.
struct Case {
    Machine machine = machine_at_boot();
    Controller controller;
    ControllerPolicy policy{builtin_profiles(), {}, {}, {}, {}};
    Wish wish;
    std::vector<MeasuredWake> measured;
    std::optional<LedgerEntry> ledger;

    [[nodiscard]] ApstQuestion question() const
    {
        return {controller, machine, policy, wish, measured, ledger ? &*ledger : nullptr};
    }
    [[nodiscard]] ApstDecision decide() const { return decide_apst(question()); }
    [[nodiscard]] Verdict verify() const { return verify_apst(question(), decide()); }
    [[nodiscard]] Plan plan() const { return plan_apst(question(), decide(), verify()); }
    /// A numeric bound from the profile, on AC.
    Case& bound(Microseconds limit)
    {
        policy.profiles.at("balanced").max_wake_latency.value = {limit};
        return *this;
    }
    /// We wrote this value, and the drive follows.
    Case& kernel_took(const LatencyTolerance& tolerance, ApstQuirks in_the_kernel = {})
    {
        if (!ledger) {
            ledger.emplace();
            ledger->first = **controller.tolerance;
        }
        ledger->ours = tolerance;
        controller.tolerance = std::optional{tolerance};
        ApstTableInputs inputs = kernel_inputs(controller, machine);
        inputs.quirks = in_the_kernel;
        controller.apst = std::optional{predict_apst_table(inputs, tolerance).feature};
        return *this;
    }
};

inline LatencyTolerance us(std::int64_t limit)
{
    return LatencyTolerance::of(Microseconds{limit});
}

inline Case case_of(const DriveFile& drive, const LatencyTolerance& tolerance = us(100000))
{
    Case c;
    c.controller = controller_of(drive, tolerance, c.machine);
    return c;
}
inline Case case_of(const std::string& slug, const LatencyTolerance& tolerance = us(100000))
{
    return case_of(drive_from(slug), tolerance);
}
inline Case case_of(std::vector<PowerState> states, const LatencyTolerance& tolerance = us(100000))
{
    Case c;
    c.controller = controller_with(std::move(states), tolerance, c.machine);
    return c;
}

inline std::vector<int> unwanted_states(const ApstDecision& decision)
{
    std::vector<int> states;
    for (const UnwantedState& unwanted : decision.unwanted)
        states.push_back(unwanted.state);
    return states;
}

/// Raw entries as far as the drive has states.
inline std::vector<std::uint64_t> raw_entries(const ApstFeature& table, std::size_t states)
{
    std::vector<std::uint64_t> raw;
    for (std::size_t i = 0; i < states; ++i)
        raw.push_back(table.entries[i].raw);
    return raw;
}

inline void PrintTo(const LatencyTolerance& tolerance, std::ostream* out)
{
    *out << tolerance.kernel_text();
}

} // namespace nvmepolicy
