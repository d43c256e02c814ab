#include "server/live/rank_clocks.h"

#include <algorithm>

namespace perseus::live {
namespace {

ClockCounts counts_of(const jobs::ClockFigures& figures) {
  return {figures.failed, figures.late, figures.throttled_iterations};
}

}  // namespace

ClockCounts& ClockCounts::operator+=(const ClockCounts& other) {
  failed += other.failed;
  late += other.late;
  throttled_iterations += other.throttled_iterations;
  return *this;
}

ClockCounts RankClocks::report(int rank, const jobs::ClockFigures& figures, std::int64_t epoch, double now_s) {
  if (ranks_.size() <= static_cast<std::size_t>(rank)) ranks_.resize(rank + 1);
  Reported& last = ranks_[rank];
  const ClockCounts before = counts_of(last.figures), now = counts_of(figures);
  const bool is_first = last.at_s == 0, is_same_process = last.epoch == epoch;
  last = {figures, epoch, now_s};
  sums_ += {now.failed - before.failed, now.late - before.late, now.throttled_iterations - before.throttled_iterations};
  if (is_first) return {};
  if (!is_same_process) return now;
  return {std::max<std::int64_t>(now.failed - before.failed, 0), std::max<std::int64_t>(now.late - before.late, 0),
          std::max<std::int64_t>(now.throttled_iterations - before.throttled_iterations, 0)};
}

const RankClocks::Reported* RankClocks::of(int rank, const jobs::Rank& held) const {
  if (static_cast<std::size_t>(rank) >= ranks_.size() || ranks_[rank].at_s == 0) return nullptr;
  const Reported& last = ranks_[rank];
  return last.epoch == 0 || held.is_held_by(last.epoch) ? &last : nullptr;
}

}  // namespace perseus::live
