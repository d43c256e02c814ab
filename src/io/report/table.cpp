#include "io/report/table.h"

#include <algorithm>

#include "base/result.h"

namespace perseus::report {
namespace {

std::size_t columns_of(const std::string& utf8) {
  return std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

void TextTable::add(std::vector<std::string> row) {
  PERSEUS_CHECK(row.size() == rows_.front().size(), "a row has as many cells as the header");
  rows_.push_back(std::move(row));
}

std::string TextTable::to_string() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns_of(row[c]));
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - columns_of(row[c]), ' ');
      if (c == 0) {
        text += row[c] + (row.size() > 1 ? padding : "");
      } else {
        text += "  " + padding + row[c];
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace perseus::report
