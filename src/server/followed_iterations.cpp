#include "server/followed_iterations.h"

#include <algorithm>
#include <cmath>

namespace perseus::server {

void FollowedIterations::report(const Report& report) {
  std::int64_t& reported = last_of_.try_emplace(report.rank, report.last - report.count).first->second;
  const std::int64_t first = report.last - report.count + 1;
  for (std::int64_t i = std::max(first, reported + 1); i <= report.last; ++i) {
    const auto index = static_cast<std::size_t>(i - first);
    const double energy_j = index < report.energies.size() ? report.energies[index].value() : -1;
    Partial& partial = partial_[i];
    if (report.has_plan) {
      partial.differs |= report.version == 0 || (partial.sum.version != 0 && partial.sum.version != report.version);
      partial.sum.version = report.version;
    }
    if (std::isfinite(energy_j) && energy_j > 0) {
      partial.sum.energy_j += energy_j;
      measure_.insert(report.rank);
    } else {
      partial.unmeasured = true;
    }
    partial.sum.straggles |= report.straggles;
    if (++partial.ranks < report.ranks) continue;
    Whole whole = partial.sum;
    whole.iteration = i;
    if (partial.differs) whole.version = 0;
    if (partial.unmeasured) whole.energy_j = -1;
    if (whole.version != 0) whole_.push_back(whole);
    // Each rank reports in order: what is older will never be whole.
    partial_.erase(partial_.begin(), std::next(partial_.find(i)));
  }
  reported = std::max(reported, report.last);
  if (report.version != 0) last_followed_ = std::max(last_followed_, report.last);
  while (partial_.size() > most_kept) partial_.erase(partial_.begin());
  while (whole_.size() > most_kept) whole_.pop_front();
}

void FollowedIterations::counted_to(std::int64_t iteration) {
  while (!whole_.empty() && whole_.front().iteration <= iteration) whole_.pop_front();
}

}  // namespace perseus::server
