// A heat map of shares: one cell per row and column, darker for a greater share.
//
// Input:   names of rows and columns; per row, one share in 0..1 per column.
// Output:  one SVG for light and dark pages and for print; cells that are large enough show their share, and pointing
//          at any shows it. Names of rows are left out where rows are too low for text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perseus::report {

struct HeatMap {
  std::vector<std::string> columns, rows;
  std::vector<std::vector<double>> shares;
};

std::string heat_map(std::string_view title, const HeatMap& map);

}  // namespace perseus::report
