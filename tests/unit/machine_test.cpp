// SPDX-License-Identifier: LGPL-2.1-or-later
// What is read of the machine as a whole: power supplies, module parameters, who is there.
#include "host/observe.h"

#include <set>

#include "watched_host.h"

namespace nvmepolicy {
namespace {

/// Directories by path, with attributes by name.
class PaperHost : public Host {
public:
    std::map<std::string, std::map<std::string, Result<std::string>>> directories;
    [[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override
    {
        const auto found = directories.find(path);
        if (found == directories.end())
            return Refusal{"/sys/" + path, "", "there is no such file (ENOENT)", RefusalKind::absent};
        return std::unique_ptr<Directory>(std::make_unique<Paper>("/sys/" + path, found->second));
    }
    [[nodiscard]] std::unique_ptr<ControllerDevice> open_device(const Directory&, const std::string&) override { return {}; }
    [[nodiscard]] bool simulated() const override { return true; }

private:
    class Paper : public Directory {
    public:
        Paper(std::string path, std::map<std::string, Result<std::string>> texts)
            : path_(std::move(path))
            , texts_(std::move(texts))
        {
        }
        [[nodiscard]] const std::string& path() const override { return path_; }
        [[nodiscard]] std::uint64_t object() const override { return 0; }
        [[nodiscard]] Result<std::string> read(const std::string& attribute) const override
        {
            const auto found = texts_.find(attribute);
            return found == texts_.end() ? Result<std::string>(Refusal{attribute, "", "absent", RefusalKind::absent})
                                         : found->second;
        }
        [[nodiscard]] Result<std::vector<std::string>> list(const std::string&) const override
        {
            std::set<std::string> names;
            for (const auto& [name, text] : texts_)
                names.insert(name.substr(0, name.find('/')));
            return std::vector<std::string>(names.begin(), names.end());
        }

    private:
        std::string path_;
        std::map<std::string, Result<std::string>> texts_;
    };
};

struct SupplyRow {
    std::string name;
    std::map<std::string, Result<std::string>> supplies;
    PowerSource source;
};
void PrintTo(const SupplyRow& row, std::ostream* out)
{
    *out << row.name;
}
Result<std::string> text(const char* value)
{
    return std::string(value) + "\n";
}

class PowerSupplies : public testing::TestWithParam<SupplyRow> {};
TEST_P(PowerSupplies, TellWhetherTheMachineRunsOnBattery)
{
    PaperHost host;
    host.directories["class/power_supply"] = GetParam().supplies;
    std::vector<Refusal> complaints;
    EXPECT_EQ(observe_machine(host, complaints).power_source, GetParam().source);
}
INSTANTIATE_TEST_SUITE_P(
    With, PowerSupplies,
    testing::Values(SupplyRow{"nothing", {}, PowerSource::ac},
                    SupplyRow{"mains_online",
                              {{"AC/type", text("Mains")}, {"AC/online", text("1")}, {"BAT0/type", text("Battery")}},
                              PowerSource::ac},
                    SupplyRow{"mains_offline",
                              {{"AC/type", text("Mains")}, {"AC/online", text("0")}, {"BAT0/type", text("Battery")}},
                              PowerSource::battery},
                    SupplyRow{"battery_alone", {{"BAT0/type", text("Battery")}}, PowerSource::battery},
                    SupplyRow{"usb_c_charger",
                              {{"ucsi/type", text("USB")}, {"ucsi/online", text("1")}, {"BAT0/type", text("Battery")}},
                              PowerSource::ac},
                    SupplyRow{"usb_pd_unplugged",
                              {{"ucsi/type", text("USB_PD")}, {"ucsi/online", text("0")}, {"BAT0/type", text("Battery")}},
                              PowerSource::battery},
                    SupplyRow{"mouse", {{"hid/type", text("Battery")}, {"hid/scope", text("Device")}}, PowerSource::ac},
                    SupplyRow{"mouse_and_laptop",
                              {{"hid/type", text("Battery")}, {"hid/scope", text("Device")}, {"BAT0/type", text("Battery")}},
                              PowerSource::battery},
                    SupplyRow{"empty_bay", {{"BAT1/type", text("Battery")}, {"BAT1/present", text("0")}}, PowerSource::ac},
                    SupplyRow{"ups", {{"ups/type", text("UPS")}, {"ups/online", text("1")}}, PowerSource::ac},
                    SupplyRow{
                        "garbage",
                        {{"AC/type", text("\x1b")}, {"AC/online", text("1")}, {"BAT0/type", Result<std::string>(Refusal{})}},
                        PowerSource::ac}),
    [](const auto& row) { return row.param.name; });

TEST(ModuleParameters, AreReadAsNumbersOrComplainedAbout)
{
    PaperHost host;
    host.directories["module/nvme_core/parameters"] = {{"default_ps_max_latency_us", text("5500")},
                                                       {"apst_primary_timeout_ms", text("0")},
                                                       {"apst_primary_latency_tol_us", text("18446744073709551615")},
                                                       {"apst_secondary_timeout_ms", text("-1")},
                                                       {"force_apst", text("Y")}};
    std::vector<Refusal> complaints;
    const Machine machine = observe_machine(host, complaints);
    EXPECT_EQ(machine.default_ps_max_latency_us, 5500U);
    EXPECT_EQ(machine.apst, (ApstParameters{0, UINT64_MAX, 2000, 100000}));
    EXPECT_TRUE(machine.force_apst);
    ASSERT_EQ(complaints.size(), 1U);
    EXPECT_EQ(complaints[0].text(), "/sys/module/nvme_core/parameters/apst_secondary_timeout_ms: \"-1\": not a decimal number "
                                    "from 0 to 18446744073709551615");
}

TEST(AMachineWithoutTheDriver, IsNoReasonToComplain)
{
    PaperHost host;
    std::vector<Refusal> complaints;
    const Machine machine = observe_machine(host, complaints);
    EXPECT_EQ(machine.default_ps_max_latency_us, std::nullopt);
    EXPECT_EQ(machine.apst, ApstParameters{});
    EXPECT_TRUE(complaints.empty());
    EXPECT_TRUE(controller_names(host)->empty());
    EXPECT_TRUE(observe_subsystems(host).empty());
}

TEST(ControllerNames, AreControllersInNaturalOrder)
{
    PaperHost host;
    for (const char* name :
         {"nvme10", "nvme2", "nvme0", "nvme-fabrics", "nvme0n1", "nvme0c0n1", "nvme", "nvmex", "xnvme1", "power"})
        host.directories["class/nvme"].emplace(name, text(""));
    EXPECT_EQ(*controller_names(host), (std::vector<std::string>{"nvme0", "nvme2", "nvme10"}));
}

TEST(Subsystems, AreKnownByTheirLinksNotByTheirNumbers)
{
    PaperHost host;
    host.directories["class/nvme-subsystem"] = {{"nvme-subsys0", text("")}, {"nvme-subsys10", text("")}, {"power", text("")}};
    host.directories["class/nvme-subsystem/nvme-subsys0"] = {{"subsysnqn", text("nqn.a")}, {"iopolicy", text("round-robin")},
                                                             {"nvme10", text("")},         {"nvme3", text("")},
                                                             {"nvme0n1", text("")},        {"nvme0c3n1", text("")}};
    const auto found = observe_subsystems(host);
    ASSERT_EQ(found.size(), 1U) << "nvme-subsys10 left between two calls";
    EXPECT_EQ(found[0], (Subsystem{"nvme-subsys0", "nqn.a", "round-robin", {"nvme3", "nvme10"}, {"nvme0n1"}}));
}

} // namespace
} // namespace nvmepolicy
