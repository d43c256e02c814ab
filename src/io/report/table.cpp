#include "io/report/table.h"

#include <algorithm>
#include <numeric>

#include "base/result.h"
#include "base/utf8.h"

namespace perseus::report {

void TextTable::add(std::vector<std::string> row) {
  PERSEUS_CHECK(row.size() == rows_.front().size(), "a row has as many cells as the header");
  rows_.push_back(std::move(row));
}

std::string TextTable::to_string(std::size_t columns) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_columns(row[c]));
  std::vector<std::size_t> all(widths.size());
  std::iota(all.begin(), all.end(), 0);
  const std::size_t least = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  const bool one_word =
      std::ranges::none_of(rows_.front(), [](const auto& title) { return title.find(' ') != std::string::npos; });
  for (const std::size_t gap : {2, 1}) {
    if ((gap > 1 || one_word) && least + gap * (widths.size() - 1) <= columns) return lines(all, widths, gap);
  }
  const std::size_t left = std::min(left_columns_, widths.size());
  if (left == widths.size()) return lines(all, widths, 2);
  std::string text;
  for (std::size_t next = left; next < widths.size();) {
    std::vector<std::size_t> part(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(left));
    std::size_t width = 0;
    for (const std::size_t c : part) width += widths[c] + 2;
    do {
      part.push_back(next);
      width += widths[next++] + 2;
    } while (next < widths.size() && width + widths[next] <= columns);
    text += (text.empty() ? "" : "\n") + lines(part, widths, 2);
  }
  return text;
}

std::string TextTable::lines(const std::vector<std::size_t>& shown, const std::vector<std::size_t>& widths,
                             std::size_t gap) const {
  std::string text;
  for (const auto& row : rows_) {
    for (const std::size_t c : shown) {
      const std::string padding(widths[c] - display_columns(row[c]), ' ');
      if (c != shown.front()) text.append(gap, ' ');
      const bool last = c == shown.back();
      text += c < left_columns_ ? row[c] + (last ? "" : padding) : padding + row[c];
    }
    text += '\n';
  }
  return text;
}

std::string text_of(const TextRows& rows, std::size_t columns, std::size_t left_columns) {
  TextTable table(rows.header, left_columns);
  for (const std::vector<std::string>& row : rows.rows) table.add(row);
  return table.to_string(columns);
}

}  // namespace perseus::report
