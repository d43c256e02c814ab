// A chart of stacked bars, one below the other on one scale, for example the parts of each method's energy.
//
// Input:   the parts' names, and bars with a value >= 0 for each part, in one unit; a negative value is not drawn.
//          Bars are in groups with a title, which may be empty.
// Output:  one SVG for light and dark pages and for print; each bar shows its text, and each part that is wide enough
//          its share; pointing at a part shows its name and share.
// Cost:    O(bars * parts).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perseus::report {

struct StackedBar {
  std::string name;
  std::string text;  ///< the sum, formatted for people
  std::vector<double> parts;
};

struct BarGroup {
  std::string title;
  std::vector<StackedBar> bars;
};

std::string stacked_bars(std::string_view title, const std::vector<std::string>& part_names,
                         const std::vector<BarGroup>& groups);

}  // namespace perseus::report
