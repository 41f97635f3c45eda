// SPDX-License-Identifier: LGPL-2.1-or-later
// Any bytes as an attribute of sysfs, and as the ledger: no crash, printable results and messages, and what was taken is
// what would be written.
#include <cstdint>

#include "nvmepolicy/decode.h"
#include "nvmepolicy/ledger.h"
#include "require.h"

using namespace nvmepolicy;

namespace {

template <class T>
void require_told(const Result<T>& result)
{
    if (!result)
        require_printable(result.error().text(), "a message that is not printable");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    const std::string text(reinterpret_cast<const char*>(bytes), size);

    const auto line = decode_line("line", text);
    require_told(line);
    if (line) {
        require_printable(*line, "a line that is not printable");
        require(!line->empty() && line->front() != ' ' && line->back() != ' ', "a line that is not trimmed", *line);
        require(*decode_line("line", *line) == *line, "a line that is not itself", *line);
    }

    const auto tolerance = decode_tolerance("tolerance", text);
    require_told(tolerance);
    if (tolerance) {
        const auto again = decode_tolerance("tolerance", tolerance->kernel_text() + "\n");
        require(again && *again == *tolerance, "a tolerance that the kernel would show as another", text);
    }

    for (const std::uint64_t largest : {std::uint64_t{1}, std::uint64_t{UINT16_MAX}, std::uint64_t{UINT64_MAX}}) {
        const auto number = decode_number("number", text, largest);
        require_told(number);
        require(!number || *number <= largest, "a number above its largest", text);
    }
    require_told(decode_pci_id("pci", text));
    require_told(decode_flag("flag", text));
    static_cast<void>(show(decode_state(text)));
    static_cast<void>(decode_quirks(text));
    require_printable(printable_ascii(text), "printable_ascii");
    require_told(decode_identify("identify", {bytes, size}));
    require_told(decode_apst_feature("feature", {bytes, size}, static_cast<std::uint32_t>(size)));

    const auto ledger = parse_ledger("ledger", text);
    require_told(ledger);
    if (ledger) {
        const auto again = parse_ledger("ledger", format_ledger(*ledger));
        require(again && *again == *ledger, "a ledger that does not come back", text);
        const auto torn = parse_ledger("ledger", format_ledger(*ledger) + text.substr(0, text.find('\n')));
        require(torn && *torn == *ledger, "a ledger that an interrupted append has changed", text);
    }
    return 0;
}
