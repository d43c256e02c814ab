#include "server/service/site_ahead.h"

#include <algorithm>
#include <limits>
#include <set>

#include "server/service/powered_jobs.h"

namespace perseus::service {
namespace {

constexpr double kRampStep_s = 60;
constexpr double kNeedlesslyFar = 0.9;
constexpr double kLower = 1 - 1e-6;

/// Times at which a limit may change: its steps, and every minute in a domain with ramps.
std::vector<double> times_of(const jobs::SiteDocument& document, double after_s) {
  const double until_s = after_s + kHorizon_s;
  std::set<double> times;
  bool ramps = false;
  for (const model::DescribedDomain& domain : document.site.domains) {
    ramps |= domain.ramp.down_w_per_s.has_value() && !domain.limits.empty();
    for (const model::LimitStep& step : domain.limits) {
      const double from_s = step.from.value();
      if (from_s > after_s && from_s <= until_s) times.insert(from_s);
    }
  }
  // On whole minutes, so that the same ramp has the same times whenever it is looked at.
  const double first_s = (static_cast<double>(static_cast<std::int64_t>(after_s / kRampStep_s)) + 1) * kRampStep_s;
  for (double time_s = first_s; ramps && time_s <= until_s; time_s += kRampStep_s) times.insert(time_s);
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

}  // namespace

std::vector<LaterLimits> falls_ahead(const jobs::SiteDocument& document, double after_s,
                                     const std::vector<int>& accelerators, const std::vector<double>& meter_factors) {
  std::vector<LaterLimits> falls;
  std::vector<Watts> least = limits_between(document, after_s, after_s, accelerators, meter_factors);
  for (const double time_s : times_of(document, after_s)) {
    const std::vector<Watts> limits = limits_between(document, time_s, time_s, accelerators, meter_factors);
    if (!lower_in_one(limits, least)) continue;
    take_least(least, limits);
    falls.push_back({time_s, least});
  }
  // Between two times a ramp falls on: until the next one, the limits there hold already.
  for (std::size_t k = 0; k + 1 < falls.size(); ++k) {
    const std::vector<Watts> next =
        limits_between(document, falls[k].from_s, falls[k + 1].from_s - 1e-3, accelerators, meter_factors);
    take_least(falls[k].limits, next);
  }
  const std::size_t together = (falls.size() + kMostFalls - 1) / kMostFalls;
  std::vector<LaterLimits> few;
  for (std::size_t k = 0; k < falls.size(); k += together) {
    few.push_back({falls[k].from_s, falls[std::min(k + together, falls.size()) - 1].limits});
  }
  return few;
}

BudgetsAhead budgets_ahead(const PoweredSite& site, const std::vector<LaterLimits>& falls) {
  BudgetsAhead ahead(site.jobs.size());
  std::vector<jobs::LaterBudget> last(site.jobs.size(), {0, 0, std::numeric_limits<int>::max()});
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const PoweredJob& job = site.jobs[j];
    // The ceiling and the period that it has now; without a limit, none.
    if (job.choices && job.granted < job.all_max()) {
      last[j] = jobs::without_plan(*job.choices, planned_power(job, job.granted), last[j].ceiling_mhz);
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
      jobs::LaterBudget next = jobs::without_plan(*job.choices, share, last[j].ceiling_mhz);
      next.at_s = fall.from_s;
      if (next.ceiling_mhz >= last[j].ceiling_mhz && next.paced_iteration_s <= last[j].paced_iteration_s) continue;
      next.paced_iteration_s = std::max(next.paced_iteration_s, last[j].paced_iteration_s);
      last[j] = next;
      ahead[j].push_back(next);
    }
  }
  return ahead;
}

bool still_holds(const std::vector<jobs::LaterBudget>& sent, const std::vector<jobs::LaterBudget>& now) {
  return std::ranges::equal(sent, now, [](const jobs::LaterBudget& was, const jobs::LaterBudget& is) {
    return was.at_s == is.at_s && was.ceiling_mhz <= is.ceiling_mhz &&
           was.ceiling_mhz >= kNeedlesslyFar * is.ceiling_mhz && was.paced_iteration_s >= is.paced_iteration_s &&
           kNeedlesslyFar * was.paced_iteration_s <= is.paced_iteration_s;
  });
}

}  // namespace perseus::service
