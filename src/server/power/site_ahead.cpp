#include "server/power/site_ahead.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "server/power/powered_jobs.h"

namespace perseus::power {
namespace {

constexpr double kRampStep_s = 60;
constexpr double kFirstStep_s = 2;
constexpr double kNeedlesslyFar = 0.9;
constexpr double kLower = 1 - 1e-6;
constexpr double kJustBefore_s = 1e-3;

/// When the domain must begin to fall so as to reach that step in time.
double begin_of_ramp(const model::DescribedDomain& domain, std::size_t step, double after_s) {
  const std::vector<model::LimitStep>& limits = domain.limits;
  for (std::size_t k = step; k-- > 0;) {
    if (limits[k].limit == model::kNoLimit) break;
    const double fall_w = (limits[k].limit - limits[step].limit).value();
    const double begin_s = limits[step].from.value() - std::max(fall_w, 0.0) / *domain.ramp.down_w_per_s;
    if (begin_s >= limits[k].from.value() || limits[k].from.value() <= after_s) return begin_s;
  }
  return -std::numeric_limits<double>::infinity();
}

/// Between two times of this list each limit is a line, or a minimum of lines.
std::vector<double> times_of(const jobs::SiteDocument& document, double after_s) {
  const double until_s = after_s + kHorizon_s;
  std::set<double> times{after_s};
  const auto add = [&](double time_s) {
    if (time_s > after_s && time_s <= until_s) times.insert(time_s);
  };
  for (const model::DescribedDomain& domain : document.site.domains) {
    for (std::size_t k = 0; k < domain.limits.size(); ++k) {
      const double from_s = domain.limits[k].from.value();
      add(from_s);
      if (!domain.ramp.down_w_per_s || domain.limits[k].limit == model::kNoLimit || from_s <= after_s) continue;
      const double begin_s = std::max(begin_of_ramp(domain, k, after_s), after_s);
      const double end_s = std::min(from_s, until_s);
      for (double after = 0; begin_s + after < end_s; after = std::max(kFirstStep_s, 2 * after)) add(begin_s + after);
      // On whole minutes, so that the same ramp has the same times whenever it is looked at.
      for (double time_s = (std::floor(begin_s / kRampStep_s) + 1) * kRampStep_s; time_s < end_s;) {
        add(time_s);
        time_s += kRampStep_s;
      }
    }
  }
  return {times.begin(), times.end()};
}

bool lower_in_one(const std::vector<Watts>& limits, const std::vector<Watts>& before) {
  for (std::size_t d = 0; d < limits.size(); ++d) {
    if (limits[d] < before[d] * kLower) return true;
  }
  return false;
}

void take_least(std::vector<Watts>& least, const std::vector<Watts>& other) {
  for (std::size_t d = 0; d < least.size(); ++d) least[d] = std::min(least[d], other[d]);
}

/// The part of the time since the first fall by which a fall is early that takes the limits of the next one.
double earliness(const std::vector<LaterLimits>& falls, std::size_t k) {
  return (falls[k + 1].from_s - falls[k].from_s) / (falls[k + 1].from_s - falls.front().from_s);
}

/// Of two falls that become one the former has the limits of the latter.
void put_together(std::vector<LaterLimits>& falls) {
  while (falls.size() > kMostFalls) {
    std::size_t least = 1;
    for (std::size_t k = 2; k + 1 < falls.size(); ++k) {
      if (earliness(falls, k) < earliness(falls, least)) least = k;
    }
    falls[least].until_s = falls[least + 1].until_s;
    falls[least].limits = std::move(falls[least + 1].limits);
    falls.erase(falls.begin() + static_cast<std::ptrdiff_t>(least) + 1);
  }
}

}  // namespace

std::vector<LaterLimits> falls_ahead(const jobs::SiteDocument& document, double after_s,
                                     const std::vector<int>& accelerators, const std::vector<double>& meter_factors) {
  std::vector<LaterLimits> falls;
  std::vector<Watts> least = limits_between(document, after_s, after_s, accelerators, meter_factors);
  const std::vector<double> times = times_of(document, after_s);
  for (std::size_t k = 0; k < times.size(); ++k) {
    const double until_s = k + 1 < times.size() ? times[k + 1] : after_s + kHorizon_s;
    const std::vector<Watts> limits =
        limits_between(document, times[k], until_s - kJustBefore_s, accelerators, meter_factors);
    if (!lower_in_one(limits, least)) continue;
    take_least(least, limits);
    falls.push_back({times[k], until_s, least});
  }
  put_together(falls);
  return falls;
}

BudgetsAhead budgets_ahead(const PoweredSite& site, const std::vector<LaterLimits>& falls) {
  BudgetsAhead ahead(site.jobs.size());
  std::vector<jobs::LaterBudget> last(site.jobs.size(), {0, 0, std::numeric_limits<int>::max()});
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const PoweredJob& job = site.jobs[j];
    // The ceiling and the period that it has now; without a limit, none.
    if (job.choices && job.granted < job.all_max()) {
      last[j] = policies::without_plan(*job.choices, planned_power(job, job.granted), last[j].ceiling_mhz);
    }
  }
  PoweredSite later = site;
  for (const LaterLimits& fall : falls) {
    later.limits = fall.limits;
    const SiteShares shares = shares_of(later);
    for (std::size_t j = 0; j < site.jobs.size(); ++j) {
      const PoweredJob& job = site.jobs[j];
      if (!job.choices) continue;
      if (shares.wanted[j] >= job.all_max()) continue;
      const Watts share = planned_power(job, shares.wanted[j]);
      jobs::LaterBudget next = policies::without_plan(*job.choices, share, last[j].ceiling_mhz);
      next.at_s = fall.from_s;
      // Until the first fall it follows its plan, whose clocks are above the ceiling.
      const bool holds = ahead[j].empty() ? shares.wanted[j] >= kLower * job.granted
                                          : next.ceiling_mhz >= last[j].ceiling_mhz &&
                                                next.paced_iteration_s <= last[j].paced_iteration_s;
      if (holds) continue;
      next.paced_iteration_s = std::max(next.paced_iteration_s, last[j].paced_iteration_s);
      last[j] = next;
      ahead[j].push_back(next);
    }
  }
  return ahead;
}

bool falls_on(const std::vector<LaterLimits>& falls, double at_s, const std::vector<Watts>& limits) {
  const auto next = std::ranges::upper_bound(falls, at_s, {}, &LaterLimits::from_s);
  return next != falls.begin() && at_s < (next - 1)->until_s && lower_in_one((next - 1)->limits, limits);
}

std::vector<jobs::LaterBudget> falls_from(double at_s, bool falls_on, std::vector<jobs::LaterBudget> ahead) {
  auto first = std::ranges::find_if(ahead, [at_s](const jobs::LaterBudget& later) { return later.at_s > at_s; });
  if (falls_on && first != ahead.begin()) (--first)->at_s = at_s;
  ahead.erase(ahead.begin(), first);
  return ahead;
}

bool still_holds(const std::vector<jobs::LaterBudget>& sent, const std::vector<jobs::LaterBudget>& now) {
  return std::ranges::equal(sent, now, [](const jobs::LaterBudget& was, const jobs::LaterBudget& is) {
    return was.at_s == is.at_s && was.ceiling_mhz <= is.ceiling_mhz &&
           was.ceiling_mhz >= kNeedlesslyFar * is.ceiling_mhz && was.paced_iteration_s >= is.paced_iteration_s &&
           kNeedlesslyFar * was.paced_iteration_s <= is.paced_iteration_s;
  });
}

}  // namespace perseus::power
