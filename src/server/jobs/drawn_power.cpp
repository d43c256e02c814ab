#include "server/jobs/drawn_power.h"

#include <algorithm>
#include <cmath>

#include "server/jobs/job_savings.h"

namespace perseus::jobs {

double drawn_over_planned(const Job& job, const Frontiers& frontiers) {
  const double last = job.grant && job.grant->granted_w ? job.grant->correction : 1;
  const EnergyMeasured* const measured = job.plan_measured();
  if (!measured || measured->iterations < kLeastMeasured) return last;
  const auto planned = iteration_cost(job, frontiers, CountedRanks::as_they_are);
  if (!planned || !(planned->energy > Joules(0)) || !(measured->energy_j > 0)) return last;
  const double now = std::clamp(Joules(measured->energy_j) / planned->energy, kLeastCorrection, kMostCorrection);
  return std::abs(now - last) > kCorrectionDeadBand ? now : last;
}

}  // namespace perseus::jobs
