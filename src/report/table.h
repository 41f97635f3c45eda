// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

namespace nvmepolicy {

/// Columns as wide as their widest cell, two blanks between them, none at the end of a line.
class Table {
public:
    explicit Table(std::vector<std::string> heading);
    /// `last_cell_colour`: an SGR code such as "32" for the last cell, or empty.
    void add(std::vector<std::string> row, std::string last_cell_colour = "");
    [[nodiscard]] std::string text() const;

private:
    struct Row {
        std::vector<std::string> cells;
        std::string colour;
    };
    std::vector<Row> rows_;
};

} // namespace nvmepolicy
