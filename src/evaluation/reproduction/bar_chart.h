// Bars of two parts that add up, in one SVG: the paper's figure 7.
//
// Input:   groups of bars, in drawing order; parts in percent. The chart omits a negative part's bar and prints its
//          number.
// Output:  one SVG for light and dark pages, all bars to one scale.
// Errors:  none.
// Cost:    O(bars).
// Threads: pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perseus::reproduction {

struct StackedBar {
  std::string name;
  double first_pct = 0;
  double second_pct = 0;
};

struct BarGroup {
  std::string title;
  std::vector<StackedBar> bars;
};

std::string bar_chart(std::string_view title, std::string_view first_name, std::string_view second_name,
                      const std::vector<BarGroup>& groups);

}  // namespace perseus::reproduction
