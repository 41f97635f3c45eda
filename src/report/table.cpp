// SPDX-License-Identifier: LGPL-2.1-or-later
#include "table.h"

#include <algorithm>

namespace nvmepolicy {

Table::Table(std::vector<std::string> heading)
{
    add(std::move(heading));
}

void Table::add(std::vector<std::string> row, std::string last_cell_colour)
{
    rows_.push_back({std::move(row), std::move(last_cell_colour)});
}

std::string Table::text() const
{
    std::vector<std::size_t> widths;
    for (const Row& row : rows_)
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            if (i == widths.size())
                widths.push_back(0);
            widths[i] = std::max(widths[i], row.cells[i].size());
        }
    std::string out;
    for (const Row& row : rows_) {
        std::string line;
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            const bool last = i + 1 == row.cells.size();
            if (last && !row.colour.empty())
                line += "\x1b[" + row.colour + "m" + row.cells[i] + "\x1b[0m";
            else
                line += row.cells[i] + std::string(last ? 0 : widths[i] - row.cells[i].size() + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

} // namespace nvmepolicy
