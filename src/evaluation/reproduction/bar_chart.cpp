#include "evaluation/reproduction/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/report/svg_page.h"

namespace perseus::reproduction {
namespace {

constexpr double kWidth = 840;
constexpr double kNamesWidth = 170;
constexpr double kBarsWidth = 440;  // of the longest bar; numbers are on its right
constexpr double kBarHeight = 18, kBarPitch = 24, kGroupHead = 34, kHead = 66, kFoot = 16;
constexpr std::string_view kFirstClass = "b q0", kSecondClass = "b q1";

std::string rectangle(std::string_view css_class, double x, double y, double w, double h) {
  return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", css_class,
                     x, y, w, h);
}

}  // namespace

std::string bar_chart(std::string_view title, std::string_view first_name, std::string_view second_name,
                      const std::vector<BarGroup>& groups) {
  double height = kHead + kFoot;
  double longest = 1e-9;
  for (const BarGroup& group : groups) {
    height += kGroupHead + kBarPitch * static_cast<double>(group.bars.size());
    for (const StackedBar& bar : group.bars) {
      longest = std::max(longest, std::max(bar.first_pct, 0.0) + std::max(bar.second_pct, 0.0));
    }
  }
  std::string svg =
      report::open_svg(kWidth, height, title, fmt::format("{} and {}, in percent", first_name, second_name));
  svg += report::svg_text(16, 26, "start", "fg h", title);
  svg += rectangle(kFirstClass, 16, 40, 14, 14) + report::svg_text(36, 52, "start", "fg", first_name);
  const double second_x = 60 + 7.2 * static_cast<double>(first_name.size());
  svg +=
      rectangle(kSecondClass, second_x, 40, 14, 14) + report::svg_text(second_x + 20, 52, "start", "fg", second_name);
  double y = kHead;
  for (const BarGroup& group : groups) {
    svg += report::svg_text(16, y + 22, "start", "fg", group.title);
    y += kGroupHead;
    for (const StackedBar& bar : group.bars) {
      const double first = kBarsWidth * std::max(bar.first_pct, 0.0) / longest;
      const double second = kBarsWidth * std::max(bar.second_pct, 0.0) / longest;
      svg += report::svg_text(kNamesWidth - 8, y + 14, "end", "dim", bar.name);
      svg += rectangle(kFirstClass, kNamesWidth, y, first, kBarHeight);
      svg += rectangle(kSecondClass, kNamesWidth + first, y, second, kBarHeight);
      svg += report::svg_text(
          kNamesWidth + first + second + 8, y + 14, "start", "fg",
          fmt::format("{:.1f} + {:.1f} = {:.1f} %", bar.first_pct, bar.second_pct, bar.first_pct + bar.second_pct));
      y += kBarPitch;
    }
  }
  return svg + "</svg>\n";
}

}  // namespace perseus::reproduction
