#include "io/report/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "io/report/format.h"
#include "io/report/svg_page.h"

namespace perseus::report {

void Axes::Range::include(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void Axes::Range::add_margin() {
  if (low > high) {
    low = 0, high = 1;
    return;
  }
  const double largest = std::max(std::abs(low), std::abs(high));
  const bool is_flat = high - low <= 1e-9 * largest;  // values that differ by rounding only
  const double margin = 0.05 * (is_flat ? std::max(largest, 1e-9) : high - low);
  low -= margin;
  high += margin;
}

void Axes::include(const ChartPoint& point) {
  if (!std::isfinite(point.x) || !std::isfinite(point.y)) return;
  x_.include(point.x);
  y_.include(point.y);
}

void Axes::add_margin() {
  x_.add_margin();
  y_.add_margin();
}

ChartPoint Axes::position(const ChartPoint& value) const {
  return {frame_.left + x_.share(value.x) * (frame_.right - frame_.left),
          frame_.bottom - y_.share(value.y) * (frame_.bottom - frame_.top)};
}

std::optional<std::pair<ChartPoint, ChartPoint>> Axes::clipped(ChartPoint from, ChartPoint to) const {
  // Liang and Barsky: each edge limits the share of the segment that stays.
  const double dx = to.x - from.x, dy = to.y - from.y;
  const std::array<std::pair<double, double>, 4> edges{{{-dx, from.x - frame_.left},
                                                        {dx, frame_.right - from.x},
                                                        {-dy, from.y - frame_.top},
                                                        {dy, frame_.bottom - from.y}}};
  double first = 0, last = 1;
  for (const auto& [outward, inside] : edges) {
    if (outward == 0 && inside < 0) return std::nullopt;
    if (outward < 0) first = std::max(first, inside / outward);
    if (outward > 0) last = std::min(last, inside / outward);
  }
  if (!(first <= last)) return std::nullopt;
  return std::pair{ChartPoint{from.x + first * dx, from.y + first * dy},
                   ChartPoint{from.x + last * dx, from.y + last * dy}};
}

std::string Axes::grid() const {
  const auto [left, right, top, bottom] = frame_;
  std::string svg;
  const std::vector<double> xs = ticks_within(x_.low, x_.high, static_cast<int>((right - left) / 60));
  const std::vector<double> ys = ticks_within(y_.low, y_.high, 6);
  for (const double tick : xs) {
    const double x = position({tick, y_.low}).x;
    svg += fmt::format("<path class=\"grid n\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", x, top, bottom);
    svg += svg_text(x, bottom + 18, "middle", "dim", tick_label(tick, xs));
  }
  for (const double tick : ys) {
    const double y = position({x_.low, tick}).y;
    svg += fmt::format("<path class=\"grid n\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left, y, right);
    svg += svg_text(left - 8, y + 4.5, "end", "dim", tick_label(tick, ys));
  }
  return svg;
}

}  // namespace perseus::report
