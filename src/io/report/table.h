// Aligned columns of text for a terminal.
//
// Input:   a header and rows of as many cells (UTF-8; widths by display_columns()).
// Output:  lines ending in \n, columns two spaces apart; the first `left_columns` columns left-aligned, the others
//          right-aligned (numbers).
// Errors:  none.
// Cost:    O(cells).
// Threads: plain value.
#pragma once

#include <string>
#include <vector>

namespace perseus::report {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header, std::size_t left_columns = 1)
      : rows_{std::move(header)}, left_columns_(left_columns) {}
  void add(std::vector<std::string> row);
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::size_t left_columns_;
};

}  // namespace perseus::report
