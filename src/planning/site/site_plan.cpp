#include "planning/site/site_plan.h"

#include <algorithm>

#include "planning/site/allocate.h"
#include "planning/site/site_limits.h"

namespace perseus::site {
namespace {

/// Beginnings of all intervals.
std::vector<Seconds> boundaries_of(const TimedSite& timed) {
  std::vector<Seconds> times{Seconds(0)};
  for (const auto& limits : timed.limits) {
    for (const model::LimitStep& step : limits) times.push_back(step.from);
  }
  for (const auto& due : timed.due) {
    if (due) times.push_back(due->at);
  }
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::erase_if(times, [&](Seconds time) { return time > Seconds(0) && time >= timed.end; });
  return times;
}

/// Sets the floors of jobs with a deadline; true if one changed.
bool raise_floors(const std::vector<std::optional<DueWork>>& due, const model::Site& tiers, Seconds now,
                  model::Site& site) {
  bool changed = false;
  for (std::size_t j = 0; j < due.size(); ++j) {
    if (!due[j]) continue;
    double floor = tiers.jobs[j].least_rate;
    if (now < due[j]->at && due[j]->work > Seconds(0)) {
      floor = std::clamp(due[j]->work / (due[j]->at - now), floor, 1.0);
    }
    changed = changed || floor != site.jobs[j].least_rate;
    site.jobs[j].least_rate = floor;
  }
  return changed;
}

const model::PowerPoint& chosen_point(const model::Site& site, const std::vector<int>& chosen, std::size_t job) {
  return site.jobs[job].curve.points[chosen[job]];
}

bool is_inside(const model::Site& site, int domain, int outer) {
  while (domain > outer) domain = site.domains[domain].parent;
  return domain == outer;
}

/// The jobs of a domain, alone.
model::Site part_of(const model::Site& site, int domain) {
  model::Site part{{{site.domains[domain].name, -1}}, {}};
  for (const model::SiteJob& job : site.jobs) {
    if (!is_inside(site, job.domain, domain)) continue;
    part.jobs.push_back(job);
    part.jobs.back().domain = 0;
  }
  return part;
}

/// Of the domains that have a window.
std::vector<Watts> guards_of(const TimedSite& timed, const std::vector<int>& chosen) {
  const auto& domains = timed.site.domains;
  std::vector<SwingSum> sums(domains.size());
  for (std::size_t j = 0; j < chosen.size() && !timed.windows.empty(); ++j) {
    for (int d = timed.site.jobs[j].domain; d >= 0; d = domains[d].parent) {
      if (timed.windows[d]) sums[d].add(timed.swing_of(j, chosen[j], *timed.windows[d]));
    }
  }
  std::vector<Watts> guards;
  for (const SwingSum& sum : sums) guards.push_back(window_guard(sum));
  return guards;
}

std::vector<int> equal_shares(const model::Site& site, double fraction) {
  std::vector<int> chosen;
  for (const model::SiteJob& job : site.jobs) {
    const auto& points = job.curve.points;
    const auto beyond = std::ranges::upper_bound(points, fraction * job.all_max, {}, &model::PowerPoint::power);
    chosen.push_back(std::max(0, static_cast<int>(beyond - points.begin()) - 1));
  }
  return chosen;
}

}  // namespace

Speed speed_of(const model::Site& site, const std::vector<int>& chosen) {
  double sum = 0, full = 0, least = 1;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const double rate = chosen_point(site, chosen, j).rate;
    sum += site.jobs[j].weight * rate;
    full += site.jobs[j].weight;
    least = std::min(least, rate);
  }
  return {full > 0 ? sum / full : 1, least};
}

std::vector<Watts> power_of(const model::Site& site, const std::vector<int>& chosen) {
  std::vector<Watts> power(site.domains.size());
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    power[site.jobs[j].domain] += chosen_point(site, chosen, j).power;
  }
  for (std::size_t d = power.size() - 1; d > 0; --d) power[site.domains[d].parent] += power[d];
  return power;
}

std::vector<Watts> Interval::guarded_limits() const {
  std::vector<Watts> left = limits;
  for (std::size_t d = 0; d < left.size(); ++d) {
    if (left[d] != model::kNoLimit) left[d] = std::max(Watts(0), left[d] - guards[d]);
  }
  return left;
}

std::vector<Interval> plan_site(const TimedSite& timed, model::SiteObjective objective, const SiteProgress& progress) {
  model::Site site = timed.site;
  std::vector<std::optional<DueWork>> due = timed.due;
  std::optional<Allocator> allocator;
  std::vector<Interval> intervals;
  const std::vector<Seconds> times = boundaries_of(timed);
  for (std::size_t k = 0; k < times.size(); ++k) {
    if (raise_floors(due, timed.site, times[k], site) || !allocator) allocator.emplace(site, objective);
    Interval interval{times[k], k + 1 < times.size() ? times[k + 1] : timed.end, {}, {}, {}, {}};
    for (const auto& limits : timed.limits) interval.limits.push_back(limit_at(limits, times[k]));
    for (const model::SiteJob& job : site.jobs) interval.least_rates.push_back(job.least_rate);
    interval.guards = settle_guards(interval.limits, [&](std::span<const Watts> left) {
      interval.allocation = allocator->allocate(left);
      interval.used = power_of(site, interval.allocation.chosen);
      return GuardedLoad{interval.used, guards_of(timed, interval.allocation.chosen)};
    });
    for (std::size_t d = 0; d < interval.limits.size(); ++d) {  // the allocation knows no limit below 0 W
      interval.below.push_back(std::max(Watts(0), interval.guards[d] - interval.limits[d]));
      interval.allocation.missing[d] += interval.below[d];
      interval.limits[d] = std::max(Watts(0), interval.limits[d]);
    }
    for (std::size_t j = 0; j < due.size(); ++j) {
      if (due[j])
        due[j]->work -= chosen_point(site, interval.allocation.chosen, j).rate * (interval.until - interval.from);
    }
    intervals.push_back(std::move(interval));
    if (progress) progress(static_cast<double>(k + 1) / static_cast<double>(times.size()));
  }
  return intervals;
}

std::vector<WhatIf> throughput_over_watts(const model::Site& site, model::SiteObjective objective, int domain,
                                          std::span<const double> fractions) {
  const model::Site part = part_of(site, domain);
  Watts all_max;
  for (const model::SiteJob& job : part.jobs) all_max += job.all_max;
  Allocator allocator(part, objective);
  std::vector<WhatIf> curve;
  for (const double fraction : fractions) {
    const Watts limit = fraction * all_max;
    const model::Allocation allocation = allocator.allocate(std::span(&limit, 1));
    curve.push_back({fraction, limit, speed_of(part, allocation.chosen), speed_of(part, equal_shares(part, fraction)),
                     allocation.missing[0]});
  }
  return curve;
}

double headroom_at(const model::Site& site, double rate) {
  Watts all_max, needed;
  for (const model::SiteJob& job : site.jobs) {
    all_max += job.all_max;
    const auto& points = job.curve.points;
    const auto enough = std::ranges::lower_bound(points, rate, {}, &model::PowerPoint::rate);
    needed += (enough == points.end() ? points.back() : *enough).power;
  }
  return needed > Watts(0) ? all_max / needed - 1 : 0;
}

}  // namespace perseus::site
