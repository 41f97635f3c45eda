// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ask.h"

#include "command_line/usage.h"

namespace nvmepolicy {

int complain_about(const Refusal& refusal)
{
    complain("nvmepolicyctl", refusal.text());
    switch (refusal.kind) {
    case RefusalKind::absent: return exit_not_running;
    case RefusalKind::denied: return exit_not_authorized;
    default: return exit_failed;
    }
}

int with_service(const std::string& bus, const std::function<Result<void>(ServiceClient&)>& ask)
{
    const auto client = ServiceClient::connect(bus);
    if (!client)
        return complain_about(client.error());
    const auto asked = ask(**client);
    return asked ? exit_done : complain_about(asked.error());
}

} // namespace nvmepolicy
