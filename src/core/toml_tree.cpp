// SPDX-License-Identifier: LGPL-2.1-or-later
#include "toml_tree.h"

#include <algorithm>
#include <array>
#include <optional>

#include <toml++/toml.h>

#include "nvmepolicy/wording.h"

namespace nvmepolicy {

namespace {

// toml++ 3.3 bounds the depth of arrays and inline tables, but not that of dotted keys: `a.a.a.…` of 120 KB makes a tree
// whose destructor overflows the stack. No policy needs a tenth of these.
constexpr int most_dots = 32;
constexpr int deepest_brackets = 16;

/// A byte of UTF-8 other than the first of its character: it does not count as a column.
bool is_inside_character(char c)
{
    return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// Walks over a text as far as it is TOML and finds the place where it is nested too deeply.
/// After a syntax error it may take strings for something else: toml++ stops at that place, so it does not matter.
class NestingGuard {
public:
    explicit NestingGuard(std::string_view text) : rest_(text) {}

    std::optional<TomlSyntaxError> find()
    {
        while (!rest_.empty()) {
            if (rest_.starts_with("\"\"\"") || rest_.starts_with("'''"))
                skip_string(rest_.substr(0, 3));
            else if (rest_.front() == '"' || rest_.front() == '\'')
                skip_string(rest_.substr(0, 1));
            else if (rest_.front() == '#')
                skip(std::min(rest_.find('\n'), rest_.size()));
            else if (std::optional<TomlSyntaxError> error = look(rest_.front()))
                return error;
            else
                skip(1);
        }
        return std::nullopt;
    }

private:
    std::optional<TomlSyntaxError> look(char c)
    {
        if (c == '\n')
            dots_ = 0;
        else if (c == '.')
            ++dots_;
        else if (c == '[' || c == '{')
            ++brackets_;
        else if ((c == ']' || c == '}') && brackets_ > 0)
            --brackets_;
        if (dots_ > most_dots || brackets_ > deepest_brackets)
            return TomlSyntaxError{"nested too deeply for a policy", line_, column_};
        return std::nullopt;
    }

    void skip_string(std::string_view quote)
    {
        const bool escapes = quote.front() == '"';
        const bool many_lines = quote.size() == 3;
        skip(quote.size());
        while (!rest_.empty() && !rest_.starts_with(quote)) {
            if (rest_.front() == '\n' && !many_lines)
                return;
            skip(escapes && rest_.front() == '\\' ? 2 : 1);
        }
        skip(quote.size());
    }

    void skip(std::size_t bytes)
    {
        for (const char c : rest_.substr(0, bytes)) {
            if (c == '\n') {
                ++line_;
                column_ = 1;
            } else if (!is_inside_character(c)) {
                ++column_;
            }
        }
        rest_.remove_prefix(std::min(bytes, rest_.size()));
    }

    std::string_view rest_;
    int line_ = 1;
    int column_ = 1;
    int dots_ = 0;
    int brackets_ = 0;
};

class TreeBuilder {
public:
    explicit TreeBuilder(std::string_view text) : text_(text)
    {
        // toml++ does not count the byte order mark.
        const std::size_t begin = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
        lines_.push_back(0);
        for (std::size_t at = begin; at < text.size(); ++at) {
            if (is_inside_character(text[at]))
                continue;
            characters_.push_back(at);
            if (text[at] == '\n')
                lines_.push_back(characters_.size());
        }
        characters_.push_back(text.size());
    }

    [[nodiscard]] TomlValue value(const toml::node& node) const
    {
        TomlValue built;
        built.kind = kind(node.type());
        built.line = static_cast<int>(node.source().begin.line);
        built.column = static_cast<int>(node.source().begin.column);
        if (const toml::table* table = node.as_table()) {
            for (const auto& [key, child] : *table)
                built.entries.push_back({std::string(key.str()), value(child), static_cast<int>(key.source().begin.line),
                                         static_cast<int>(key.source().begin.column)});
            // toml++ sorts by name.
            std::stable_sort(built.entries.begin(), built.entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
                return std::pair(a.line, a.column) < std::pair(b.line, b.column);
            });
        } else if (const toml::array* array = node.as_array()) {
            for (const toml::node& child : *array)
                built.items.push_back(value(child));
            built.text = as_written(node.source());
        } else if (const auto* text = node.as_string()) {
            built.text = text->get();
        } else {
            built.integer = node.value_or(std::int64_t{0});
            built.boolean = node.value_or(false);
            built.text = as_written(node.source());
        }
        return built;
    }

private:
    static TomlValue::Kind kind(toml::node_type type)
    {
        switch (type) {
        case toml::node_type::string: return TomlValue::Kind::text;
        case toml::node_type::integer: return TomlValue::Kind::integer;
        case toml::node_type::floating_point: return TomlValue::Kind::floating;
        case toml::node_type::boolean: return TomlValue::Kind::boolean;
        case toml::node_type::date:
        case toml::node_type::time:
        case toml::node_type::date_time: return TomlValue::Kind::date_or_time;
        case toml::node_type::array: return TomlValue::Kind::array;
        case toml::node_type::none:
        case toml::node_type::table: break;
        }
        return TomlValue::Kind::table;
    }

    /// The source text of a value that begins and ends on one line, else nothing.
    [[nodiscard]] std::string as_written(const toml::source_region& region) const
    {
        if (region.begin.line != region.end.line || region.begin.line == 0 || region.begin.line > lines_.size())
            return {};
        const std::size_t line = lines_[region.begin.line - 1];
        const std::size_t begin = line + region.begin.column - 1;
        const std::size_t end = std::min(line + region.end.column - 1, characters_.size() - 1);
        if (begin >= end)
            return {};
        std::string written(text_.substr(characters_[begin], characters_[end] - characters_[begin]));
        // The region of a value reaches up to the next token.
        written.erase(written.find_last_not_of(" \t\r\n") + 1);
        return written;
    }

    std::string_view text_;
    std::vector<std::size_t> characters_; ///< where each begins, and the end: positions count characters, not bytes
    std::vector<std::size_t> lines_;      ///< the first character of each
};

} // namespace

std::variant<TomlValue, TomlSyntaxError> parse_toml(std::string_view text)
{
    if (const std::optional<TomlSyntaxError> error = NestingGuard(text).find())
        return *error;
    try {
        const toml::table root = toml::parse(text);
        return TreeBuilder(text).value(root);
    } catch (const toml::parse_error& error) {
        // Its text quotes keys and characters of the file.
        return TomlSyntaxError{"not valid TOML: " + printable(error.description(), 300),
                               static_cast<int>(error.source().begin.line), static_cast<int>(error.source().begin.column)};
    }
}

} // namespace nvmepolicy
