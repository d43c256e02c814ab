#include "server/savings/measured_iterations.h"

#include <algorithm>
#include <cmath>

namespace perseus::savings {

void MeasuredIterations::add(Partial& partial, const Report& report, std::size_t index) {
  const int shape = index < report.shapes.size() ? report.shapes[index] : 0;
  partial.shape = partial.ranks == 0 || partial.shape == shape ? shape : -1;
  ++partial.ranks;
  partial.time_s = std::max(partial.time_s, report.times[index].value());
  const double energy_j = index < report.energies.size() ? report.energies[index].value() : -1;
  if (std::isfinite(energy_j) && energy_j > 0) {
    partial.energy_j += energy_j;
  } else {
    partial.unmeasured = true;
  }
  if (report.has_plan) {
    const std::int64_t version = report.version == 0 ? kNotOnePlan : report.version;
    partial.version = partial.version == 0 || partial.version == version ? version : kNotOnePlan;
  }
  partial.straggles |= report.straggles;
}

std::int64_t MeasuredIterations::repeated(int rank, std::int64_t last, std::int64_t count) const {
  const auto index = static_cast<std::size_t>(rank);
  const std::int64_t known_to = index < reported_to_.size() ? reported_to_[index] : -1;
  return std::clamp<std::int64_t>(known_to - (last - count), 0, count);
}

std::vector<WholeIteration> MeasuredIterations::report(const Report& report) {
  reported_to_.resize(static_cast<std::size_t>(report.ranks), -1);
  std::int64_t& reported_to = reported_to_[static_cast<std::size_t>(report.rank)];
  const std::int64_t begin = report.last - static_cast<std::int64_t>(report.times.size()) + 1;
  std::vector<WholeIteration> whole;
  for (std::int64_t i = std::max({begin, reported_to + 1, closed_ + 1}); i <= report.last; ++i) {
    Partial& partial = partial_[i];
    add(partial, report, static_cast<std::size_t>(i - begin));
    if (partial.ranks < report.ranks) continue;
    whole.push_back({i, partial.time_s, partial.unmeasured ? -1 : partial.energy_j,
                     std::max<std::int64_t>(0, partial.version), partial.straggles, partial.shape});
    closed_ = i;
    partial_.erase(partial_.begin(), partial_.upper_bound(i));
  }
  reported_to = std::max(reported_to, report.last);
  while (partial_.size() > kMostKept) partial_.erase(partial_.begin());
  return whole;
}

}  // namespace perseus::savings
