#include "evaluation/reproduction/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "io/report/format.h"
#include "io/report/svg_page.h"

namespace perseus::reproduction {
namespace {

constexpr int kColumns = 2;
constexpr double kPanelWidth = 420;
constexpr double kPanelHeight = 270;
constexpr double kLeft = 62, kRight = 16, kTop = 34, kBottom = 34;  // around a panel's plot
constexpr double kHead = 94, kFoot = 34;                            // title and legend above, name of the x axis below
constexpr double kLegendLine = 20;

/// Classes of io/report/svg_page.h's style sheet, and dashes, so that color is not the only difference between lines.
struct Style {
  std::string_view css_class;
  std::string_view dashes;
};
constexpr std::array<Style, 10> kStyles = {
    Style{"dots", "7 4"},      Style{"straggler", "2 3"}, Style{"critical", ""},         Style{"bound", "1 3"},
    Style{"", "10 3 2 3"},     Style{"qn q5", "4 2"},     Style{"qn q3", "8 2 2 2 2 2"}, Style{"qn q1", "3 1"},
    Style{"qn q6", "1 2 5 2"}, Style{"qn q2", "6 1"}};

const Style& style_of(const ChartSeries& series) { return kStyles[series.style % kStyles.size()]; }

/// A series of one point is a circle; sizes differ, so that circles at one point are all visible.
double radius_of(const ChartSeries& series) { return 3.5 + 1.75 * (series.style % 3); }

std::string stroke(const Style& style) {
  // The fifth is brown on either page: the style sheet has four colors for lines.
  return fmt::format("{}stroke-dasharray=\"{}\"", style.css_class.empty() ? "stroke=\"#8a6d3b\" " : "", style.dashes);
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen() {
    if (low > high) low = 0, high = 1;
    const double margin = high > low ? 0.04 * (high - low) : 1;
    low -= margin;
    high += margin;
  }
  [[nodiscard]] double share(double value) const { return (value - low) / (high - low); }
};

std::string draw_panel(const ChartPanel& panel, double x0, double y0) {
  Range xs, ys;
  for (const ChartSeries& series : panel.series) {
    for (const double x : series.x) xs.include(x);
    for (const double y : series.y) ys.include(y);
  }
  if (panel.vertical) xs.include(*panel.vertical);
  xs.widen();
  ys.widen();
  const double width = kPanelWidth - kLeft - kRight;
  const double height = kPanelHeight - kTop - kBottom;
  const auto at_x = [&](double x) { return x0 + kLeft + width * xs.share(x); };
  const auto at_y = [&](double y) { return y0 + kTop + height * (1 - ys.share(y)); };

  std::string svg = report::svg_text(x0 + kLeft, y0 + kTop - 10, "start", "fg", panel.title);
  const std::vector<double> x_ticks = report::ticks_within(xs.low, xs.high, 6);
  for (const double x : x_ticks) {
    svg +=
        fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", at_x(x), y0 + kTop, y0 + kTop + height);
    svg += report::svg_text(at_x(x), y0 + kTop + height + 17, "middle", "dim", report::tick_label(x, x_ticks));
  }
  const std::vector<double> y_ticks = report::ticks_within(ys.low, ys.high, 6);
  for (const double y : y_ticks) {
    svg +=
        fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}H{2:.1f}\"/>\n", x0 + kLeft, at_y(y), x0 + kLeft + width);
    svg += report::svg_text(x0 + kLeft - 6, at_y(y) + 4, "end", "dim", report::tick_label(y, y_ticks));
  }
  if (panel.vertical) {
    svg += fmt::format("<path class=\"n bound\" stroke-dasharray=\"1 4\" d=\"M{:.1f} {:.1f}v{:.1f}\"/>\n",
                       at_x(*panel.vertical), y0 + kTop, height);
    svg += report::svg_text(at_x(*panel.vertical) + 4, y0 + kTop + 11, "start", "dim s", panel.vertical_name);
  }
  for (const ChartSeries& series : panel.series) {
    const Style& style = style_of(series);
    if (series.x.size() == 1) {
      svg += fmt::format("<circle class=\"n {}\" {} stroke-width=\"2\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n",
                         style.css_class, stroke({style.css_class, "none"}), at_x(series.x[0]), at_y(series.y[0]),
                         radius_of(series));
      continue;
    }
    std::string path;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", at_x(series.x[i]), at_y(series.y[i]));
    }
    svg +=
        fmt::format("<path class=\"n {}\" {} stroke-width=\"1.8\" d=\"{}\"/>\n", style.css_class, stroke(style), path);
  }
  return svg;
}

}  // namespace

std::string line_chart(std::string_view title, std::string_view x_name, std::string_view y_name,
                       const std::vector<ChartPanel>& panels) {
  const int rows = (static_cast<int>(panels.size()) + kColumns - 1) / kColumns;
  const double width = kColumns * kPanelWidth;
  const double height = kHead + rows * kPanelHeight + kFoot;
  std::string svg = report::open_svg(width, height, title, fmt::format("{} over {}", y_name, x_name));
  svg += report::svg_text(16, 26, "start", "fg h", title);
  std::map<int, std::string> legend;
  for (const ChartPanel& panel : panels) {
    for (const ChartSeries& series : panel.series) legend.emplace(series.style, series.name);
  }
  double x = 16;
  double y = 48;
  for (const auto& [style_index, name] : legend) {
    const Style& style = kStyles[style_index % kStyles.size()];
    const double entry_width = 50 + 7.2 * static_cast<double>(name.size());
    if (x > 16 && x + entry_width > width) {
      x = 16;
      y += kLegendLine;
    }
    svg += fmt::format("<path class=\"n {}\" {} stroke-width=\"2\" d=\"M{:.1f} {:.1f}h28\"/>\n", style.css_class,
                       stroke(style), x, y);
    svg += report::svg_text(x + 34, y + 4, "start", "fg", name);
    x += entry_width;
  }
  svg += report::svg_text(16, kHead - 2, "start", "dim", y_name);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::size_t row = i / kColumns, column = i % kColumns;
    svg += draw_panel(panels[i], kPanelWidth * static_cast<double>(column),
                      kHead + kPanelHeight * static_cast<double>(row));
  }
  svg += report::svg_text(width / 2, height - 12, "middle", "dim", x_name);
  return svg + "</svg>\n";
}

}  // namespace perseus::reproduction
