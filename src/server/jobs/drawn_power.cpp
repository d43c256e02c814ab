#include "server/jobs/drawn_power.h"

#include <algorithm>

#include "server/jobs/job_savings.h"

namespace perseus::jobs {

double drawn_over_planned(const Job& job, const Frontiers& frontiers, double most) {
  const double last = job.grant ? job.grant->correction : 1;
  const EnergyMeasured* const measured = job.plan_measured();
  if (!measured || measured->iterations < kLeastMeasured) return last;
  const auto planned = iteration_cost(job, frontiers, CountedRanks::as_they_are);
  if (!planned || !(planned->energy > Joules(0)) || !(measured->energy_j > 0)) return last;
  const auto drawn = measured_power(job, planned->waiting);
  const double by_energy = Joules(measured->energy_j) / planned->energy;
  const double by_power =
      drawn ? *drawn / power_with_waits(job, planned->energy, planned->time, planned->waiting) : by_energy;
  // So far below, the profile is of another job (profile_misfit()): that frees no watts.
  const double ratio = std::max(by_energy, by_power);
  const double now = ratio < kLeastCorrection ? 1 : std::min(ratio, most);
  return now > last || now < last - kCorrectionDeadBand ? now : last;
}

}  // namespace perseus::jobs
