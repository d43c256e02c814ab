#include "io/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/report/svg_page.h"

namespace perseus::report {
namespace {

constexpr double kPanelHeight = 270, kOnlyPanelHeight = 490;
constexpr double kPlotLeft = 70, kPlotRight = 16, kPlotTop = 34, kPlotBottom = 34;  // around a panel's plot
constexpr double kFirstLegendLine = 48, kLegendLine = 20, kAxisNameHeight = 34;
constexpr double kLegendSample = 28;
constexpr double kOnlyMarkRadius = 7, kMarkRadius = 2.6;
constexpr double kLeastMarkDistance = 7;                 // on a line: denser marks hide it
constexpr double kLeastPointDistance = 1.5;              // without a line: nearer marks look like one
constexpr double kHitRadius = 9, kLeastHitDistance = 8;  // of the areas that show a tooltip

bool has_line(const ChartSeries& series) { return series.kind != SeriesKind::marks && series.points.size() > 1; }
bool has_marks(const ChartSeries& series) {
  return series.kind == SeriesKind::marks || series.kind == SeriesKind::marked_line || series.points.size() == 1;
}
/// From the lowest to the topmost.
enum class DrawingLayer { other, solid_lines, single_points };
DrawingLayer layer_of(const ChartSeries& series) {
  if (series.points.size() == 1) return DrawingLayer::single_points;
  return has_line(series) && series.look.solid() ? DrawingLayer::solid_lines : DrawingLayer::other;
}
bool is_finite(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

std::string line_path(const SeriesLook& look, std::string_view path) {
  if (path.empty()) return {};
  return fmt::format("<path class=\"q{} qn\" stroke-width=\"1.8\" stroke-dasharray=\"{}\" d=\"{}\"/>\n", look.color,
                     look.solid() ? "none" : look.dashes, path);
}

std::string marks_path(const SeriesLook& look, std::string_view path) {
  if (path.empty()) return {};
  return fmt::format("<path class=\"q{}\" stroke-width=\"1.5\" fill-opacity=\"0.85\" d=\"{}\"/>\n", look.color, path);
}

std::string draw_line(const Axes& axes, const ChartSeries& series) {
  std::string path;
  ChartPoint end{INFINITY, INFINITY};
  for (std::size_t i = 1; i < series.points.size(); ++i) {
    if (!is_finite(series.points[i - 1]) || !is_finite(series.points[i])) continue;
    const auto part = axes.clipped(axes.position(series.points[i - 1]), axes.position(series.points[i]));
    if (!part) continue;
    const auto& [from, to] = *part;
    if (std::hypot(from.x - end.x, from.y - end.y) < 1e-6) {
      path += fmt::format("L{:.1f} {:.1f}", to.x, to.y);
    } else {
      path += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", from.x, from.y, to.x, to.y);
    }
    end = to;
  }
  return line_path(series.look, path);
}

std::string draw_marks(const Axes& axes, const ChartSeries& series) {
  const double radius = series.points.size() == 1 ? kOnlyMarkRadius : kMarkRadius;
  const double apart = series.kind == SeriesKind::marks ? kLeastPointDistance : kLeastMarkDistance;
  std::string path;
  ChartPoint last{INFINITY, INFINITY};
  for (const ChartPoint& point : series.points) {
    if (!is_finite(point)) continue;
    const ChartPoint at = axes.position(point);
    if (std::hypot(at.x - last.x, at.y - last.y) < apart) continue;
    path += marker_path(series.look.marker, at.x, at.y, radius);
    last = at;
  }
  return marks_path(series.look, path);
}

/// Tooltips of a series' points; of points close to each other only the first.
std::string draw_hits(const Axes& axes, const ChartTexts& texts, const ChartPanel& panel, const ChartSeries& series) {
  std::string svg;
  ChartPoint last{INFINITY, INFINITY};
  for (const ChartPoint& point : series.points) {
    if (!is_finite(point)) continue;
    const ChartPoint at = axes.position(point);
    if (std::hypot(at.x - last.x, at.y - last.y) < kLeastHitDistance) continue;
    svg += svg_hit_circle(at.x, at.y, kHitRadius,
                          fmt::format("{}{}{}; {}: {:.5g}; {}: {:.5g}", series.name, panel.title.empty() ? "" : ", ",
                                      panel.title, texts.x_name, point.x, texts.y_name, point.y));
    last = at;
  }
  return svg;
}

std::string draw_panel(const ChartTexts& texts, const ChartPanel& panel, const AxesFrame& frame) {
  Axes axes(frame);
  for (const ChartSeries& series : panel.series) {
    if (series.kind == SeriesKind::clipped_line) continue;
    for (const ChartPoint& point : series.points) axes.include(point);
  }
  if (panel.vertical) axes.include_x(*panel.vertical);
  axes.add_margin();

  std::string svg = svg_text(frame.left, frame.top - 10, "start", "fg", panel.title) + axes.grid();
  if (panel.vertical) {
    const double x = axes.position({*panel.vertical, 0}).x;
    const bool label_left = x > (frame.left + frame.right) / 2;
    svg += fmt::format("<path class=\"q7 qn\" stroke-dasharray=\"1 4\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", x, frame.top,
                       frame.bottom);
    svg +=
        svg_text(x + (label_left ? -5 : 5), frame.top + 11, label_left ? "end" : "start", "dim s", panel.vertical_name);
  }
  for (const DrawingLayer layer : {DrawingLayer::other, DrawingLayer::solid_lines, DrawingLayer::single_points}) {
    for (std::size_t i = panel.series.size(); i-- > 0;) {
      const ChartSeries& series = panel.series[i];
      if (layer_of(series) != layer) continue;
      if (has_line(series)) svg += draw_line(axes, series);
      if (has_marks(series)) svg += draw_marks(axes, series);
    }
  }
  for (std::size_t i = panel.series.size(); i-- > 0;) {  // in the order of drawing: the topmost series answers
    if (panel.series[i].kind != SeriesKind::clipped_line) svg += draw_hits(axes, texts, panel, panel.series[i]);
  }
  return svg;
}

struct Legend {
  std::string svg;
  double bottom = kFirstLegendLine;
};

Legend legend_of(const std::vector<ChartPanel>& panels) {
  Legend legend;
  std::vector<std::string_view> names;
  double x = kChartMargin;
  for (const ChartPanel& panel : panels) {
    for (const ChartSeries& series : panel.series) {
      if (std::ranges::find(names, series.name) != names.end()) continue;
      names.push_back(series.name);
      const double entry_width = kLegendSample + 22 + text_width(series.name);
      if (x > kChartMargin && x + entry_width > kChartWidth) {
        x = kChartMargin;
        legend.bottom += kLegendLine;
      }
      const double y = legend.bottom;
      if (has_line(series)) legend.svg += line_path(series.look, fmt::format("M{:.1f} {:.1f}h{}", x, y, kLegendSample));
      if (has_marks(series)) {
        legend.svg += marks_path(series.look, marker_path(series.look.marker, x + kLegendSample / 2, y, 5));
      }
      legend.svg += svg_text(x + kLegendSample + 6, y + 4, "start", "fg", series.name);
      x += entry_width;
    }
  }
  return legend;
}

}  // namespace

std::string line_chart(const ChartTexts& texts, const std::vector<ChartPanel>& panels) {
  const bool only = panels.size() == 1;
  const std::size_t columns = only ? 1 : 2;
  const double panel_width = kChartWidth / static_cast<double>(columns);
  const double panel_height = only ? kOnlyPanelHeight : kPanelHeight;
  const std::size_t rows = (panels.size() + columns - 1) / columns;
  const Legend legend = legend_of(panels);
  const double head = legend.bottom + 26;
  const double height = head + static_cast<double>(rows) * panel_height + kAxisNameHeight;

  std::string svg =
      open_svg(kChartWidth, height, texts.title,
               texts.description.empty() ? fmt::format("{} over {}", texts.y_name, texts.x_name) : texts.description);
  svg += svg_text(kChartMargin, 26, "start", "fg h", texts.title) + legend.svg;
  svg += svg_text(kChartMargin, head, "start", "dim", texts.y_name);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::size_t row = i / columns, column = i % columns;
    const double x = panel_width * static_cast<double>(column), y = head + panel_height * static_cast<double>(row);
    svg += draw_panel(texts, panels[i],
                      {x + kPlotLeft, x + panel_width - kPlotRight, y + kPlotTop, y + panel_height - kPlotBottom});
  }
  svg += svg_text(kChartWidth / 2, height - 12, "middle", "dim", texts.x_name);
  return svg + "</svg>\n";
}

}  // namespace perseus::report
