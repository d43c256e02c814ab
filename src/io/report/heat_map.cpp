#include "io/report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/report/svg_page.h"

namespace perseus::report {
namespace {

constexpr double kMapHead = 70, kMapFoot = 14, kTallestCell = 26, kLowestCell = 4, kTallestMap = 960;
constexpr double kLowestText = 18, kNarrowestText = 48;
constexpr double kLeastOpacity = 0.04, kMostOpacity = 0.7;  // text stays readable above it

}  // namespace

std::string heat_map(std::string_view title, const HeatMap& map) {
  const auto rows = static_cast<double>(map.rows.size()), columns = static_cast<double>(map.columns.size());
  const double height = std::clamp(kTallestMap / std::max(1.0, rows), kLowestCell, kTallestCell);
  const bool tall = height >= kLowestText;
  double left = kChartMargin;
  if (tall) {
    for (const std::string& row : map.rows) left = std::max(left, kChartMargin + text_width(row) + 10);
  }
  const double width = (kChartWidth - left - kChartMargin) / std::max(1.0, columns);
  std::string svg = open_svg(kChartWidth, kMapHead + rows * height + kMapFoot, title,
                             fmt::format("{} rows, {} columns", map.rows.size(), map.columns.size()));
  svg += svg_text(kChartMargin, 26, "start", "fg h", title);
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    if (text_width(map.columns[c]) < width)
      svg += svg_text(left + (static_cast<double>(c) + 0.5) * width, kMapHead - 10, "middle", "dim", map.columns[c]);
  }
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = kMapHead + static_cast<double>(r) * height;
    if (tall) svg += svg_text(left - 10, y + height / 2 + 5, "end", "fg", map.rows[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double share = std::clamp(map.shares[r][c], 0.0, 1.0), x = left + static_cast<double>(c) * width;
      const SvgBox box{x, y, width - 1, height - (height > 8 ? 1 : 0)};
      svg += fmt::format("<g fill-opacity=\"{:.2f}\">{}</g>\n", kLeastOpacity + (kMostOpacity - kLeastOpacity) * share,
                         svg_box("q1", box));
      if (tall && width >= kNarrowestText)
        svg += svg_text(x + width / 2, y + height / 2 + 5, "middle", "fg s", fmt::format("{:.1f} %", 100 * share));
      svg += svg_box("hit", box, fmt::format("{}, {}: {:.1f} %", map.rows[r], map.columns[c], 100 * share));
    }
  }
  return svg + "</svg>\n";
}

}  // namespace perseus::report
