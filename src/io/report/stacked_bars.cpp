#include "io/report/stacked_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "io/report/svg_page.h"

namespace perseus::report {
namespace {

constexpr double kBarsHead = 76, kGroupTitle = 34, kRow = 36, kBarHeight = 24, kBarsFoot = 14;
constexpr double kNarrowestLabel = 46;
constexpr double kNarrowestHit = 10;  // of the area of a part that shows a tooltip
/// Series classes of io/report/svg_page.h: neighbors differ in lightness as well as hue.
constexpr std::array<int, 5> kColors{0, 2, 1, 7, 6};
/// Opacity also distinguishes neighbors.
constexpr std::array<std::string_view, 5> kOpacities{"0.5", "0.65", "0.45", "0.25", "0.35"};

std::string part_box(std::size_t part, const SvgBox& box) {
  return fmt::format("<g fill-opacity=\"{}\">{}</g>\n", kOpacities[part % kOpacities.size()],
                     svg_box(fmt::format("q{}", kColors[part % kColors.size()]), box));
}

double sum_of(const std::vector<double>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, double part) { return sum + std::max(0.0, part); });
}

/// Measures of all bars: the longest one fills what their names and texts leave.
struct BarLayout {
  double left = 0, right = 0, height = kBarsHead + kBarsFoot, longest = 0;
  explicit BarLayout(const std::vector<BarGroup>& groups) {
    for (const BarGroup& group : groups) {
      height += (group.title.empty() ? 0 : kGroupTitle) + kRow * static_cast<double>(group.bars.size());
      for (const StackedBar& bar : group.bars) {
        left = std::max(left, kChartMargin + text_width(bar.name) + 10);
        right = std::max(right, kChartMargin + text_width(bar.text) + 8);
        longest = std::max(longest, sum_of(bar.parts));
      }
    }
  }
  [[nodiscard]] double scale() const { return longest > 0 ? (kChartWidth - left - right) / longest : 0; }
};

std::string draw_bar(const std::vector<std::string>& part_names, const StackedBar& bar, double y,
                     const BarLayout& layout) {
  const double baseline = y + kBarHeight / 2 + 5;
  std::string svg = svg_text(layout.left - 10, baseline, "end", "fg", bar.name);
  const double sum = sum_of(bar.parts);
  double x = layout.left;
  for (std::size_t part = 0; part < bar.parts.size(); ++part) {
    const double width = layout.scale() * std::max(0.0, bar.parts[part]);
    svg += part_box(part, {x, y, width, kBarHeight});
    if (bar.parts[part] > 0) {
      svg += svg_box(
          "hit", {x, y - (kRow - kBarHeight) / 2, std::max(width, kNarrowestHit), kRow},
          fmt::format("{}, {}: {:.2f} % of {}", bar.name, part_names[part], 100 * bar.parts[part] / sum, bar.text));
    }
    if (width >= kNarrowestLabel) {
      svg += svg_text(x + width / 2, baseline, "middle", "fg s", fmt::format("{:.1f} %", 100 * bar.parts[part] / sum));
    }
    x += width;
  }
  return svg + svg_text(x + 8, baseline, "start", "dim", bar.text);
}

}  // namespace

std::string stacked_bars(std::string_view title, const std::vector<std::string>& part_names,
                         const std::vector<BarGroup>& groups) {
  const BarLayout layout(groups);
  std::string description;
  for (const BarGroup& group : groups) {
    for (const StackedBar& bar : group.bars) {
      description += fmt::format("{}{}{}{}: {}", description.empty() ? "" : "; ", group.title,
                                 group.title.empty() ? "" : ", ", bar.name, bar.text);
    }
  }
  std::string svg = open_svg(kChartWidth, layout.height, title, description);
  svg += svg_text(kChartMargin, 26, "start", "fg h", title);
  double x = kChartMargin;
  for (std::size_t part = 0; part < part_names.size(); ++part) {
    svg += part_box(part, {x, 44, 16, 12}) + svg_text(x + 22, 55, "start", "fg", part_names[part]);
    x += 40 + text_width(part_names[part]);
  }
  double y = kBarsHead;
  for (const BarGroup& group : groups) {
    if (!group.title.empty()) {
      svg += svg_text(kChartMargin, y + 22, "start", "fg", group.title);
      y += kGroupTitle;
    }
    for (const StackedBar& bar : group.bars) {
      svg += draw_bar(part_names, bar, y, layout);
      y += kRow;
    }
  }
  return svg + "</svg>\n";
}

}  // namespace perseus::report
