#include "server/power/site_shares.h"

#include <algorithm>
#include <cmath>

#include "planning/site/allocate.h"
#include "server/power/site_guard.h"

namespace perseus::power {
namespace {

/// The plans that no other one beats, in ascending power.
model::PowerCurve curve_of(const policies::PowerChoices& choices, double correction) {
  std::vector<model::PowerPoint> points;
  for (const policies::PowerAtTime& plan : choices.plans) {
    points.push_back({plan.power * correction, choices.full_speed / plan.time, 0, false});
  }
  std::ranges::sort(points, [](const model::PowerPoint& a, const model::PowerPoint& b) {
    return a.power != b.power ? a.power < b.power : a.rate > b.rate;
  });
  model::PowerCurve curve;
  for (const model::PowerPoint& point : points) {
    if (curve.points.empty() || (point.rate > curve.points.back().rate && point.power > curve.points.back().power)) {
      curve.points.push_back(point);
    }
  }
  return curve;
}

/// The fastest point within that power; -1: there is none.
int point_within(const model::PowerCurve& curve, Watts most) {
  const auto above = std::ranges::upper_bound(curve.points, most, {}, &model::PowerPoint::power);
  return static_cast<int>(above - curve.points.begin()) - 1;
}

class Division {
 public:
  explicit Division(const PoweredSite& given)
      : given_(given), limits_(given.limits), beyond_(given.limits.size()), windows_(windows_of_limits(given)) {}

  SiteShares divide() {
    take_constants();
    add_limited_jobs();
    for (const PoweredJob& job : given_.jobs) { shares_.wanted.push_back(job.choices ? job.all_max() : job.granted); }
    shares_.price.assign(limits_.size(), 0);
    shares_.missing = beyond_;
    shares_.gives.resize(limits_.size());
    if (!windows_.empty()) shares_.guard.resize(limits_.size());
    if (site_.jobs.empty()) return std::move(shares_);
    const model::Allocation allocation = allocate();
    for (std::size_t d = 0; d < limits_.size(); ++d) {
      shares_.price[d] = allocation.price[d];
      shares_.missing[d] += allocation.missing[d];
    }
    shares_.kept = keeps_grants(allocation.bound);
    for (std::size_t k = 0; k < site_.jobs.size(); ++k) {
      const PoweredJob& job = given_.jobs[index_[k]];
      const model::PowerPoint& chosen = site_.jobs[k].curve.points[allocation.chosen[k]];
      shares_.wanted[index_[k]] = shares_.kept ? job.granted : chosen.power;
      if (chosen.rate < site_.jobs[k].least_rate) note_below(site_.jobs[k]);
    }
    return std::move(shares_);
  }

 private:
  /// Calls `visit` with the job's domain and those around it.
  template <class Visit>
  void for_each_around(int domain, Visit visit) const {
    for (int d = domain; d >= 0; d = given_.domains[d].parent) visit(d);
  }

  model::Allocation allocate() {
    site::Allocator allocator(site_, given_.objective);
    if (windows_.empty()) return allocator.allocate(limits_);
    model::Allocation last;
    shares_.guard = site::settle_guards(limits_, [&](std::span<const Watts> left) {
      last = allocator.allocate(left);
      std::vector<Watts> grants = granted_or_counted();
      site::GuardedLoad load{std::vector<Watts>(limits_.size()), {}};
      for (std::size_t k = 0; k < site_.jobs.size(); ++k) {
        const Watts power = site_.jobs[k].curve.points[last.chosen[k]].power;
        grants[index_[k]] = power;
        for_each_around(site_.jobs[k].domain, [&](int d) { load.used[d] += power; });
      }
      load.guard = guards_of(given_, windows_, grants);
      return load;
    });
    return last;
  }

  [[nodiscard]] std::vector<Watts> granted_or_counted() const {
    std::vector<Watts> grants;
    for (const PoweredJob& job : given_.jobs) grants.push_back(job.choices ? job.granted : job.counted);
    return grants;
  }

