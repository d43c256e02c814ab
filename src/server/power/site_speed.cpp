#include "server/power/site_speed.h"

#include <algorithm>

#include "planning/site/site_limits.h"

namespace perseus::power {

void add_speed(const jobs::Job& job, const PoweredJob& powered, const std::optional<jobs::JobView::PerIteration>& cost,
               SiteJobView& shown) {
  shown.accelerators = job.spec.degrees.world_size();
  if (job.ranks_registered == 0) return;
  if (job.silent) {
    shown.planned = shown.baseline = powered.counted;
    return;
  }
  shown.planned = shown.baseline =
      cost ? powered.correction * savings::power_with_waits(job, cost->energy, cost->time, cost->waiting)
           : powered.counted;
  if (!powered.choices || !cost) return;
  const Seconds period(job.plan->budget ? job.plan->budget->paced_iteration_s : 0);
  shown.rate = std::min(1.0, powered.choices->full_speed / std::max(cost->time, period));
  shown.rate_lost = 0;
  if (!powered.has_grant) return;
  // Both from the same model: that of a straggler in `cost` is another one.
  const std::vector<policies::PowerAtTime>& plans = powered.choices->plans;
  const Watts most = planned_power(powered, powered.granted) * (1 + 1e-9);
  const policies::PowerAtTime& granted = policies::fastest_within(plans, most);
  shown.baseline += powered.correction * (plans.front().power - granted.power);
  shown.rate_lost = 1 - plans.front().time / granted.time;
}

void add_to_tier(std::vector<TierLoss>& tiers, double least_rate, int accelerators, double rate_lost) {
  auto tier = std::ranges::lower_bound(tiers, least_rate, {}, &TierLoss::least_rate);
  if (tier == tiers.end() || tier->least_rate != least_rate) tier = tiers.insert(tier, TierLoss{least_rate, 0, 0, 0});
  const double before = tier->rate_lost * tier->accelerators;
  ++tier->jobs;
  tier->accelerators += accelerators;
  tier->rate_lost = (before + rate_lost * accelerators) / tier->accelerators;
}

double rate_lost_of(const std::vector<TierLoss>& tiers) {
  double lost = 0, accelerators = 0;
  for (const TierLoss& tier : tiers) {
    lost += tier.rate_lost * tier.accelerators;
    accelerators += tier.accelerators;
  }
  return accelerators > 0 ? lost / accelerators : 0;
}

void add_speeds(const jobs::SiteDocument& document, const std::vector<int>& accelerators, SitePowerView& view) {
  const model::SiteDescription& site = document.site;
  std::vector<Watts> most(site.domains.size());
  for (const SiteJobView& job : view.jobs) {
    const Watts job_most = std::max(job.counted, job.accelerators * document.accelerator_power[job.domain]);
    for (int d = job.domain; d >= 0; d = site.domains[d].parent) {
      SiteDomainView& domain = view.domains[d];
      most[d] += job_most;
      domain.planned += job.planned;
      domain.baseline += job.baseline;
      if (job.reported) domain.planned_of_reporting += job.planned;
      if (job.rate_lost) add_to_tier(domain.tiers, job.least_rate, job.accelerators, *job.rate_lost);
    }
  }
  const std::vector<Watts> constants = site::constants_of(site, accelerators);
  for (std::size_t d = 0; d < view.domains.size(); ++d) {
    view.domains[d].metered_planned = site::as_metered(view.domains[d].planned, site, constants[d]);
    view.domains[d].metered_baseline = site::as_metered(view.domains[d].baseline, site, constants[d]);
    view.domains[d].most_metered = site::as_metered(most[d], site, constants[d]);
    for (const model::LimitStep& step : site.domains[d].limits) {
      if (step.limit != model::kNoLimit) {
        view.domains[d].most_metered = std::max(view.domains[d].most_metered, step.limit);
      }
    }
  }
}

}  // namespace perseus::power
