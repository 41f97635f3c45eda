// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nvmepolicy/decode.h"
#include "nvmepolicy/plan.h"

namespace nvmepolicy {
namespace {

using nlohmann::json;

constexpr int schema = 1;

json to_json(const ApstParameters& p)
{
    return {{"apst_primary_timeout_ms", p.primary_timeout_ms},
            {"apst_primary_latency_tol_us", p.primary_latency_tol_us},
            {"apst_secondary_timeout_ms", p.secondary_timeout_ms},
            {"apst_secondary_latency_tol_us", p.secondary_latency_tol_us}};
}

json to_json(const LedgerEntry& e)
{
    json intended = json::array();
    for (const LatencyTolerance& value : e.intended)
        intended.push_back(value.kernel_text());
    return {{"subsystem_nqn", e.controller.subsystem_nqn},
            {"serial", e.controller.serial},
            {"cntlid", e.controller.cntlid},
            {"path", e.controller.path},
            {"object", e.object},
            {"name", e.name},
            {"attribute", tolerance_attribute},
            {"first", e.first.kernel_text()},
            {"lowered", e.lowered ? json(e.lowered->kernel_text()) : json(nullptr)},
            {"intended", std::move(intended)},
            {"ours", e.ours ? json(e.ours->kernel_text()) : json(nullptr)},
            {"programmed_with", e.programmed_with ? to_json(*e.programmed_with) : json(nullptr)},
            {"origin", e.origin},
            {"written_at", e.written_at}};
}

/// Reads the members of one object; the first that does not fit is remembered, and everything after it is idle.
class Reader {
public:
    Reader(std::string where, const json& object) : where_(std::move(where)), object_(object)
    {
        if (!object.is_object())
            refuse("", "not an object");
    }

    std::string text(const char* key)
    {
        const json* value = member(key);
        if (value && value->is_string())
            return value->get<std::string>();
        refuse(key, "not a text");
        return {};
    }

    template <class Number>
    Number number(const char* key, std::uint64_t largest)
    {
        const json* value = member(key);
        if (value && value->is_number_unsigned() && value->get<std::uint64_t>() <= largest)
            return static_cast<Number>(value->get<std::uint64_t>());
        refuse(key, "not a number from 0 to " + std::to_string(largest));
        return {};
    }

    LatencyTolerance tolerance(const char* key, const json& value)
    {
        if (value.is_string()) {
            auto parsed = decode_tolerance(where_ + "/" + key, value.get<std::string>());
            if (parsed)
                return *parsed;
            if (!refusal_)
                refusal_ = parsed.error();
            return {};
        }
        refuse(key, "not a text");
        return {};
    }

    const json* member(const char* key)
    {
        if (!object_.is_object())
            return nullptr;
        const auto found = object_.find(key);
        return found == object_.end() ? nullptr : &*found;
    }

    void refuse(const char* key, std::string reason)
    {
        if (!refusal_)
            refusal_ = Refusal{where_ + "/" + key, "", std::move(reason), RefusalKind::invalid};
    }

    [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }

private:
    std::string where_;
    const json& object_;
    std::optional<Refusal> refusal_;
};

Result<LedgerEntry> read_entry(const std::string& where, const json& object)
{
    Reader in(where, object);
    LedgerEntry e;
    e.controller = {in.text("subsystem_nqn"), in.text("serial"), in.number<std::uint16_t>("cntlid", UINT16_MAX),
                    in.text("path")};
    e.object = in.number<std::uint64_t>("object", UINT64_MAX);
    e.name = in.text("name");
    if (in.text("attribute") != tolerance_attribute)
        in.refuse("attribute", "not an attribute that this version writes");
    if (const json* first = in.member("first"))
        e.first = in.tolerance("first", *first);
    else
        in.refuse("first", "missing");
    const json* intended = in.member("intended");
    if (intended && intended->is_array()) {
        for (const json& value : *intended)
            e.intended.push_back(in.tolerance("intended", value));
    } else
        in.refuse("intended", "not a list");
    if (const json* lowered = in.member("lowered"); lowered && !lowered->is_null())
        e.lowered = in.tolerance("lowered", *lowered);
    if (const json* ours = in.member("ours"); ours && !ours->is_null())
        e.ours = in.tolerance("ours", *ours);
    if (const json* with = in.member("programmed_with"); with && !with->is_null()) {
        Reader p(where + "/programmed_with", *with);
        e.programmed_with = ApstParameters{p.number<std::uint64_t>("apst_primary_timeout_ms", UINT64_MAX),
                                           p.number<std::uint64_t>("apst_primary_latency_tol_us", UINT64_MAX),
                                           p.number<std::uint64_t>("apst_secondary_timeout_ms", UINT64_MAX),
                                           p.number<std::uint64_t>("apst_secondary_latency_tol_us", UINT64_MAX)};
        if (p.refusal())
            return *p.refusal();
    }
    e.origin = in.text("origin");
    e.written_at = in.number<std::int64_t>("written_at", INT64_MAX);
    if (in.refusal())
        return *in.refusal();
    return e;
}

} // namespace

bool LedgerEntry::is_ours(const LatencyTolerance& found) const
{
    return (ours && ours->same_effect(found))
           || std::ranges::any_of(intended, [&](const LatencyTolerance& value) { return value.same_effect(found); });
}

const LedgerEntry* Ledger::find(const ControllerId& controller) const
{
    const auto found = entries.find(controller);
    return found == entries.end() ? nullptr : &found->second;
}

LedgerEntry& Ledger::at(const ControllerId& controller)
{
    const auto [found, made] = entries.try_emplace(controller);
    if (made)
        found->second.controller = controller;
    return found->second;
}

void Ledger::erase(const ControllerId& controller)
{
    entries.erase(controller);
}

Result<Ledger> parse_ledger(const std::string& where, std::string_view text)
{
    if (text.size() > largest_ledger)
        return Refusal{where, std::to_string(text.size()) + " bytes", "larger than any ledger", RefusalKind::invalid};
    const json document = json::parse(text, nullptr, false);
    if (!document.is_object() || !document.contains("schema") || document["schema"] != schema || !document.contains("entries")
        || !document["entries"].is_array())
        return Refusal{where, "", "not a ledger of schema 1", RefusalKind::invalid};
    Ledger ledger;
    std::size_t index = 0;
    for (const json& object : document["entries"]) {
        auto entry = read_entry(where + ": /entries/" + std::to_string(index++), object);
        if (!entry)
            return entry.error();
        if (ledger.find(entry->controller))
            return Refusal{where, entry->name, "the same controller has two entries", RefusalKind::invalid};
        ledger.at(entry->controller) = *entry;
    }
    return ledger;
}

std::string format_ledger(const Ledger& ledger)
{
    json entries = json::array();
    for (const auto& [controller, entry] : ledger.entries)
        entries.push_back(to_json(entry));
    const json document = {{"schema", schema}, {"entries", std::move(entries)}};
    return document.dump(1, ' ', true, json::error_handler_t::replace) + "\n";
}

} // namespace nvmepolicy
