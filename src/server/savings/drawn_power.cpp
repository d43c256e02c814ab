#include "server/savings/drawn_power.h"

#include <algorithm>

#include "server/savings/job_savings.h"

namespace perseus::savings {

double BelievedPower::factor(double wanted, Watts all_max) const {
  return std::clamp(std::max(1.0, wanted), least / all_max, most / all_max);
}

BelievedPower believed_power(bool bounded, Watts all_max, Watts accelerators) {
  if (bounded && accelerators > Watts(0)) return {kLeastOfAccelerators * accelerators, accelerators};
  return {all_max, std::max(accelerators, kMostCorrection * all_max)};
}

double drawn_over_planned(const jobs::Job& job, const policies::Frontiers& frontiers, Watts all_max,
                          const BelievedPower& believed) {
  const double last = believed.factor(job.grant ? job.grant->correction : 1, all_max);
  const jobs::EnergyMeasured* const measured = job.plan_measured();
  if (!measured || measured->iterations < kLeastMeasured) return last;
  const auto planned = iteration_cost(job, frontiers, CountedRanks::as_they_are);
  if (!planned || !(planned->energy > Joules(0)) || !(measured->energy_j > 0)) return last;
  const auto drawn = measured_power(job, planned->waiting);
  const double by_energy = Joules(measured->energy_j) / planned->energy;
  const double by_power =
      drawn ? *drawn / power_with_waits(job, planned->energy, planned->time, planned->waiting) : by_energy;
  const double now = believed.factor(std::max(by_energy, by_power), all_max);
  return now > last || now < last - kCorrectionDeadBand ? now : last;
}

}  // namespace perseus::savings
