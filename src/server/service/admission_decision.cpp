#include "server/service/admission_decision.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "server/service/powered_jobs.h"
#include "server/service/site_forecast.h"

namespace perseus::service {
namespace {

/// Sums of the same watts in another order differ in their last digits.
constexpr double kSameSum = 1 + 1e-9;
constexpr Watts kLeastMissing(1e-6);

Watts sum_of(const std::vector<MissingWatts>& missing) {
  return std::accumulate(missing.begin(), missing.end(), Watts(0),
                         [](Watts sum, const MissingWatts& one) { return sum + one.watts; });
}

}  // namespace

std::vector<MissingWatts> missing_for(const PoweredSite& site) {
  const SiteShares shares = shares_of(site);
  std::vector<MissingWatts> missing;
  for (int d = site.jobs.back().domain; d >= 0; d = site.domains[d].parent) {
    if (shares.missing[d] > kLeastMissing) missing.push_back({d, shares.missing[d]});
  }
  return missing;
}

bool fits_now(const PoweredSite& site) {
  std::vector<Watts> sums(site.domains.size());
  for (const PoweredJob& job : site.jobs) {
    for (int d = job.domain; d >= 0; d = site.domains[d].parent) sums[d] += job.counted;
  }
  for (int d = site.jobs.back().domain; d >= 0; d = site.domains[d].parent) {
    if (sums[d] > kSameSum * site.limits[d]) return false;
  }
  return true;
}

LaterFit later_fit(LaterCase given) {
  PoweredSite alone{given.site.domains, {}, given.site.objective, {given.site.jobs.back()}};
  std::vector<int> own(given.accelerators.size());
  own[alone.jobs.back().domain] = given.newcomer;
  const double until_s = given.now_s + LaterFit::kHorizon_s;
  const std::vector<LimitsAt> steps = forecast_steps(given.document, given.accelerators, given.now_s, until_s);
  LaterFit fit{std::nullopt, true, {}};
  for (std::size_t k = 0; k < steps.size() && k < kMostSteps; ++k) {
    const double end_s = std::nextafter(k + 1 < steps.size() ? steps[k + 1].from_s : until_s, 0);
    const auto limits_for = [&](const std::vector<int>& accelerators) {
      return limits_between(given.document, steps[k].from_s, end_s, accelerators, given.meter_factors);
    };
    alone.limits = limits_for(own);
    std::vector<MissingWatts> lacks = missing_for(alone);
    fit.never &= !lacks.empty();
    if (k == 0 || sum_of(lacks) < sum_of(fit.alone)) fit.alone = std::move(lacks);
    if (k == 0 || !fit.alone.empty()) continue;
    given.site.limits = limits_for(given.accelerators);
    if (!missing_for(given.site).empty()) continue;
    fit.from_s = steps[k].from_s;
    break;
  }
  return fit;
}

}  // namespace perseus::service
