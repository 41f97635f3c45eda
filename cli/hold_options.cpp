// SPDX-License-Identifier: LGPL-2.1-or-later
#include "hold_options.h"

#include <fmt/format.h>

#include "bus/names.h"
#include "command_line/usage.h"
#include "host/controllers_behind.h"
#include "look_options.h"

namespace nvmepolicy {

std::shared_ptr<HoldOptions> add_hold_options(CLI::App& command)
{
    auto options = std::make_shared<HoldOptions>();
    command.add_option("--profile", options->profile, "Hold this profile, on all drives")->type_name("NAME");
    command
        .add_option("--max-latency", options->max_latency,
                    "Hold a wake latency of at most this (5ms, 900us; 0: no sleep at all)")
        ->type_name("DURATION");
    command
        .add_option("--for", options->path,
                    "The latency only on the drives behind a file, a directory, a mount point or a block device")
        ->type_name("PATH");
    command.add_option("--reason", options->reason, "Why, for whoever lists the holds")->type_name("TEXT");
    add_bus_option(command, options->bus);
    return options;
}

Result<HoldRequest> hold_request(const HoldOptions& options, const std::string& default_reason)
{
    const auto wrong = [](const char* reason) { return Refusal{"", "", reason, RefusalKind::invalid}; };
    if (!options.profile && !options.max_latency)
        return wrong("say what to hold: --profile, --max-latency, or both");
    if (options.path && !options.max_latency)
        return wrong("--for needs --max-latency: a profile is held on all drives");
    HoldRequest request{options.profile, std::nullopt, {}, options.reason.value_or(default_reason)};
    if (!options.reason && request.reason.size() > bus::longest_reason) {
        std::size_t end = bus::longest_reason - 3;
        while (end > 0 && (static_cast<unsigned char>(request.reason[end]) & 0xc0) == 0x80)
            --end; // not in the middle of a character
        request.reason = request.reason.substr(0, end) + "...";
    }
    if (options.max_latency) {
        const auto latency = parse_duration("--max-latency", *options.max_latency);
        if (!latency)
            return latency.error();
        request.max_latency = *latency;
    }
    if (options.path) {
        auto controllers = controllers_behind(*options.path);
        if (!controllers) {
            Refusal refusal = controllers.error();
            refusal.where = "--for: " + refusal.where;
            refusal.kind = RefusalKind::failed;
            return refusal;
        }
        request.controllers = std::move(*controllers);
    }
    return request;
}

std::string show(const HoldRequest& request)
{
    std::string text = request.profile ? "profile " + *request.profile : std::string{};
    if (request.max_latency)
        text += fmt::format("{}a wake latency of at most {} on {}", text.empty() ? "" : " and ", show(*request.max_latency),
                            request.controllers.empty() ? std::string("all drives")
                                                        : fmt::format("{}", fmt::join(request.controllers, ", ")));
    return text;
}

std::string show_ended(const HoldRequest& part)
{
    return fmt::format("somebody else has ended the hold of {}{}", show(part),
                       part.profile ? ", or has taken the profile out of the configuration" : "");
}

void keep_over_restarts(ServiceClient& client)
{
    struct Said {
        bool lost = false;
        bool back = false;
    };
    const auto said = std::make_shared<Said>();
    client.on_presence = [&client, said](bool there) {
        if (!client.holds())
            return; // somebody else has ended it
        if (!there) {
            if (!std::exchange(said->lost, true))
                complain("nvmepolicyctl",
                         "nvmepolicyd has ended, and the hold with it; it is taken again when the service is back");
            return;
        }
        client.hold_again([said](const std::optional<Refusal>& refusal) {
            if (refusal)
                complain("nvmepolicyctl", "the hold could not be taken again: " + refusal->text());
            else if (!std::exchange(said->back, true))
                complain("nvmepolicyctl", "nvmepolicyd is back, and the hold with it");
        });
    };
}

} // namespace nvmepolicy
