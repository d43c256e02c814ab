// Events that follow from a job and the time alone: notices that take effect, plans, counts, expiry.
//
// Input:   a job in memory, the time.
// Output:  next(): the next event, until there is none; due_s(): when time makes the next one due.
// Errors:  none.
// Cost:    O(1) besides choosing a plan (server/policies/deployment.h), which is skipped while nothing has changed.
// Threads: io thread.
#pragma once

#include <optional>

#include "server/live/live_job.h"
#include "server/plans/planning_options.h"

namespace perseus::plans {

class FollowUps {
 public:
  FollowUps(const PlanningOptions& options, double opened_s) : options_(options), opened_s_(opened_s) {}

  [[nodiscard]] std::optional<jobs::EventBody> next(live::LiveJob& live, double now_s) const;
  [[nodiscard]] std::optional<double> due_s(const live::LiveJob& live, double now_s) const;

 private:
  /// The plan that the job should run now, if it differs from the one in force.
  [[nodiscard]] std::optional<jobs::EventBody> next_deployment(live::LiveJob& live, double now_s) const;
  [[nodiscard]] double seen_from(const jobs::Job& job) const;
  [[nodiscard]] double expiry_of(const live::LiveJob& live) const;
  [[nodiscard]] std::optional<jobs::EventBody> next_silence(live::LiveJob& live, double now_s) const;
  [[nodiscard]] std::optional<jobs::EventBody> next_silent_ranks(live::LiveJob& live, double now_s) const;
  [[nodiscard]] double silent_from(const live::LiveJob& live, double now_s) const;

  const PlanningOptions& options_;
  double opened_s_;
};

}  // namespace perseus::plans
