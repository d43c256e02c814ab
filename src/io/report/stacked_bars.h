// Stacked bars, one below the other on one scale, for example the parts of each method's energy.
//
// Input:   the parts' names, and bars with a value >= 0 for each part, in one unit; a negative value is not drawn.
// Output:  one SVG for light and dark pages; each bar shows its sum, and each part that is wide enough its share.
// Errors:  none.
// Cost:    O(bars * parts).
// Threads: pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perseus::report {

struct PartsBar {
  std::string name;
  std::string sum;  ///< formatted for people
  std::vector<double> parts;
};

std::string stacked_bars(std::string_view title, const std::vector<std::string>& part_names,
                         const std::vector<PartsBar>& bars);

}  // namespace perseus::report
