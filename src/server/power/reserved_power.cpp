#include "server/power/reserved_power.h"

#include <algorithm>

#include "server/jobs/power_budget.h"

namespace perseus::power {

ReservedPowers::ReservedPowers(const jobs::SiteDocument& document, std::span<const jobs::Reservation> reservations)
    : reservations_(reservations) {
  for (const jobs::Reservation& one : reservations) {
    of_name_.emplace(one.job, all_.size());
    all_.push_back({jobs::domain_of(document, one), one.power, one.accelerators, false});
  }
}

bool ReservedPowers::take(const jobs::Job& job, int domain, Watts counted) {
  bool is_its_own = true;
  const auto [begin, end] = of_name_.equal_range(job.spec.name);
  for (auto found = begin; found != end; ++found) {
    ReservedPower& one = all_[found->second];
    if (!reservations_[found->second].is_for(job)) {
      is_its_own = false;
      continue;
    }
    const bool uses = jobs::counted_accelerators(job) == job.spec.degrees.world_size() &&
                      job.joined_s >= reservations_[found->second].since_s;
    if (uses && domain != one.domain) one.moved = job.id;
    one.used |= uses;
    if (one.used) one.counted = Watts(0), one.accelerators = 0;
    if (domain != one.domain) continue;
    one.counted = std::max(Watts(0), one.counted - counted);
    one.accelerators = std::max(0, one.accelerators - jobs::counted_accelerators(job));
  }
  return is_its_own;
}

}  // namespace perseus::power
