// SPDX-License-Identifier: LGPL-2.1-or-later
#include "labels.h"

#include "nvmepolicy/decode.h"

namespace nvmepolicy {

Result<std::string> text_of(const Directory& directory, const std::string& attribute,
                            const std::function<std::string(std::string_view)>& harmless)
{
    const auto raw = directory.read(attribute);
    if (!raw)
        return raw.error();
    auto text = decode_line(directory.path() + "/" + attribute, *raw);
    if (text || text.error().kind == RefusalKind::try_later)
        return text;
    const std::string_view bytes = *raw;
    return harmless(bytes.ends_with('\n') ? bytes.substr(0, bytes.size() - 1) : bytes);
}

Result<std::string> label(const Directory& directory, const std::string& attribute)
{
    return text_of(directory, attribute, printable_ascii);
}

std::string label_or_empty(const Directory& directory, const std::string& attribute)
{
    auto text = label(directory, attribute);
    return text ? *std::move(text) : std::string{};
}

} // namespace nvmepolicy
