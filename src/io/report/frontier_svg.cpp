#include <fmt/format.h>

#include <algorithm>

#include "io/report/format.h"
#include "io/report/line_chart.h"
#include "io/report/report.h"

namespace perseus::report {
namespace {

ChartPoint at(Seconds time, Joules energy) { return {time.value(), energy.value()}; }

/// The bound on total energy from T_min to `to`; it increases again past its slowest vertex: waiting needs energy too.
ChartSeries bound_series(const ReportInput& input, Seconds to) {
  constexpr int steps = 200;
  const Watts waiting = input.dag.total_blocking_power();
  const Seconds from = input.frontier.bound.t_min();
  ChartSeries series{"lower bound", look_of("bound"), SeriesKind::clipped_line};
  for (int k = 0; k <= steps; ++k) {
    const Seconds t = from + (double(k) / steps) * (std::max(from, to) - from);
    series.points.push_back(at(t, input.frontier.bound.at(t) + waiting * t));
  }
  return series;
}

/// Of points slower than the least energy: as realized plans, with another mark.
SeriesLook waiting_look() {
  SeriesLook look = look_of("exact");
  look.marker = Marker::cross;
  return look;
}

std::string frontier_description(const ReportInput& input, const ReportSummary& s) {
  return fmt::format(
      "{} realized plans from {} at {} to {} at {}. Everything at maximum clock: {} at {}. Largest gap to the lower "
      "bound: {}.",
      input.frontier.points.size(), text_of(s.fastest.energy), text_of(s.fastest.time),
      text_of(input.frontier.points.front().energy), text_of(input.frontier.points.front().time),
      text_of(s.all_max.energy), text_of(s.all_max.time), percent(s.gap_max_pct));
}

}  // namespace

void write_frontier_svg(const ReportInput& input, const Sink& sink) {
  const ReportSummary s = summarize(input.dag, input.frontier, input.straggler, input.rule);
  const auto& points = input.frontier.points;
  const auto least = std::ranges::min_element(points, {}, &model::FrontierPoint::energy);
  ChartSeries realized{"realized plan", look_of("exact"), SeriesKind::marks};
  ChartSeries waiting{"pays only while waiting", waiting_look(), SeriesKind::marks};
  for (auto p = points.begin(); p != points.end(); ++p)
    (p < least ? waiting : realized).points.push_back(at(p->time, p->energy));
  Seconds last = std::max({input.frontier.points.front().time, s.all_max.time, s.min_energy.time});
  ChartPanel panel;
  panel.series = {
      {"everything at maximum clock", look_of("all-max"), SeriesKind::marks, {at(s.all_max.time, s.all_max.energy)}}};
  if (s.straggler) {
    last = std::max(last, s.straggler->deadline);
    panel.vertical = s.straggler->deadline.value();
    panel.vertical_name = fmt::format("T' = {}: point {}", text_of(s.straggler->deadline), s.straggler->point);
    const model::FrontierPoint& chosen = input.frontier.points[s.straggler->point];
    panel.series.push_back({"plan for T'", look_of("exact"), SeriesKind::marks, {at(chosen.time, chosen.energy)}});
  }
  panel.series.push_back(bound_series(input, last));
  if (!waiting.points.empty()) panel.series.push_back(std::move(waiting));
  panel.series.push_back(std::move(realized));
  sink(line_chart({"Time-energy frontier: " + input.title, "iteration time [s]", "energy per iteration [J]",
                   frontier_description(input, s)},
                  {panel}));
}

}  // namespace perseus::report
