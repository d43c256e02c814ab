#include "server/savings/followed_iterations.h"

#include <algorithm>
#include <cmath>

namespace perseus::savings {

void FollowedIterations::report(const Report& report) {
  known_ = true;
  const std::int64_t first = report.last - report.count + 1;
  for (std::int64_t i = std::max(first, closed_ + 1); i <= report.last; ++i) {
    const auto found = partial_.try_emplace(i).first;
    Partial& partial = found->second;
    partial.reported.resize(report.ranks);
    if (partial.reported[report.rank]) continue;
    partial.reported[report.rank] = true;
    if (report.has_plan) {
      const std::int64_t version = report.version == 0 ? kNotOnePlan : report.version;
      partial.version = partial.version == 0 || partial.version == version ? version : kNotOnePlan;
    }
    const auto index = static_cast<std::size_t>(i - first);
    const int shape = index < report.shapes.size() ? report.shapes[index] : 0;
    partial.shape = partial.ranks == 0 || partial.shape == shape ? shape : -1;
    const double energy_j = index < report.energies.size() ? report.energies[index].value() : -1;
    if (std::isfinite(energy_j) && energy_j > 0) {
      partial.energy_j += energy_j;
      measure_.insert(report.rank);
    } else {
      partial.unmeasured = true;
    }
    partial.straggles |= report.straggles;
    if (++partial.ranks == report.ranks) close(found);
  }
  if (report.version != 0) last_followed_ = std::max(last_followed_, report.last);
  forget_oldest();
}

void FollowedIterations::close(Partials::iterator partial) {
  const auto& [iteration, sum] = *partial;
  if (sum.version > 0)
    whole_.push_back({iteration, sum.version, sum.unmeasured ? -1 : sum.energy_j, sum.straggles, sum.shape});
  closed_ = iteration;
  partial_.erase(partial_.begin(), std::next(partial));
}

void FollowedIterations::forget_oldest() {
  while (partial_.size() > kMostKept) partial_.erase(partial_.begin());
  while (whole_.size() > kMostKept) whole_.pop_front();
}

void FollowedIterations::counted_to(std::int64_t iteration) {
  while (!whole_.empty() && whole_.front().iteration <= iteration) whole_.pop_front();
}

namespace {

/// Adds an iteration: extends the last run if only number and energy differ.
void add(std::vector<jobs::ReportsKept::Run>& runs, jobs::ReportsKept::Run one) {
  if (!runs.empty()) {
    jobs::ReportsKept::Run& last = runs.back();
    const bool next = one.first == last.first + static_cast<std::int64_t>(last.energies_j.size());
    if (next && one.version == last.version && one.straggles == last.straggles && one.ranks == last.ranks &&
        one.shape == last.shape) {
      last.energies_j.push_back(one.energies_j.front());
      return;
    }
  }
  runs.push_back(std::move(one));
}

}  // namespace

jobs::ReportsKept FollowedIterations::kept(std::int64_t counted_to) const {
  jobs::ReportsKept kept;
  kept.closed = closed_;
  kept.last_followed = last_followed_;
  kept.measure.assign(measure_.begin(), measure_.end());
  for (const Whole& whole : whole_) {
    if (whole.iteration <= counted_to) continue;
    add(kept.runs, {whole.iteration, whole.version, whole.straggles, {}, {whole.energy_j}, whole.shape});
  }
  for (const auto& [iteration, partial] : partial_) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < partial.reported.size(); ++rank) {
      if (partial.reported[rank]) ranks.push_back(static_cast<int>(rank));
    }
    const double energy_j = partial.unmeasured ? -1 : partial.energy_j;
    add(kept.runs, {iteration, partial.version, partial.straggles, std::move(ranks), {energy_j}, partial.shape});
  }
  return kept;
}

void FollowedIterations::take(const jobs::ReportsKept& kept, int ranks) {
  *this = {};
  known_ = true;
  measure_ = {kept.measure.begin(), kept.measure.end()};
  last_followed_ = kept.last_followed;
  closed_ = kept.closed;
  for (const jobs::ReportsKept::Run& run : kept.runs) {
    for (std::size_t n = 0; n < run.energies_j.size(); ++n) {
      const std::int64_t i = run.first + static_cast<std::int64_t>(n);
      const double energy_j = run.energies_j[n];
      if (run.ranks.empty()) {
        whole_.push_back({i, run.version, energy_j, run.straggles, run.shape});
        continue;
      }
      Partial& partial = partial_[i];
      partial.reported.resize(ranks);
      for (const int rank : run.ranks) partial.reported[rank] = true;
      partial.ranks = static_cast<int>(run.ranks.size());
      partial.version = run.version;
      partial.energy_j = std::max(energy_j, 0.0);
      partial.unmeasured = energy_j < 0;
      partial.straggles = run.straggles;
      partial.shape = run.shape;
    }
  }
}

}  // namespace perseus::savings
