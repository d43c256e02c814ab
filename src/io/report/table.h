// Aligned columns of text for a terminal.
//
// Input:   a header and rows of as many cells (UTF-8; widths by display_columns()).
// Output:  lines ending in \n, columns two spaces apart; the first `left_columns` columns left-aligned, the others
//          right-aligned (numbers). A table wider than `columns` has its columns one space apart, if no title has a
//          space; or else its columns in parts below each other, each part with the left columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace perseus::report {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header, std::size_t left_columns = 1)
      : rows_{std::move(header)}, left_columns_(left_columns) {}
  void add(std::vector<std::string> row);
  [[nodiscard]] std::string to_string(std::size_t columns = std::string::npos) const;

 private:
  [[nodiscard]] std::string lines(const std::vector<std::size_t>& shown, const std::vector<std::size_t>& widths,
                                  std::size_t gap) const;

  std::vector<std::vector<std::string>> rows_;
  std::size_t left_columns_;
};

struct TextRows {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

/// Aligned columns, as TextTable.
std::string text_of(const TextRows& rows, std::size_t columns = std::string::npos, std::size_t left_columns = 1);

}  // namespace perseus::report
