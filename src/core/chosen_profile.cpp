// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/chosen_profile.h"

#include <nlohmann/json.hpp>

#include "nvmepolicy/policy.h"

namespace nvmepolicy {
namespace {

constexpr int schema = 1;

}

Result<ChosenProfile> parse_chosen_profile(const std::string& where, std::string_view text)
{
    const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
    const auto name = [&](const char* key) {
        const auto found = document.find(key);
        const bool good = found != document.end() && found->is_string() && is_profile_name(found->get<std::string>());
        return good ? found->get<std::string>() : std::string{};
    };
    if (document.is_object() && document.value("schema", nlohmann::json{}) == schema) {
        ChosenProfile chosen{name("profile"), name("instead_of")};
        if (!chosen.profile.empty() && !chosen.instead_of.empty())
            return chosen;
    }
    return Refusal{where, "", "not a record of a profile, schema 1", RefusalKind::invalid};
}

std::string format_chosen_profile(const ChosenProfile& chosen)
{
    const nlohmann::ordered_json document = {
        {"schema", schema}, {"profile", chosen.profile}, {"instead_of", chosen.instead_of}};
    return document.dump() + "\n";
}

} // namespace nvmepolicy
