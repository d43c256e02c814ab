#include "planning/site/power_curve.h"

#include <algorithm>

namespace perseus::site {
namespace {

/// Keeps the points that no other one beats: sorted by power, each with a higher rate than all before.
std::vector<model::PowerPoint> pareto(std::vector<model::PowerPoint> points) {
  std::ranges::sort(points, [](const model::PowerPoint& a, const model::PowerPoint& b) {
    return a.power != b.power ? a.power < b.power : a.rate > b.rate;
  });
  std::vector<model::PowerPoint> kept;
  for (const model::PowerPoint& point : points) {
    if (kept.empty() || (point.rate > kept.back().rate && point.power > kept.back().power)) kept.push_back(point);
  }
  return kept;
}

}  // namespace

std::vector<double> paced_rates(double slowest_rate, double least_rate) {
  constexpr double step = 0.01;  // of the rate: a job is slower by as much where its watts lie between two
  std::vector<double> rates{0};
  for (double rate = kPaceStep; rate < slowest_rate; rate += std::min(kPaceStep, step * rate)) rates.push_back(rate);
  if (least_rate > 0 && least_rate < slowest_rate)
    rates.insert(std::ranges::upper_bound(rates, least_rate), least_rate);
  return rates;
}

model::PowerCurve power_curve_of(const model::Frontier& frontier, Watts blocking, double pipelines, double least_rate) {
  const model::FrontierPoint& slowest = frontier.points.front();
  const Seconds full_speed = frontier.points.back().time;
  std::vector<model::PowerPoint> points;
  const double slowest_rate = full_speed / slowest.time;
  const Watts above_blocking = slowest.energy / slowest.time - blocking;
  for (const double rate : paced_rates(slowest_rate, least_rate)) {
    points.push_back({pipelines * (blocking + (rate / slowest_rate) * above_blocking), rate, 0, true});
  }
  for (int p = 0; p < std::ssize(frontier.points); ++p) {
    const model::FrontierPoint& point = frontier.points[p];
    points.push_back({pipelines * (point.energy / point.time), full_speed / point.time, p, false});
  }
  return {pareto(std::move(points))};
}

}  // namespace perseus::site
