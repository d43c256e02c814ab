// Panels of line charts in one SVG: the paper's figures, side by side for every scale.
//
// Input:   panels with series of (x, y) points in ascending x; a series of one point becomes a dot. Series of one
//          `style` look the same in every panel and appear in the legend once. A panel may have a dotted vertical line.
// Output:  one SVG for light and dark pages.
// Errors:  none; panels without points are drawn empty.
// Cost:    O(points).
// Threads: pure function.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::reproduction {

struct ChartSeries {
  std::string name;
  int style = 0;  ///< 0..9, see line_chart.cpp
  std::vector<double> x;
  std::vector<double> y;
};

struct ChartPanel {
  std::string title;
  std::vector<ChartSeries> series;
  std::optional<double> vertical{};
  std::string vertical_name{};
};

std::string line_chart(std::string_view title, std::string_view x_name, std::string_view y_name,
                       const std::vector<ChartPanel>& panels);

}  // namespace perseus::reproduction
