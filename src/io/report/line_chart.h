// A chart of lines and markers: one wide panel, or several panels in two columns.
//
// Input:   panels with series of points in ascending x; a series of one point becomes a marker. Series of one name
//          look the same in every panel and appear in the legend once.
// Output:  one SVG for light and dark pages and for print. Earlier series are drawn on top of later ones; solid
//          lines on top of other curves, and single points on top of all. Pointing at a point shows its values.
// Errors:  none; panels and series without points are drawn empty; a point that is not finite interrupts its line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/report/axes.h"
#include "io/report/series_look.h"

namespace perseus::report {

enum class SeriesKind {
  line,          ///< without markers
  marks,         ///< without a line
  marked_line,   ///< with markers at a distance that keeps the line visible
  clipped_line,  ///< the axes do not grow for it: its part within the other series' ranges
};

struct ChartSeries {
  std::string name;
  SeriesLook look;
  SeriesKind kind = SeriesKind::line;
  std::vector<ChartPoint> points{};
};

struct ChartPanel {
  std::string title;
  std::vector<ChartSeries> series;
  std::optional<double> vertical{};  ///< x of a dotted vertical line
  std::string vertical_name{};
};

struct ChartTexts {
  std::string title;
  std::string x_name;
  std::string y_name;
  std::string description{};  ///< for readers who do not see the chart; empty: the names of the axes
};

std::string line_chart(const ChartTexts& texts, const std::vector<ChartPanel>& panels);

}  // namespace perseus::report
