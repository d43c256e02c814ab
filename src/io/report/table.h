// Aligned columns of text for a terminal.
//
// Input:   a header and rows of as many cells (UTF-8, each code point one column wide).
// Output:  lines ending in \n, columns two spaces apart; the first column left-aligned, the others right-aligned
//          (numbers).
// Errors:  none.
// Cost:    O(cells).
// Threads: plain value.
#pragma once

#include <string>
#include <vector>

namespace perseus::report {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row);
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace perseus::report
