// SPDX-License-Identifier: LGPL-2.1-or-later
// The door to toml++: a TOML text as a plain tree of values that know where they were written. No other file includes
// toml++, and nothing that it throws gets past here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nvmepolicy {

struct TomlEntry;

/// One value. `line` and `column` count from 1, columns in characters.
struct TomlValue {
    enum class Kind { text, integer, floating, boolean, date_or_time, array, table };
    Kind kind = Kind::table;
    std::string text; ///< of a text its content; of everything on one line else: as it was written
    std::int64_t integer = 0;
    bool boolean = false;
    std::vector<TomlValue> items;   ///< of an array
    std::vector<TomlEntry> entries; ///< of a table, in the order of the file
    int line = 0;
    int column = 0;
};

/// A key with its value. Its position is the key's, the value has its own.
struct TomlEntry {
    std::string key;
    TomlValue value;
    int line = 0;
    int column = 0;
};

struct TomlSyntaxError {
    std::string reason;
    int line = 0;
    int column = 0;
};

/// Parses any bytes. A syntax error ends the parsing, so there is at most one.
[[nodiscard]] std::variant<TomlValue, TomlSyntaxError> parse_toml(std::string_view text);

} // namespace nvmepolicy
