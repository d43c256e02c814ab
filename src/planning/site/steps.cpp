#include "planning/site/steps.h"

#include <algorithm>
#include <functional>
#include <limits>

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

Steps::Steps(const model::Site& site, model::SiteObjective objective) : objective_(objective) {
  jobs_.reserve(site.jobs.size());
  for (const model::SiteJob& job : site.jobs) {
    const int points = static_cast<int>(std::ssize(job.curve.points));
    jobs_.push_back({job.curve.points.data(), job.weight, floor_point_of(job), points - 1, -1, 0, 0, 0});
    Job& added = jobs_.back();
    if (objective != model::SiteObjective::max_min && !is_concave(added)) add_hull(added);
    added.samples = static_cast<int>(std::ssize(samples_));
    const int number = static_cast<int>(std::ssize(jobs_)) - 1;
    for (int v = added.floor; v < added.last; v += kStride) samples_.push_back(urgency(number, v));
    added.samples_end = static_cast<int>(std::ssize(samples_));
  }
  raise_steps_below_floors();
}

bool Steps::is_concave(const Job& job) const {
  double before = std::numeric_limits<double>::infinity();
  for (int p = job.floor; p < job.last; ++p) {
    const double gain = model::gain_per_w(objective_, job.weight, job.points[p], job.points[p + 1]);
    if (gain > before) return false;
    before = gain;
  }
  return true;
}

void Steps::add_hull(Job& job) {
  const auto gain = [&](int from, int to) {
    return model::gain_per_w(objective_, job.weight, job.points[from], job.points[to]);
  };
  const auto begin = std::ssize(hulls_);
  for (int p = job.floor; p <= job.last; ++p) {
    while (std::ssize(hulls_) >= begin + 2) {
      const int last = hulls_.back();
      if (gain(hulls_[hulls_.size() - 2], last) > gain(last, p)) break;
      hulls_.pop_back();
    }
    hulls_.push_back(p);
  }
  job.hull = static_cast<int>(begin);
  job.last = job.floor + static_cast<int>(std::ssize(hulls_) - begin) - 1;
}

void Steps::raise_steps_below_floors() {
  std::vector<double> tiers;
  for (int j = 0; j < std::ssize(jobs_); ++j) {
    tiers.push_back(point_of(j, floor(j)).rate);
    if (floor(j) < last(j)) urgency_below_ = std::max(urgency_below_, urgency(j, floor(j)));
  }
  std::ranges::sort(tiers);
  tiers.erase(std::unique(tiers.begin(), tiers.end()), tiers.end());
  for (int j = 0; j < std::ssize(jobs_); ++j) {
    const auto tier = std::ranges::lower_bound(tiers, point_of(j, floor(j)).rate) - tiers.begin();
    jobs_[j].tier = 2 * static_cast<double>(tier) + 3;
  }
}

int Steps::first_at_most(int job, double wanted, int low, int high) const {
  const Job& j = jobs_[job];
  const auto is_above = [&](int step) { return urgency(job, step) > wanted; };
  // Steps below the floor have more than twice that urgency.
  wanted > urgency_below_ ? high = std::min(high, std::max(low, j.floor))
                          : low = std::max(low, std::min(high, j.floor));
  if (high - low > kStride && low >= j.floor) {
    const auto begin = samples_.begin() + j.samples, end = samples_.begin() + j.samples_end;
    const auto first = std::lower_bound(begin, end, wanted, std::greater<>());
    const int block = j.floor + static_cast<int>(first - begin) * kStride;
    high = std::clamp(block, low, high);
    low = std::clamp(block - kStride + 1, low, high);
    if (first != begin && first != end && low < high) {  // as if urgencies fell evenly between the samples
      const int expected = block - static_cast<int>(kStride * (wanted - *first) / (first[-1] - *first));
      const int start = std::clamp(expected, low, high - 1);
      int reach = 1;
      if (is_above(start)) {
        low = start + 1;
        for (; low + reach <= high && is_above(low + reach - 1); reach *= 2) low += reach;
        high = std::min(high, low + reach - 1);
      } else {
        high = start;
        for (; low + reach <= high && !is_above(high - reach); reach *= 2) high -= reach;
        low = std::max(low, high - reach + 1);
      }
    }
  }
  while (low < high) {
    const int middle = low + (high - low) / 2;
    is_above(middle) ? low = middle + 1 : high = middle;
  }
  return low;
}

}  // namespace perseus::site
