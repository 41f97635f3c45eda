// SPDX-License-Identifier: LGPL-2.1-or-later
#include "documents.h"

#include "ask.h"
#include "command_line/usage.h"
#include "report/fields.h"
#include "report/json.h"
#include "service_client.h"

namespace nvmepolicy {
namespace {

/// The service, if it is to be asked and runs. Where it cannot even be looked for there is nobody to ask either.
std::unique_ptr<ServiceClient> service_for(const LookOptions& options)
{
    if (options.simulate || options.config)
        return nullptr;
    auto client = ServiceClient::connect(options.bus);
    return client && (*client)->is_running() ? std::move(*client) : nullptr;
}

Answered answer_of(Result<Document> document)
{
    if (document)
        return {std::move(*document), exit_done};
    return {std::nullopt, complain_about(document.error())};
}

Result<Document> read_answer(const Result<std::string>& text)
{
    return text ? read_document("nvmepolicyd", *text) : Result<Document>(text.error());
}

Answered asked_for_one(ServiceClient& client, const std::string& name)
{
    auto document = read_answer(client.describe(name));
    // An object path does not hold every character of a name, so an answer may be about another one.
    if (document && text_of(*document, "name") == name)
        return answer_of(std::move(document));
    if (!document && document.error().kind != RefusalKind::gone)
        return answer_of(std::move(document));
    const auto status = read_answer(client.describe());
    if (!status)
        return answer_of(status);
    std::vector<std::string> names;
    for (const Document& c : member(*status, "controllers"))
        names.push_back(text_of(c, "name"));
    complain_about_controller(name, names);
    return {std::nullopt, exit_failed};
}

} // namespace

Answered status_document(const LookOptions& options)
{
    if (const auto client = service_for(options))
        return answer_of(read_answer(client->describe()));
    const auto look = look_around(options);
    if (!look)
        return {std::nullopt, exit_failed};
    return {status_json(look->round, look->simulated), exit_done};
}

Answered show_document(const LookOptions& options, const std::string& name)
{
    if (const auto client = service_for(options))
        return asked_for_one(*client, name);
    const auto look = look_around(options, name);
    if (!look)
        return {std::nullopt, exit_failed};
    return {show_json(look->round, look->round.outcomes.front(), look->simulated), exit_done};
}

Answered plan_document(const LookOptions& options)
{
    if (const auto client = service_for(options))
        return answer_of(client->plan());
    const auto look = look_around(options);
    if (!look)
        return {std::nullopt, exit_failed};
    return {plan_json(look->round, look->simulated), exit_done};
}

} // namespace nvmepolicy
