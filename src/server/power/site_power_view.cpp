#include "server/power/site_power_view.h"

#include <algorithm>

#include "planning/site/site_limits.h"
#include "server/jobs/power_budget.h"
#include "server/power/powered_jobs.h"
#include "server/power/site_meters.h"
#include "server/power/site_speed.h"
#include "server/savings/job_savings.h"

namespace perseus::power {

double price_pct_per_kw(model::SiteObjective objective, double price, double weight) {
  constexpr double percent = 100, kilo = 1000;
  const double of = objective == model::SiteObjective::max_min ? 1 : weight;
  return of > 0 ? percent * kilo * price / of : 0;
}

SiteJobView site_job_view(const jobs::SiteDocument& document, PoweredJobs& powered_jobs, const live::LiveJob& live,
                          double now_s) {
  SiteJobView job;
  const PoweredJob power_now = powered_jobs.powered(document, live, now_s, &job);
  job.job = live.job.id;
  job.name = live.job.spec.name;
  job.domain = power_now.domain;
  job.least_rate = power_now.least_rate;
  if (power_now.has_grant) job.granted = power_now.granted;
  job.counted = power_now.counted;
  job.correction = power_now.correction;
  const auto cost = savings::iteration_cost(live.job, live.frontiers.all(), savings::CountedRanks::as_they_are);
  add_speed(live.job, power_now, cost, job);
  return job;
}

namespace {

void add_next_fall(const std::vector<model::LimitStep>& limits, double now_s, SiteDomainView& domain) {
  Watts before = model::kNoLimit;
  for (const model::LimitStep& step : limits) {
    if (step.from.value() > now_s && step.limit < before) {
      domain.falls_at_s = step.from.value();
      domain.falls_to = step.limit;
      return;
    }
    before = step.limit;
  }
}

/// Later reservations do not delay earlier ones.
void find_ready(const std::vector<model::DescribedDomain>& domains, SitePowerView& view) {
  constexpr double same_sum = 1 + 1e-9;
  std::vector<Watts> sums, reserved(domains.size());
  for (const SiteDomainView& domain : view.domains) sums.push_back(domain.counted + domain.guard.value_or(Watts(0)));
  for (SiteReservationView& one : view.reservations) {
    one.ready = view.unread_jobs == 0;
    for (int d = one.domain; d >= 0; d = domains[d].parent) {
      sums[d] += one.counted;
      reserved[d] += one.counted;
      const auto& limit = view.domains[d].limit;
      one.ready &= !limit || sums[d] <= same_sum * *limit;
      one.over |= limit && reserved[d] > same_sum * *limit;
    }
  }
}

void add_reservations(const std::vector<jobs::Reservation>& reservations, const ReservedPowers& reserved,
                      const std::vector<model::DescribedDomain>& domains, SitePowerView& view) {
  for (std::size_t k = 0; k < reservations.size(); ++k) {
    const ReservedPower& one = reserved.all()[k];
    if (one.used) continue;
    view.reservations.push_back({reservations[k], one.domain, one.counted});
    for (int d = one.domain; d >= 0; d = domains[d].parent) view.domains[d].reserved += one.counted;
  }
}

}  // namespace

SitePowerView site_power_view(const jobs::SiteDocument& document, PoweredJobs& powered_jobs, live::JobCache& jobs,
                              const SiteMeters& meters, const std::vector<jobs::Reservation>& reservations,
                              double now_s, const SiteShares& shares) {
  SitePowerView view;
  view.now_s = now_s;
  view.objective = document.objective;
  view.unread_jobs = static_cast<int>(powered_jobs.unread().size());
  const std::vector<model::DescribedDomain>& domains = document.site.domains;
  view.domains.resize(domains.size());
  std::vector<int> accelerators(domains.size());
  ReservedPowers reserved(document, reservations);
  for (const auto& [id, row] : jobs.index()) {
    const live::LiveJob* const live = jobs.in_memory(id);
    if (live == nullptr || !live->job.live()) continue;
    const SiteJobView& job = view.jobs.emplace_back(site_job_view(document, powered_jobs, *live, now_s));
    accelerators[job.domain] += site::in_own_nodes(jobs::counted_accelerators(live->job), document.site);
    view.weight += job.accelerators * job.priority;
    reserved.take(live->job, job.domain, job.counted);
    for (int d = job.domain; d >= 0; d = domains[d].parent) {
      view.domains[d].granted += job.granted.value_or(job.counted);
      view.domains[d].counted += job.counted;
      view.domains[d].reported += job.reported.value_or(Watts(0));
    }
  }
  add_reservations(reservations, reserved, domains, view);
  for (const ReservedPower& one : reserved.all()) {
    accelerators[one.domain] += site::in_own_nodes(one.accelerators, document.site);
  }
  const std::vector<double> meter_factors = meters.factors(document, now_s);
  const std::vector<Watts> limits = limits_between(document, now_s, now_s, accelerators, meter_factors);
  for (std::size_t d = 0; d < domains.size(); ++d) {
    SiteDomainView& domain = view.domains[d];
    domain.name = domains[d].name;
    domain.meter = meters.last(domain.name, now_s);
    domain.meter_refused = meters.refused(domain.name, now_s);
    domain.limits_unread = domains[d].limits_unread;
    domain.meter_factor = meter_factors[d];
    if (domains[d].parent >= 0) domain.parent = domains[domains[d].parent].name;
    const Watts metered = site::ramped_limit(domains[d].limits, domains[d].ramp, Seconds(now_s));
    add_next_fall(domains[d].limits, now_s, domain);
    if (metered != model::kNoLimit) domain.metered = metered, domain.limit = std::max(Watts(0), limits[d]);
    if (d < shares.price.size()) {
      domain.price = shares.price[d];
      domain.missing = shares.missing[d];
      domain.gives = shares.gives[d];
    }
    if (domains[d].window) domain.guard = d < shares.guard.size() ? shares.guard[d] : Watts(0);
  }
  find_ready(domains, view);
  add_speeds(document, accelerators, view);
  return view;
}

}  // namespace perseus::power
