// Bars made of parts, one below the other on one scale: where energy went, method by method.
//
// Input:   the parts' names, and bars with a value >= 0 for each part, in one unit; a negative value is drawn as
//          nothing.
// Output:  one SVG for light and dark pages; each bar says its sum, and each part that is wide enough its share.
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
  std::string sum;  ///< as people read it
  std::vector<double> parts;
};

std::string stacked_bars(std::string_view title, const std::vector<std::string>& part_names,
                         const std::vector<PartsBar>& bars);

}  // namespace perseus::report
