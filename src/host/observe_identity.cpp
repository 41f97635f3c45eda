// SPDX-License-Identifier: LGPL-2.1-or-later
// Which controllers there are, and who they are whatever they are called.
#include <algorithm>

#include "labels.h"
#include "nvmepolicy/decode.h"
#include "nvmepolicy/wording.h"
#include "object_names.h"
#include "observe.h"

namespace nvmepolicy {
namespace {

constexpr std::size_t longest_identity = 512;

/// `address` of a fabrics controller without what changes with each connection.
std::string fabrics_path(std::string address)
{
    if (const auto at = address.find(",src_addr="); at != std::string::npos)
        address.erase(at, address.find(',', at + 1) == std::string::npos ? std::string::npos : address.find(',', at + 1) - at);
    return address;
}

} // namespace

Result<std::vector<std::string>> controller_names(Host& host)
{
    const auto directory = host.open_directory("class/nvme");
    if (!directory) {
        if (directory.error().kind == RefusalKind::absent)
            return std::vector<std::string>{};
        return directory.error();
    }
    auto names = (*directory)->list();
    if (!names)
        return names.error();
    std::erase_if(*names, [](const std::string& name) { return !is_controller(name); });
    std::ranges::sort(*names, natural_order);
    return names;
}

Result<ControllerId> observe_identity(const Directory& directory)
{
    ControllerId id;
    // Whatever bytes a drive has there, different ones stay different.
    const auto distinct = [](std::string_view bytes) { return printable(bytes, longest_identity); };
    for (const auto& [attribute, to] : {std::pair{"serial", &id.serial}, std::pair{"subsysnqn", &id.subsystem_nqn}}) {
        auto text = text_of(directory, attribute, distinct);
        if (!text)
            return text.error();
        *to = *std::move(text);
    }
    const auto transport = label(directory, "transport");
    if (!transport && transport.error().kind != RefusalKind::absent)
        return transport.error();
    if (transport && *transport != "pcie") {
        const auto address = label(directory, "address");
        if (address) {
            id.path = fabrics_path(*address);
            return id;
        }
        if (address.error().kind != RefusalKind::absent)
            return address.error();
    }
    const auto raw = directory.read("cntlid");
    if (!raw)
        return raw.error();
    const auto cntlid = decode_number(directory.path() + "/cntlid", *raw, UINT16_MAX);
    if (!cntlid)
        return cntlid.error();
    id.cntlid = static_cast<std::uint16_t>(*cntlid);
    return id;
}

} // namespace nvmepolicy
