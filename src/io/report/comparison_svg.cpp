// The frontiers of several methods in one drawing: energy of one iteration against its time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "io/report/axes.h"
#include "io/report/comparison.h"
#include "io/report/format.h"
#include "io/report/pieces.h"
#include "io/report/svg_page.h"

namespace perseus::report {
namespace {

constexpr double kWidth = 960, kLeft = 92, kRight = 28, kBottom = 62, kPlotHeight = 420;
constexpr double kLegendRow = 22, kLeastLegendColumn = 165, kLetter = 8.5;

/// Wide enough for the longest name.
double legend_column(const std::vector<ComparedMethod>& methods) {
  std::size_t longest = 0;
  for (const ComparedMethod& method : methods) longest = std::max(longest, method.name.size());
  return std::max(kLeastLegendColumn, 30 + kLetter * static_cast<double>(longest));
}
int legend_columns(const std::vector<ComparedMethod>& methods) {
  return std::max(1, static_cast<int>((kWidth - kLeft - kRight) / legend_column(methods)));
}

std::string cross(double x, double y, double r) {
  return fmt::format("M{0:.1f} {1:.1f}l{2:.2f} {2:.2f}M{0:.1f} {3:.1f}l{2:.2f} -{2:.2f}", x - r, y - r, 2 * r, y + r);
}

/// A shape per series, r units large: shapes distinguish series without color.
std::string marker(int series, double x, double y, double r) {
  switch (series % kSvgSeriesClasses) {
    case 0:
      return fmt::format("M{:.1f} {:.1f}a{:.2f} {:.2f} 0 1 0 .01 0z", x, y - r, r, r);
    case 1:
      return fmt::format("M{:.1f} {:.1f}h{:.2f}v{:.2f}h-{:.2f}z", x - r, y - r, 2 * r, 2 * r, 2 * r);
    case 2:
      return cross(x, y, r) +
             fmt::format("M{:.1f} {:.1f}v{:.2f}M{:.1f} {:.1f}h{:.2f}", x, y - r, 2 * r, x - r, y, 2 * r);
    case 3:
      return fmt::format("M{:.1f} {:.1f}l{:.2f} {:.2f}h-{:.2f}z", x, y - r, r, 2 * r, 2 * r);
    case 4:
      return fmt::format("M{:.1f} {:.1f}l{:.2f} -{:.2f}h-{:.2f}z", x, y + r, r, 2 * r, 2 * r);
    case 5:
      return cross(x, y, r);
    default:
      return fmt::format("M{0:.1f} {1:.1f}l{2:.2f} {2:.2f}l-{2:.2f} {2:.2f}l-{2:.2f} -{2:.2f}z", x, y - r, r);
  }
}

constexpr double kSingleRadius = 7, kCurveRadius = 2.6;
constexpr double kLeastDistance = 7;  // between two markers of a curve: denser markers hide the line

void draw(const TimeEnergyAxes& axes, const model::Frontier& frontier, int series, Pieces& out) {
  const std::size_t count = frontier.points.size();
  std::string line, marks;
  double last_x = -1e9, last_y = -1e9;
  for (const model::FrontierPoint& point : frontier.points) {
    const double x = axes.x(point.time), y = axes.y(point.energy);
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x, y);
    if (std::hypot(x - last_x, y - last_y) < kLeastDistance) continue;
    marks += marker(series, x, y, count == 1 ? kSingleRadius : kCurveRadius);
    last_x = x, last_y = y;
  }
  if (count > 1) out << fmt::format("<path class=\"q{} qn\" stroke-width=\"1.2\" d=\"{}\"/>\n", series, line);
  out << fmt::format("<path class=\"q{}\" stroke-width=\"1.5\" fill-opacity=\"0.85\" d=\"{}\"/>\n", series, marks);
}

std::string legend(const std::vector<ComparedMethod>& methods) {
  std::string svg;
  for (int k = 0; k < static_cast<int>(methods.size()); ++k) {
    const int column = k % legend_columns(methods), row = k / legend_columns(methods);
    const double x = kLeft + legend_column(methods) * column, y = 62 + kLegendRow * row;
    svg += fmt::format("<path class=\"q{}\" stroke-width=\"1.5\" d=\"{}\"/>\n", k % kSvgSeriesClasses,
                       marker(k, x + 7, y, 5.5));
    svg += svg_text(x + 20, y + 4.5, "start", "fg", methods[k].name);
  }
  return svg;
}

std::string description(const std::vector<ComparedMethod>& methods) {
  std::string text;
  for (const ComparedMethod& method : methods) {
    const model::FrontierPoint& fastest = method.frontier.points.back();
    const model::FrontierPoint& slowest = method.frontier.points.front();
    text += fmt::format("{}{}: {} at {}", text.empty() ? "" : " ", method.name, text_of(fastest.energy),
                        text_of(fastest.time));
    if (method.frontier.points.size() > 1) {
      text += fmt::format(" to {} at {}", text_of(slowest.energy), text_of(slowest.time));
    }
    text += ".";
  }
  return text;
}

}  // namespace

void write_comparison_svg(const ComparisonInput& input, const Sink& sink) {
  const int columns = legend_columns(input.methods);
  const int rows = (static_cast<int>(input.methods.size()) + columns - 1) / columns;
  const double top = 70 + kLegendRow * rows, height = top + kPlotHeight + kBottom;
  TimeEnergyAxes axes({kLeft, kWidth - kRight, top, height - kBottom});
  for (const ComparedMethod& method : input.methods) {
    for (const model::FrontierPoint& point : method.frontier.points) axes.include(point.time, point.energy);
  }
  axes.add_air();
  Pieces out(sink);
  out << open_svg(kWidth, height, "Time-energy frontiers: " + input.title, description(input.methods));
  out << svg_text(kLeft, 34, "start", "fg h", "Time-energy frontiers: " + input.title);
  out << legend(input.methods) << axes.grid();
  // Draw the first method on top of the others.
  for (int k = static_cast<int>(input.methods.size()) - 1; k >= 0; --k) {
    draw(axes, input.methods[k].frontier, k % kSvgSeriesClasses, out);
  }
  out << "</svg>\n";
}

}  // namespace perseus::report
