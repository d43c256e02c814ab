#include "io/report/table.h"

#include <algorithm>

#include "base/result.h"
#include "base/utf8.h"

namespace perseus::report {
void TextTable::add(std::vector<std::string> row) {
  PERSEUS_CHECK(row.size() == rows_.front().size(), "a row has as many cells as the header");
  rows_.push_back(std::move(row));
}

std::string TextTable::to_string() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_columns(row[c]));
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - display_columns(row[c]), ' ');
      if (c > 0) text += "  ";
      const bool last = c + 1 == row.size();
      text += c < left_columns_ ? row[c] + (last ? "" : padding) : padding + row[c];
    }
    text += '\n';
  }
  return text;
}

}  // namespace perseus::report
