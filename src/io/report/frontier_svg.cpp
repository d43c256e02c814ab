// frontier.svg: energy of one iteration against its time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/report/axes.h"
#include "io/report/format.h"
#include "io/report/report.h"
#include "io/report/svg_page.h"

namespace perseus::report {
namespace {

constexpr double kWidth = 960, kHeight = 560, kLeft = 92, kRight = 28, kTop = 92, kBottom = 62;

using Axes = TimeEnergyAxes;

Axes axes_for(const model::Frontier& frontier, const ReportSummary& s) {
  Axes axes({kLeft, kWidth - kRight, kTop, kHeight - kBottom});
  for (const model::FrontierPoint& p : frontier.points) axes.include(p.time, p.energy), axes.include(p.time, p.bound);
  axes.include(s.all_max.time, s.all_max.energy);
  axes.include(s.min_energy.time, s.min_energy.energy);
  if (s.straggler) axes.include(s.straggler->deadline, s.straggler->energy);
  axes.add_air();
  return axes;
}

/// The bound on total energy, which increases again past T*: waiting needs energy too.
std::string bound_line(const Axes& a, const ReportInput& input) {
  const Watts waiting = input.dag.total_blocking_power();
  const Seconds from = input.frontier.bound.t_min();
  const Seconds to = std::max(from, a.last_time());
  constexpr int steps = 200;
  std::string d;
  for (int k = 0; k <= steps; ++k) {
    const Seconds t = from + (double(k) / steps) * (to - from);
    const double y = std::max(a.y(input.frontier.bound.at(t) + waiting * t), kTop);
    d += fmt::format("{}{:.1f} {:.1f}", k == 0 ? "M" : "L", a.x(t), y);
  }
  return fmt::format("<path class=\"bound n\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\" d=\"{}\"/>\n", d);
}

std::string points(const Axes& a, const model::Frontier& frontier) {
  std::string d;
  for (const model::FrontierPoint& p : frontier.points)
    d += fmt::format("M{:.1f} {:.1f}h0", a.x(p.time), a.y(p.energy));
  return fmt::format("<path class=\"dots n\" stroke-width=\"4.5\" stroke-linecap=\"round\" d=\"{}\"/>\n", d);
}

std::string triangle(double x, double y) {
  return fmt::format("<path class=\"max\" d=\"M{:.1f} {:.1f}l7 13h-14z\"/>\n", x, y - 8);
}
std::string diamond(double x, double y) {
  return fmt::format("<path class=\"min\" d=\"M{:.1f} {:.1f}l7.5 7.5l-7.5 7.5l-7.5 -7.5z\"/>\n", x, y - 7.5);
}

std::string straggler(const Axes& a, const ReportInput& input, const StragglerChoice& choice) {
  const double x = a.x(choice.deadline);
  const model::FrontierPoint& p = input.frontier.points[choice.point];
  const bool label_left = x > (kLeft + kWidth - kRight) / 2;
  return fmt::format(
             "<path class=\"straggler n\" stroke-width=\"1.5\" d=\"M{0:.1f} {1}V{2}\"/>\n"
             "<circle class=\"straggler n\" stroke-width=\"2.5\" cx=\"{3:.1f}\" cy=\"{4:.1f}\" r=\"7\"/>\n",
             x, kTop, kHeight - kBottom, a.x(p.time), a.y(p.energy)) +
         svg_text(x + (label_left ? -8 : 8), kTop + 14, label_left ? "end" : "start", "straggler-text",
                  fmt::format("T' = {}: point {}", text_of(choice.deadline), choice.point));
}

std::string legend(const ReportSummary& s) {
  const double y = 66;
  std::string svg = fmt::format(
      "<path class=\"dots n\" stroke-width=\"6\" stroke-linecap=\"round\" d=\"M{0} {2}h0\"/>\n"
      "<path class=\"bound n\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\" d=\"M{1} {2}h24\"/>\n",
      kLeft + 5, kLeft + 128, y);
  svg += triangle(kLeft + 280, y) + diamond(kLeft + 520, y);
  svg += svg_text(kLeft + 14, y + 4.5, "start", "fg", "realized plan");
  svg += svg_text(kLeft + 158, y + 4.5, "start", "fg", "lower bound");
  svg += svg_text(kLeft + 292, y + 4.5, "start", "fg", "everything at maximum clock");
  svg += svg_text(kLeft + 533, y + 4.5, "start", "fg", "minimum effective energy, T* = " + text_of(s.min_energy.time));
  return svg;
}

}  // namespace

void write_frontier_svg(const ReportInput& input, const Sink& sink) {
  const ReportSummary s = summarize(input.dag, input.frontier, input.straggler, input.rule);
  const Axes a = axes_for(input.frontier, s);
  std::string description = fmt::format(
      "{} realized plans from {} at {} to {} at {}. Everything at maximum clock: {} at {}. Largest gap to the lower "
      "bound: {}.",
      input.frontier.points.size(), text_of(s.fastest.energy), text_of(s.fastest.time),
      text_of(input.frontier.points.front().energy), text_of(input.frontier.points.front().time),
      text_of(s.all_max.energy), text_of(s.all_max.time), percent(s.gap_max_pct));
  sink(open_svg(kWidth, kHeight, "Time-energy frontier: " + input.title, description));
  sink(svg_text(kLeft, 34, "start", "fg h", "Time-energy frontier: " + input.title));
  sink(legend(s) + a.grid());
  if (s.straggler) sink(straggler(a, input, *s.straggler));
  sink(points(a, input.frontier) + bound_line(a, input));
  sink(triangle(a.x(s.all_max.time), a.y(s.all_max.energy)) +
       diamond(a.x(s.min_energy.time), a.y(s.min_energy.energy)));
  sink("</svg>\n");
}

}  // namespace perseus::report
