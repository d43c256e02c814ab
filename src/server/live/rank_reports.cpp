#include "server/live/rank_reports.h"

#include <algorithm>

#include "server/jobs/job_shapes.h"
#include "server/savings/job_savings.h"

namespace perseus::live {

double RankReports::note_time(const jobs::Job& job, const policies::Frontiers& frontiers, double now_s) {
  const auto cost = savings::iteration_cost(job, frontiers);
  // Plans are slower than the possible minimum, but by less than this factor; steps of fewer microbatches are shorter.
  double far_below = 0.25;
  if (!job.shapes.empty() && job.plan) {
    far_below *= static_cast<double>(std::ranges::min(jobs::shapes_of(job))) / std::max(1, job.plan->shape);
  }
  const double fastest_s = far_below * (cost ? cost->time.value() : job.profiled.highest_s);
  constexpr auto kept_back = static_cast<std::int64_t>(savings::FollowedIterations::kMostKept);
  possible = std::max(possible, kept_back + savings::iterations_in(now_s - job.created_s, fastest_s));
  return fastest_s;
}

bool RankReports::note_progress(const jobs::Job& job, const policies::Frontiers& frontiers, int rank,
                                std::int64_t iteration, std::int64_t finished, double now_s) {
  if (!progress) progress.emplace(job.created_s, job.spec.degrees.world_size() == 1);
  return progress->report(rank, iteration, finished, now_s, note_time(job, frontiers, now_s));
}

bool RankReports::note_reported(const jobs::Job& job, const policies::Frontiers& frontiers, int rank, std::int64_t last,
                                std::int64_t count, double now_s) {
  note_time(job, frontiers, now_s);
  if (reported_.size() <= static_cast<std::size_t>(rank)) reported_.resize(static_cast<std::size_t>(rank) + 1);
  Reported& of_rank = reported_[rank];
  const std::int64_t further = last - of_rank.last;  // 0: a repeated report
  const std::int64_t iterations = of_rank.iterations + (further < 0 ? count : std::min(further, count));
  if (iterations > possible) return false;
  of_rank = {iterations, last};
  return true;
}

std::int64_t RankReports::next_common_iteration(const jobs::Job& job, const policies::Frontiers& frontiers,
                                                double now_s, int margin_iterations) const {
  if (!progress || !progress->iteration()) return 0;
  std::int64_t iteration = *progress->iteration();
  const auto cost = savings::iteration_cost(job, frontiers);
  const double time_s = cost ? cost->time.value() : job.profiled.highest_s;
  if (time_s > 0) iteration += static_cast<std::int64_t>(std::max(0.0, (now_s - progress->at_s()) / time_s));
  return iteration + 1 + margin_iterations;
}

void RankReports::counted_to(std::int64_t last_iteration) {
  followed.counted_to(last_iteration);
  uncounted_since_s.reset();
}

void RankReports::forget_iterations() {
  progress.reset();
  followed = {};
  measured = {};
  for (Reported& of_rank : reported_) of_rank.last = -1;
}

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
