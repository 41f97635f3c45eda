// SPDX-License-Identifier: LGPL-2.1-or-later
#include "observe.h"

#include <algorithm>

#include "labels.h"
#include "nvmepolicy/decode.h"
#include "nvmepolicy/kernel_quirks.h"
#include "nvmepolicy/plan.h"

namespace nvmepolicy {
namespace {

constexpr std::uint8_t feature_apst = 0x0c; // NVMe 1.4c, section 5.21.1.12
constexpr std::uint8_t select_current = 0;

std::optional<std::uint16_t> pci_id(const Directory& directory, const std::string& attribute)
{
    const auto raw = directory.read(attribute);
    if (!raw)
        return std::nullopt;
    const auto id = decode_pci_id(attribute, *raw);
    return id ? std::optional{*id} : std::nullopt;
}

Result<IdentifyController> identify(ControllerDevice& device, const std::string& name)
{
    const auto page = device.identify_controller();
    if (!page)
        return page.error();
    return decode_identify(name + ": Identify Controller", *page);
}

/// The file comes and goes with APST support; listing the directory does not wait for the lock behind the file.
Result<bool> has_tolerance_file(const Directory& directory)
{
    const auto names = directory.list("power");
    if (!names)
        return names.error();
    const std::string_view file = std::string_view(tolerance_attribute).substr(std::string_view("power/").size());
    return std::ranges::find(*names, file) != names->end();
}

Result<std::optional<ApstFeature>> read_apst(ControllerDevice& device, const std::string& name)
{
    const auto reply = device.get_feature(feature_apst, select_current, apst_table_size);
    if (!reply)
        return reply.error();
    const auto feature = decode_apst_feature(name + ": Get Features 0Ch", reply->buffer, reply->result);
    if (!feature)
        return feature.error();
    return std::optional{*feature};
}

void read_apst_facts(Sighting& s)
{
    Controller& c = s.controller;
    if (!c.identify) {
        c.apst = c.identify.error();
        c.tolerance = c.identify.error().kind == RefusalKind::timed_out
                          ? Result<std::optional<LatencyTolerance>>(c.identify.error())
                          : read_tolerance(s);
        return;
    }
    // Asked first: a drive that does not answer this must not be let near the file, whose lock everybody shares.
    c.apst = c.identify->apsta == 0 ? Result<std::optional<ApstFeature>>(std::optional<ApstFeature>{})
                                    : read_apst(*s.device, c.name);
    if (!c.apst && c.apst.error().kind == RefusalKind::timed_out)
        c.tolerance = c.apst.error();
    else
        c.tolerance = read_tolerance(s);
}

/// On its way out a controller answers with EINTR, host path errors and missing files long before ENODEV; its state tells
/// what that was about.
bool left(const Result<std::string>& state)
{
    return state ? decode_state(*state) == ControllerState::deleting
                 : state.error().kind == RefusalKind::gone || state.error().kind == RefusalKind::absent;
}

Refusal not_live(const Controller& c)
{
    return {c.name, show(c.state), "the controller is not live, so it is not asked", RefusalKind::try_later};
}

Refusal departure(const std::string& name)
{
    return {name, "", "gone: the controller has left", RefusalKind::gone};
}

QuirkKnowledge known_quirks(const Directory& directory, const Controller& c)
{
    if (const auto raw = directory.read("quirks")) // Linux 7.0
        return {decode_quirks(*raw), QuirkKnowledge::Source::kernel};
    if (!c.identify)
        return {};
    const ApstQuirks listed = listed_quirks(c.pci_vendor_id, c.pci_device_id, c.identify->vendor_id, c.model);
    return {listed, listed == ApstQuirks{} ? QuirkKnowledge::Source::none : QuirkKnowledge::Source::device_table};
}

} // namespace

Result<std::optional<LatencyTolerance>> read_tolerance(const Sighting& s)
{
    const auto exists = has_tolerance_file(*s.directory);
    if (!exists)
        return exists.error();
    if (!*exists)
        return std::optional<LatencyTolerance>{};
    const auto raw = s.device->read_tolerance();
    if (!raw)
        return raw.error();
    const auto tolerance = decode_tolerance(s.directory->path() + "/" + tolerance_attribute, *raw);
    if (!tolerance)
        return tolerance.error();
    return std::optional{*tolerance};
}

void observe_apst(Sighting& s)
{
    Controller& c = s.controller;
    read_apst_facts(s);
    if ((c.apst && c.tolerance) || !left(s.directory->read("state")))
        return;
    c.state = ControllerState::deleting;
    c.apst = departure(c.name);
    c.tolerance = departure(c.name);
}

Result<Sighting> observe_tolerance(Host& host, std::unique_ptr<Directory> directory, const std::string& name)
{
    Sighting s;
    s.directory = std::move(directory);
    Controller& c = s.controller;
    c.name = name;
    c.object = s.directory->object();
    const auto id = observe_identity(*s.directory);
    if (!id)
        return id.error();
    c.id = *id;
    const auto state = s.directory->read("state");
    if (left(state))
        return departure(name);
    if (!state)
        return state.error();
    c.state = decode_state(*state);
    // Of another one the kernel might only keep the value, and the drive its table.
    if (c.state != ControllerState::live)
        return not_live(c);
    s.device = host.open_device(*s.directory, name);
    c.apst = read_apst(*s.device, name);
    const bool answered = c.apst || c.apst.error().kind == RefusalKind::unsupported;
    if (!answered)
        return left(s.directory->read("state")) ? departure(name) : c.apst.error();
    c.tolerance = read_tolerance(s);
    if (!c.tolerance && left(s.directory->read("state")))
        return departure(name);
    return s;
}

Result<Sighting> observe_controller(Host& host, const std::string& name)
{
    auto directory = host.open_directory("class/nvme/" + name);
    if (!directory) {
        Refusal refusal = directory.error();
        if (refusal.kind == RefusalKind::absent)
            refusal.reason = "there is no such controller, or it has left";
        return refusal;
    }
    Sighting s;
    s.directory = *std::move(directory);
    Controller& c = s.controller;
    c.name = name;
    const auto id = observe_identity(*s.directory);
    if (!id)
        return id.error();
    c.id = *id;
    c.object = s.directory->object();
    c.model = label_or_empty(*s.directory, "model");
    c.firmware = label_or_empty(*s.directory, "firmware_rev");
    c.transport = label_or_empty(*s.directory, "transport");
    c.address = label_or_empty(*s.directory, "address");
    const auto state = s.directory->read("state");
    if (left(state))
        return departure(name);
    if (state)
        c.state = decode_state(*state);
    if (c.transport == "pcie") {
        c.pci_vendor_id = pci_id(*s.directory, "device/vendor");
        c.pci_device_id = pci_id(*s.directory, "device/device");
    }

    s.device = host.open_device(*s.directory, name);
    if (c.state != ControllerState::live) {
        // A command would wait until the reset is over, or for minutes on a lost path.
        c.identify = not_live(c);
        c.apst = not_live(c);
        c.tolerance = not_live(c);
        return s;
    }
    c.identify = identify(*s.device, name);
    if (c.identify && c.identify->serial != label_or_empty(*s.directory, "serial"))
        c.identify =
            Refusal{name + ": Identify Controller", c.identify->serial,
                    "another serial number than the kernel has: a swapped drive, or firmware that errs", RefusalKind::failed};
    c.quirks = known_quirks(*s.directory, c);
    observe_apst(s);
    if (c.state == ControllerState::deleting)
        return departure(name);
    return s;
}

} // namespace nvmepolicy
