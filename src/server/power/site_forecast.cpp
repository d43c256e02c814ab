#include "server/power/site_forecast.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planning/site/site_limits.h"
#include "server/power/site_speed.h"

namespace perseus::power {
namespace {

/// Times from now_s on at which a limit of the domain may change.
void add_times(const model::DescribedDomain& domain, double now_s, double until_s, std::vector<double>& times) {
  for (const model::LimitStep& step : domain.limits) {
    if (step.from.value() > now_s && step.from.value() < until_s) times.push_back(step.from.value());
  }
  if (!domain.ramp.down_w_per_s && !domain.ramp.up_w_per_s) return;
  const double step_s = std::max(kRamp_s, (until_s - now_s) / (static_cast<double>(kMostSteps) / 2));
  for (double time_s = now_s + step_s; time_s < until_s; time_s += step_s) times.push_back(time_s);
}

Watts least_within(const model::DescribedDomain& domain, double from_s, double until_s) {
  // Just before the end: at that time itself the next step may begin.
  const Seconds end(std::nextafter(until_s, 0));
  return std::min(site::ramped_limit(domain.limits, domain.ramp, Seconds(from_s)),
                  site::ramped_limit(domain.limits, domain.ramp, end));
}

bool same_limits(const std::vector<Watts>& some, const std::vector<Watts>& others) {
  return std::ranges::equal(some, others,
                            [](Watts one, Watts other) { return one == other || std::abs(one / other - 1) < 1e-9; });
}

ForecastStep step_of(const LimitsAt& at, PoweredSite& site, const std::vector<int>& accelerators) {
  site.limits = at.limits;
  const SiteShares shares = shares_of(site);
  ForecastStep step{at.from_s, std::vector<ForecastDomain>(site.domains.size())};
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    ForecastDomain& domain = step.domains[d];
    if (at.metered[d] != model::kNoLimit) {
      domain.metered = at.metered[d];
      domain.limit = std::max(Watts(0), at.limits[d]);
    }
    domain.missing = shares.missing[d];
    domain.price = shares.price[d];
    if (d < site.windows.size() && site.windows[d]) domain.guard = d < shares.guard.size() ? shares.guard[d] : Watts(0);
  }
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const PoweredJob& job = site.jobs[j];
    Watts power = job.counted;
    double lost = 0;
    if (job.choices) {
      const std::vector<policies::PowerAtTime>& plans = job.choices->plans;
      const policies::PowerAtTime& plan = policies::fastest_within(plans, planned_power(job, shares.wanted[j]));
      power = plan.power * job.correction;
      lost = 1 - plans.front().time / plan.time;
    }
    for (int d = job.domain; d >= 0; d = site.domains[d].parent) {
      step.domains[d].expected += power;
      if (job.choices) add_to_tier(step.domains[d].tiers, job.least_rate, accelerators[j], lost);
    }
  }
  return step;
}

}  // namespace

std::vector<LimitsAt> forecast_steps(const jobs::SiteDocument& document, const std::vector<int>& accelerators,
                                     double now_s, double until_s) {
  const model::SiteDescription& site = document.site;
  std::vector<double> times{now_s};
  for (const model::DescribedDomain& domain : site.domains) add_times(domain, now_s, until_s, times);
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  times.push_back(until_s);
  const std::vector<Watts> constants = site::constants_of(site, accelerators);
  std::vector<LimitsAt> steps;
  for (std::size_t k = 0; k + 1 < times.size(); ++k) {
    LimitsAt at{times[k], {}, {}};
    for (std::size_t d = 0; d < site.domains.size(); ++d) {
      at.metered.push_back(least_within(site.domains[d], times[k], times[k + 1]));
      at.limits.push_back(site::left_for_accelerators(at.metered.back(), site, constants[d]));
    }
    if (steps.empty() || !same_limits(steps.back().metered, at.metered)) steps.push_back(std::move(at));
  }
  return steps;
}

SiteForecast site_forecast(const jobs::SiteDocument& document, PoweredSite site, const std::vector<int>& accelerators,
                           double now_s, double until_s, const std::function<bool()>& is_late) {
  SiteForecast forecast{now_s, until_s, site.objective, 0, {}, {}, false};
  for (const PoweredJob& job : site.jobs) forecast.weight += job.weight;
  for (const model::PowerDomain& domain : site.domains) forecast.domains.push_back(domain.name);
  std::vector<int> directly(site.domains.size());
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    directly[site.jobs[j].domain] += site::in_own_nodes(accelerators[j], document.site);
    site.jobs[j].has_grant = false;  // a division anew: hysteresis is for the present
  }
  for (const LimitsAt& at : forecast_steps(document, directly, now_s, until_s)) {
    if (forecast.steps.size() == kMostSteps || (!forecast.steps.empty() && is_late())) {
      forecast.cut = true;
      break;
    }
    forecast.steps.push_back(step_of(at, site, accelerators));
  }
  return forecast;
}

}  // namespace perseus::power
