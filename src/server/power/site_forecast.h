// What the announced limits of a site will mean for its present jobs: power, lost rate and missing watts, step by step.
//
// Problem: an operator wants to know before an event what it will cost, and whether the watts suffice.
// Input:   the site document, with the limits that it announces; the running jobs as they are now.
// Output:  a step for each time from `now_s` at which a limit changes; within a ramp, one every kRamp_s at least. In
//          each step the limits are the least within it, and the jobs share them as the server would if it had to
//          decide anew. Jobs that begin or end, and stragglers that come and go, are not known.
// Errors:  none.
// Cost:    forecast_steps(): O(limits of all domains)^2; site_forecast(): that of planning/site/allocate.h for each
//          step whose limits differ from the one before; at most kMostSteps.
// Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs/site_document.h"
#include "server/power/site_power_view.h"

namespace perseus::power {

struct ForecastDomain {
  std::optional<Watts> metered, limit;  ///< as metered, and what it leaves for accelerators; nothing: none
  Watts expected;                       ///< of the jobs' plans
  Watts missing;
  std::optional<Watts> guard;  ///< that the window of its meter needs; nothing: it has none
  double price = 0;
  std::vector<TierLoss> tiers;  ///< by least rate
};
struct ForecastStep {
  double from_s = 0;
  std::vector<ForecastDomain> domains;  ///< in the order of SiteForecast
};
struct SiteForecast {
  double now_s = 0, until_s = 0;
  model::SiteObjective objective{};
  double weight = 0;  ///< of all jobs, for price_pct_per_kw()
  std::vector<std::string> domains;
  std::vector<ForecastStep> steps;
  bool cut = false;  ///< there are more steps than kMostSteps, or than the time for them allowed
};

/// Per step the limits; without anything that depends on jobs. `accelerators`: per domain, of the jobs directly in it.
struct LimitsAt {
  double from_s = 0;
  std::vector<Watts> metered, limits;
};
std::vector<LimitsAt> forecast_steps(const jobs::SiteDocument& document, const std::vector<int>& accelerators,
                                     double now_s, double until_s);

inline constexpr std::size_t kMostSteps = 300;
inline constexpr double kRamp_s = 60;

/// `accelerators` of PoweredSite::jobs, in their order. `is_late`: called after each step; true ends the forecast.
SiteForecast site_forecast(
    const jobs::SiteDocument& document, PoweredSite site, const std::vector<int>& accelerators, double now_s,
    double until_s, const std::function<bool()>& is_late = [] { return false; });

}  // namespace perseus::power
