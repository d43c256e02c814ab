#include "evaluation/reproduction/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/report/svg_page.h"

namespace perseus::reproduction {
namespace {

constexpr double width = 840;
constexpr double names_width = 170;
constexpr double bars_width = 440;  // of the longest bar; numbers are on its right
constexpr double bar_height = 18, bar_pitch = 24, group_head = 34, head = 66, foot = 16;
constexpr std::string_view first_class = "b q0", second_class = "b q1";

std::string rectangle(std::string_view css_class, double x, double y, double w, double h) {
  return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", css_class,
                     x, y, w, h);
}

}  // namespace

std::string bar_chart(std::string_view title, std::string_view first_name, std::string_view second_name,
                      const std::vector<BarGroup>& groups) {
  double height = head + foot;
  double longest = 1e-9;
  for (const BarGroup& group : groups) {
    height += group_head + bar_pitch * static_cast<double>(group.bars.size());
    for (const StackedBar& bar : group.bars) {
      longest = std::max(longest, std::max(bar.first_pct, 0.0) + std::max(bar.second_pct, 0.0));
    }
  }
  std::string svg =
      report::open_svg(width, height, title, fmt::format("{} and {}, in percent", first_name, second_name));
  svg += report::svg_text(16, 26, "start", "fg h", title);
  svg += rectangle(first_class, 16, 40, 14, 14) + report::svg_text(36, 52, "start", "fg", first_name);
  const double second_x = 60 + 7.2 * static_cast<double>(first_name.size());
  svg +=
      rectangle(second_class, second_x, 40, 14, 14) + report::svg_text(second_x + 20, 52, "start", "fg", second_name);
  double y = head;
  for (const BarGroup& group : groups) {
    svg += report::svg_text(16, y + 22, "start", "fg", group.title);
    y += group_head;
    for (const StackedBar& bar : group.bars) {
      const double first = bars_width * std::max(bar.first_pct, 0.0) / longest;
      const double second = bars_width * std::max(bar.second_pct, 0.0) / longest;
      svg += report::svg_text(names_width - 8, y + 14, "end", "dim", bar.name);
      svg += rectangle(first_class, names_width, y, first, bar_height);
      svg += rectangle(second_class, names_width + first, y, second, bar_height);
      svg += report::svg_text(
          names_width + first + second + 8, y + 14, "start", "fg",
          fmt::format("{:.1f} + {:.1f} = {:.1f} %", bar.first_pct, bar.second_pct, bar.first_pct + bar.second_pct));
      y += bar_pitch;
    }
  }
  return svg + "</svg>\n";
}

}  // namespace perseus::reproduction
