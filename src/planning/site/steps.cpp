#include "planning/site/steps.h"

#include <algorithm>
#include <functional>

namespace perseus::site {
namespace {

/// Sums of rates differ in their last digits.
constexpr double kSameRate = 1 - 1e-12;

}  // namespace

int floor_point_of(const model::SiteJob& job) {
  const std::vector<model::PowerPoint>& points = job.curve.points;
  const auto accepted = std::ranges::find_if(
      points, [&](const model::PowerPoint& p) { return p.rate > 0 && p.rate >= kSameRate * job.least_rate; });
  return static_cast<int>(std::min(accepted, points.end() - 1) - points.begin());
}

Steps::Steps(const model::Site& site, model::SiteObjective objective) {
  std::size_t points = 0;
  for (const model::SiteJob& job : site.jobs) points += job.curve.points.size();
  power_w_.reserve(points);
  urgency_.reserve(points);
  point_.reserve(points);
  for (const model::SiteJob& job : site.jobs) add_job(job, objective);
  raise_steps_below_floors(site);
}

void Steps::add_job(const model::SiteJob& job, model::SiteObjective objective) {
  const std::vector<model::PowerPoint>& points = job.curve.points;
  const int floor_point = floor_point_of(job);
  for (int p = 0; p < floor_point; ++p) {
    power_w_.push_back(points[p].power.value());
    point_.push_back(p);
    urgency_.push_back(0);  // set by raise_steps_below_floors()
  }
  floor_.push_back(static_cast<int>(power_w_.size()));
  if (objective == model::SiteObjective::max_min) {
    for (int p = floor_point; p < std::ssize(points); ++p) {
      power_w_.push_back(points[p].power.value());
      point_.push_back(p);
      urgency_.push_back(-points[p].rate);
    }
  } else {
    add_hull(job, objective, floor_point);
  }
  first_.push_back(static_cast<int>(power_w_.size()));
}

void Steps::add_hull(const model::SiteJob& job, model::SiteObjective objective, int floor_point) {
  const std::vector<model::PowerPoint>& points = job.curve.points;
  std::vector<double> value;  // of the hull's vertices
  const std::size_t begin = power_w_.size();
  for (int p = floor_point; p < std::ssize(points); ++p) {
    const double power_w = points[p].power.value(), own = model::value_of(objective, job, points[p].rate);
    while (value.size() >= 2) {
      const double before_w = power_w_[power_w_.size() - 2], last_w = power_w_.back();
      const double last = value.back(), before = value[value.size() - 2];
      if ((last - before) * (power_w - last_w) > (own - last) * (last_w - before_w)) break;
      power_w_.pop_back();
      point_.pop_back();
      value.pop_back();
    }
    power_w_.push_back(power_w);
    point_.push_back(p);
    value.push_back(own);
  }
  for (std::size_t v = 0; v + 1 < value.size(); ++v) {
    urgency_.push_back((value[v + 1] - value[v]) / (power_w_[begin + v + 1] - power_w_[begin + v]));
  }
  urgency_.push_back(0);  // the last vertex has no step
}

void Steps::raise_steps_below_floors(const model::Site& site) {
  std::vector<double> floors;
  for (const model::SiteJob& job : site.jobs) floors.push_back(job.curve.points[floor_point_of(job)].rate);
  std::vector<double> tiers = floors;
  std::ranges::sort(tiers);
  tiers.erase(std::unique(tiers.begin(), tiers.end()), tiers.end());
  const double scale = urgency_.empty() ? 1 : std::max(1.0, *std::ranges::max_element(urgency_));
  for (int j = 0; j < std::ssize(site.jobs); ++j) {
    const auto tier = static_cast<double>(std::ranges::lower_bound(tiers, floors[j]) - tiers.begin());
    for (int v = first(j); v < floor(j); ++v) {
      const double reached = site.jobs[j].curve.points[point_[v]].rate / floors[j];
      urgency_[v] = scale * (2 * tier + 3 - reached);
    }
  }
}

int Steps::first_at_most(double urgency, int low, int high) const {
  const auto begin = urgency_.begin();
  return static_cast<int>(std::lower_bound(begin + low, begin + high, urgency, std::greater<>()) - begin);
}

int Steps::first_below(double urgency, int low, int high) const {
  const auto begin = urgency_.begin();
  return static_cast<int>(std::upper_bound(begin + low, begin + high, urgency, std::greater<>()) - begin);
}

}  // namespace perseus::site
