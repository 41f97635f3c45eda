// SPDX-License-Identifier: LGPL-2.1-or-later
// What another program hands a client as a document: whatever it is, it is printed or refused, and so are our own records.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nvmepolicy/breaker.h"
#include "nvmepolicy/chosen_profile.h"
#include "nvmepolicy/ledger.h"
#include "report/json.h"
#include "report/text.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace nvmepolicy;
    const std::string_view text(reinterpret_cast<const char*>(data), size); // NOLINT
    if (const auto document = read_document("fuzz", text)) {
        static_cast<void>(status_text(*document, Style::coloured));
        static_cast<void>(show_text(*document, Style::plain));
        static_cast<void>(explain_text(*document));
        static_cast<void>(plan_text(*document));
        static_cast<void>(was_identified(*document));
    }
    if (const auto chosen = parse_chosen_profile("fuzz", text))
        require(parse_chosen_profile("fuzz", format_chosen_profile(*chosen)) == *chosen, "a choice that does not come back",
                std::string(text));
    if (const auto record = parse_breaker("fuzz", text))
        require(parse_breaker("fuzz", format_breaker(*record)) == *record, "a breaker record that does not come back",
                std::string(text));
    if (const auto ledger = parse_ledger("fuzz", text))
        require(parse_ledger("fuzz", format_ledger(*ledger)) == *ledger, "a ledger that does not come back", std::string(text));
    return 0;
}
