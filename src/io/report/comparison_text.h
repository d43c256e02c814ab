// The two tables of a comparison as cells, which the terminal and the page show alike.
// Input, errors, threads: as io/report/comparison.h.
#pragma once

#include <string>
#include <vector>

#include "io/report/comparison.h"

namespace perseus::report {

struct TextRows {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

/// Aligned columns, as TextTable.
std::string text_of(const TextRows& rows, std::size_t columns = std::string::npos, std::size_t left_columns = 1);

/// A line per method: its points, its slowest plan in time (no slower than everything at maximum clock plus the
/// tolerance), its ends, and their savings against everything at maximum clock.
TextRows method_rows(const ComparisonInput& input);
/// A line per pair.
TextRows pair_rows(const ComparisonInput& input, const std::vector<PairComparison>& pairs);

}  // namespace perseus::report
