#include "server/power/admission_decision.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "server/power/powered_jobs.h"
#include "server/power/site_forecast.h"
#include "server/power/site_guard.h"

namespace perseus::power {
namespace {

/// Sums of the same watts in another order differ in their last digits.
constexpr double kSameSum = 1 + 1e-9;
constexpr Watts kLeastMissing(1e-6);

Watts sum_of(const std::vector<MissingWatts>& missing) {
  return std::accumulate(missing.begin(), missing.end(), Watts(0),
                         [](Watts sum, const MissingWatts& one) { return sum + one.watts; });
}

/// Calls `visit` with the number, the beginning and the end of each step of the announced limits, until it says false.
template <class Visit>
void for_each_step(const LaterCase& given, Visit visit) {
  const double until_s = given.now_s + LaterFit::kHorizon_s;
  const std::vector<LimitsAt> steps = forecast_steps(given.document, given.accelerators, given.now_s, until_s);
  for (std::size_t k = 0; k < steps.size() && k < kMostSteps; ++k) {
    const double end_s = std::nextafter(k + 1 < steps.size() ? steps[k + 1].from_s : until_s, 0);
    if (!visit(k, steps[k].from_s, end_s)) return;
  }
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
  std::vector<Watts> counted;
  for (const PoweredJob& job : site.jobs) counted.push_back(job.counted);
  std::vector<Watts> sums = guards_of(site, windows_of_limits(site), counted);
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
  LaterFit fit{std::nullopt, true, {}};
  for_each_step(given, [&](std::size_t k, double from_s, double end_s) {
    alone.limits = limits_between(given.document, from_s, end_s, own, given.meter_factors);
    std::vector<MissingWatts> lacks = missing_for(alone);
    fit.never &= !lacks.empty();
    if (k == 0 || sum_of(lacks) < sum_of(fit.alone)) fit.alone = std::move(lacks);
    if (k == 0 || !fit.alone.empty()) return true;
    given.site.limits = limits_between(given.document, from_s, end_s, given.accelerators, given.meter_factors);
    if (missing_for(given.site).empty()) fit.from_s = from_s;
    return !fit.from_s;
  });
  return fit;
}

std::optional<LaterShortage> later_shortage(LaterCase given) {
  std::optional<LaterShortage> shortage;
  const std::vector<Watts> now = given.site.limits;
  for_each_step(given, [&](std::size_t, double from_s, double end_s) {
    PoweredSite& site = given.site;
    site.limits = limits_between(given.document, from_s, end_s, given.accelerators, given.meter_factors);
    bool falls = false;
    for (int d = site.jobs.back().domain; d >= 0; d = site.domains[d].parent) falls |= site.limits[d] < now[d];
    if (!falls) return true;
    std::vector<MissingWatts> missing = missing_for(site);
    if (missing.empty()) return true;
    // Without the newcomer: one in its domain that draws nothing.
    PoweredSite without = site;
    without.jobs.back().choices = nullptr;
    without.jobs.back().counted = without.jobs.back().granted = Watts(0);
    if (sum_of(missing) <= sum_of(missing_for(without)) + kLeastMissing) return true;
    shortage = LaterShortage{from_s, std::move(missing)};
    return false;
  });
  return shortage;
}

}  // namespace perseus::power
