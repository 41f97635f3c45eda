// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "ask.h"
#include "command_line/usage.h"
#include "commands.h"
#include "look_options.h"
#include "nvmepolicy/units.h"
#include "report/fields.h"
#include "report/table.h"

namespace nvmepolicy {
namespace {

struct ProfileOptions {
    std::string bus = "system";
    std::string name;
    bool names = false;
};

std::string bound_word(const Document& profile, const char* key)
{
    const auto limit = number_of(profile, key);
    return limit ? show(Microseconds{*limit}) : "any";
}

void print_profiles(const Document& manager, bool names)
{
    const std::string active = text_of(manager, "ActiveProfile");
    const std::string base = text_of(manager, "BaseProfile");
    Table table({"", "PROFILE", "ON AC", "ON BATTERY", ""});
    for (const Document& profile : member(manager, "Profiles")) {
        const std::string name = text_of(profile, "Profile");
        if (names)
            fmt::print("{}\n", name);
        table.add({name == active ? "*" : "", name, bound_word(profile, "MaxWakeLatencyMicroseconds"),
                   bound_word(profile, "MaxWakeLatencyOnBatteryMicroseconds"),
                   name == base && base != active ? "set; a hold asks for another" : ""});
    }
    if (!names)
        fmt::print("{}", table.text());
}

/// Runs `print` on the properties of the manager.
int with_properties(const std::string& bus, const std::function<void(const Document&)>& print)
{
    return with_service(bus, [&](ServiceClient& client) -> Result<void> {
        const auto manager = client.properties();
        if (!manager)
            return manager.error();
        print(*manager);
        return {};
    });
}

} // namespace

void add_profile(CLI::App& app, Chosen& chosen)
{
    CLI::App& command = *app.add_subcommand("profile", "List the profiles, or get or set the one in force");
    command.require_subcommand(1);
    const auto options = std::make_shared<ProfileOptions>();

    CLI::App& list = *command.add_subcommand("list", "All profiles with their bounds; * marks the one in force");
    add_bus_option(list, options->bus);
    list.add_flag("--names", options->names, "Only the names")->group(""); // for the completions of shells
    list.callback([options, &chosen] {
        chosen = [options] {
            return with_properties(options->bus, [&](const Document& m) { print_profiles(m, options->names); });
        };
    });

    CLI::App& get = *command.add_subcommand("get", "The profile in force, holds counted in");
    add_bus_option(get, options->bus);
    get.callback([options, &chosen] {
        chosen = [options] {
            return with_properties(options->bus, [](const Document& m) { fmt::print("{}\n", text_of(m, "ActiveProfile")); });
        };
    });

    CLI::App& set = *command.add_subcommand("set", "Set the profile; it is kept over restarts");
    set.add_option("profile", options->name, "An existing profile")->required()->type_name("NAME");
    add_bus_option(set, options->bus);
    set.callback([options, &chosen] {
        chosen = [options] {
            return with_service(options->bus, [&](ServiceClient& client) { return client.set_profile(options->name); });
        };
    });
}

} // namespace nvmepolicy
