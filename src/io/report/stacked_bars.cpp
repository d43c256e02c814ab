#include "io/report/stacked_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "io/report/svg_page.h"

namespace perseus::report {
namespace {

constexpr double kWidth = 840, kLeft = 150, kRight = 110;
constexpr double kHead = 84, kRow = 44, kBarHeight = 28, kFoot = 14;
constexpr double kNarrowestLabel = 46;
/// Series classes of io/report/svg_page.h: neighbors differ in lightness as well as hue.
constexpr std::array<int, 5> kColors{0, 1, 2, 6, 4};
/// Opacity also distinguishes neighbors.
constexpr std::array<double, 5> kOpacities{0.5, 0.65, 0.45, 0.25, 0.35};

std::string swatch(std::size_t part, double x, double y, double w, double h) {
  return fmt::format(
      "<rect class=\"q{}\" fill-opacity=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
      kColors[part % kColors.size()], kOpacities[part % kOpacities.size()], x, y, w, h);
}

double sum_of(const std::vector<double>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, double part) { return sum + std::max(0.0, part); });
}

}  // namespace

std::string stacked_bars(std::string_view title, const std::vector<std::string>& part_names,
                         const std::vector<PartsBar>& bars) {
  double longest = 0;
  std::string description;
  for (const PartsBar& bar : bars) {
    longest = std::max(longest, sum_of(bar.parts));
    description += fmt::format("{}{}: {}", description.empty() ? "" : "; ", bar.name, bar.sum);
  }
  const double height = kHead + kRow * static_cast<double>(bars.size()) + kFoot;
  std::string svg = open_svg(kWidth, height, title, description);
  svg += svg_text(16, 26, "start", "fg h", title);
  double x = 16;
  for (std::size_t part = 0; part < part_names.size(); ++part) {
    svg += swatch(part, x, 44, 16, 12);
    svg += svg_text(x + 22, 55, "start", "fg", part_names[part]);
    x += 40 + 7.4 * static_cast<double>(part_names[part].size());
  }
  const double scale = longest > 0 ? (kWidth - kLeft - kRight) / longest : 0;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const PartsBar& bar = bars[i];
    const double y = kHead + kRow * static_cast<double>(i);
    svg += svg_text(kLeft - 10, y + kBarHeight / 2 + 5, "end", "fg", bar.name);
    double from = kLeft;
    const double all = sum_of(bar.parts);
    for (std::size_t part = 0; part < bar.parts.size(); ++part) {
      const double wide = scale * std::max(0.0, bar.parts[part]);
      svg += swatch(part, from, y, wide, kBarHeight);
      if (wide >= kNarrowestLabel) {
        svg += svg_text(from + wide / 2, y + kBarHeight / 2 + 4.5, "middle", "fg s",
                        fmt::format("{:.1f} %", 100 * bar.parts[part] / all));
      }
      from += wide;
    }
    svg += svg_text(from + 8, y + kBarHeight / 2 + 5, "start", "dim", bar.sum);
  }
  return svg + "</svg>\n";
}

}  // namespace perseus::report
