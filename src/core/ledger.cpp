// SPDX-License-Identifier: LGPL-2.1-or-later
#include "nvmepolicy/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nvmepolicy/decode.h"
#include "nvmepolicy/plan.h"

namespace nvmepolicy {
namespace {

using nlohmann::json;

constexpr int schema = 2;

json to_json(const ApstParameters& p)
{
    return {{"apst_primary_timeout_ms", p.primary_timeout_ms},
            {"apst_primary_latency_tol_us", p.primary_latency_tol_us},
            {"apst_secondary_timeout_ms", p.secondary_timeout_ms},
            {"apst_secondary_latency_tol_us", p.secondary_latency_tol_us}};
}

json to_json(const ControllerId& id)
{
    return {{"subsystem_nqn", id.subsystem_nqn}, {"serial", id.serial}, {"cntlid", id.cntlid}, {"path", id.path}};
}

json to_json(const LedgerEntry& e)
{
    json intended = json::array();
    for (const LatencyTolerance& value : e.intended)
        intended.push_back(value.kernel_text());
    json entry = to_json(e.controller);
    entry["object"] = e.object;
    entry["name"] = e.name;
    entry["attribute"] = tolerance_attribute;
    entry["first"] = e.first.kernel_text();
    entry["lowered"] = e.lowered ? json(e.lowered->kernel_text()) : json(nullptr);
    entry["intended"] = std::move(intended);
    entry["ours"] = e.ours ? json(e.ours->kernel_text()) : json(nullptr);
    entry["programmed_with"] = e.programmed_with ? to_json(*e.programmed_with) : json(nullptr);
    entry["origin"] = e.origin;
    entry["written_at"] = e.written_at;
    return entry;
}

std::string line(const json& object)
{
    return object.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
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

ControllerId read_controller(Reader& in)
{
    return {in.text("subsystem_nqn"), in.text("serial"), in.number<std::uint16_t>("cntlid", UINT16_MAX), in.text("path")};
}

Result<LedgerEntry> read_entry(const std::string& where, const json& object)
{
    Reader in(where, object);
    LedgerEntry e;
    e.controller = read_controller(in);
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

Result<void> read_forgotten(const std::string& where, const json& controllers, Ledger& ledger)
{
    if (!controllers.is_array())
        return Refusal{where + "/forgotten", "", "not a list", RefusalKind::invalid};
    for (const json& object : controllers) {
        Reader in(where + "/forgotten", object);
        const ControllerId controller = read_controller(in);
        if (in.refusal())
            return *in.refusal();
        ledger.erase(controller);
    }
    return {};
}

Result<void> read_line(const std::string& where, const json& object, Ledger& ledger)
{
    if (object.is_object() && object.contains("forgotten"))
        return read_forgotten(where, object["forgotten"], ledger);
    auto entry = read_entry(where, object);
    if (!entry)
        return entry.error();
    LedgerEntry& place = ledger.at(entry->controller);
    place = *std::move(entry);
    return {};
}

/// How many entries were written together with the header; none: it is not the header of a ledger.
std::optional<std::size_t> entries_of(const json& header)
{
    if (!header.is_object() || !header.contains("schema") || header["schema"] != schema || !header.contains("entries")
        || !header["entries"].is_number_unsigned())
        return std::nullopt;
    return header["entries"].get<std::size_t>();
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
    std::string_view rest = text.substr(0, text.rfind('\n') + 1);
    const auto next_line = [&rest] {
        const std::string_view next = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(next.size() + 1, rest.size()));
        return json::parse(next, nullptr, false);
    };
    const auto entries = entries_of(next_line());
    if (!entries)
        return Refusal{where, "", "not a ledger of schema 2", RefusalKind::invalid};
    Ledger ledger;
    std::size_t lines = 0;
    for (; !rest.empty(); ++lines)
        if (const auto read = read_line(where + ": line " + std::to_string(lines + 2) + ": ", next_line(), ledger); !read)
            return read.error();
    if (lines < *entries)
        return Refusal{where, "", "lines are missing: " + std::to_string(*entries) + " entries were written in one step",
                       RefusalKind::invalid};
    return ledger;
}

std::string format_ledger(const Ledger& ledger)
{
    std::string text = line({{"schema", schema}, {"entries", ledger.entries.size()}});
    for (const auto& [controller, entry] : ledger.entries)
        text += format_entry(entry);
    return text;
}

std::string format_entry(const LedgerEntry& entry)
{
    return line(to_json(entry));
}

std::string format_forgotten(std::span<const ControllerId> controllers)
{
    json all = json::array();
    for (const ControllerId& controller : controllers)
        all.push_back(to_json(controller));
    return line({{"forgotten", std::move(all)}});
}

} // namespace nvmepolicy