  void take_constants() {
    for (const PoweredJob& job : given_.jobs) {
      if (job.choices) continue;
      for_each_around(job.domain, [&](int d) { limits_[d] -= job.counted; });
    }
    for (std::size_t d = 0; d < limits_.size(); ++d) {
      if (limits_[d] >= Watts(0)) continue;
      beyond_[d] = -limits_[d];
      limits_[d] = Watts(0);
    }
  }

  void add_limited_jobs() {
    std::vector<Watts> most(limits_.size()), grants;
    for (const PoweredJob& job : given_.jobs) {
      grants.push_back(job.choices ? job.all_max() : job.counted);
      if (!job.choices) continue;
      const Watts room = job.has_grant ? kReleaseRoom * job.all_max() : Watts(0);
      for_each_around(job.domain, [&](int d) { most[d] += job.all_max() + room; });
    }
    if (!windows_.empty()) {
      const std::vector<Watts> guards = guards_of(given_, windows_, grants);
      for (std::size_t d = 0; d < most.size(); ++d) most[d] += guards[d];
    }
    site_.domains = given_.domains;
    for (std::size_t j = 0; j < given_.jobs.size(); ++j) {
      const PoweredJob& job = given_.jobs[j];
      bool limited = false;
      for_each_around(job.domain, [&](int d) { limited |= most[d] > limits_[d]; });
      if (!job.choices || !limited) continue;
      index_.push_back(j);
      site_.jobs.push_back(
          {job.id, curve_of(*job.choices, job.correction), job.weight, job.least_rate, job.domain, job.all_max()});
    }
  }

  [[nodiscard]] bool keeps_grants(double bound) const {
    if (std::isnan(bound)) return false;
    std::vector<Watts> sums = guards_of(given_, windows_, granted_or_counted());
    double value = given_.objective == model::SiteObjective::max_min ? 1 : 0;
    for (std::size_t k = 0; k < site_.jobs.size(); ++k) {
      const PoweredJob& job = given_.jobs[index_[k]];
      const int point = job.has_grant ? point_within(site_.jobs[k].curve, job.granted * (1 + 1e-9)) : -1;
      if (point < 0) return false;
      const double rate = site_.jobs[k].curve.points[point].rate;
      if (rate < std::min(job.least_rate, site_.jobs[k].curve.points.back().rate)) return false;
      const double own = value_of(given_.objective, site_.jobs[k], rate);
      value = given_.objective == model::SiteObjective::max_min ? std::min(value, own) : value + own;
      for_each_around(job.domain, [&](int d) { sums[d] += job.granted; });
    }
    for (std::size_t d = 0; d < limits_.size(); ++d) {
      if (sums[d] > limits_[d] * (1 + 1e-9)) return false;
    }
    return value >= bound - kSmallLoss * std::abs(bound);
  }

  void note_below(const model::SiteJob& job) {
    for_each_around(job.domain, [&](int d) {
      if (shares_.missing[d] <= Watts(0)) return;
      auto& tiers = shares_.gives[d];
      const auto tier = std::ranges::find(tiers, job.least_rate, &TierGives::least_rate);
      tier == tiers.end() ? tiers.push_back({job.least_rate, 1}) : void(++tier->jobs);
    });
  }

  const PoweredSite& given_;
  std::vector<Watts> limits_;  ///< left by the jobs without choices
  std::vector<Watts> beyond_;  ///< by which those exceed a limit
  DomainWindows windows_;      ///< of the domains that have a limit
  model::Site site_;           ///< the jobs that a limit can bind
  std::vector<std::size_t> index_;
  SiteShares shares_;
};

}  // namespace

SiteShares shares_of(const PoweredSite& site) { return Division(site).divide(); }

Watts planned_power(const PoweredJob& job, Watts drawn) {
  for (const policies::PowerAtTime& plan : job.choices->plans) {
    if (plan.power * job.correction == drawn) return plan.power;
  }
  return drawn / job.correction;
}

}  // namespace perseus::power
