// Reports of a job's ranks about its iterations: progress, energies, and iterations not counted yet.
//
// Input:   reports of ranks, as IterationReports takes them; events that count iterations.
// Output:  the iteration that the job is in; the data from which savings are counted.
// Errors:  none.
// Cost:    O(pipelines) per report of progress.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/jobs/job.h"
#include "server/jobs/requests.h"
#include "server/policies/deployment.h"
#include "server/savings/followed_iterations.h"
#include "server/savings/iteration_energy_meter.h"
#include "server/savings/job_progress.h"
#include "server/savings/measured_iterations.h"

namespace perseus::live {

struct ClockCounts {
  std::int64_t failed = 0, late = 0, throttled_iterations = 0;
  ClockCounts& operator+=(const ClockCounts& other);
  bool operator==(const ClockCounts&) const = default;
};

/// The clocks of a job's ranks as their processes last reported them, and what has gone wrong with them.
class RankClocks {
 public:
  struct Reported {
    jobs::ClockFigures figures;
    std::int64_t epoch = 0;  ///< of the process; 0: not known
    double at_s = 0;         ///< 0: never
  };
  /// Returns by how much the counts have grown since the rank's last report. The first report of a rank adds nothing:
  /// another server, or this one before its restart, may have counted it. That of a later process adds all it has.
  ClockCounts report(int rank, const jobs::ClockFigures& figures, std::int64_t epoch, double now_s);
  /// Null: the process that holds the rank has not reported to this server.
  [[nodiscard]] const Reported* of(int rank, const jobs::Rank& held) const;
  /// Sums of the last figures of all ranks.
  [[nodiscard]] const ClockCounts& sums() const { return sums_; }

 private:
  std::vector<Reported> ranks_;  ///< by rank; beyond the end: never
  ClockCounts sums_;
};

/// Limit of the time whose reports of iterations a crash of the server may lose.
inline constexpr double kCountInterval_s = 300;

struct RankReports {
  std::optional<savings::JobProgress> progress;
  savings::IterationEnergyMeter energies;
  savings::FollowedIterations followed;
  savings::MeasuredIterations measured;
  /// Iterations that the time since the job registered allows, and as many as wait here for reports of all ranks.
  std::int64_t possible = 0;
  bool without_plan = false;                ///< a rank reported iterations without naming the plan
  std::optional<double> uncounted_since_s;  ///< arrival of the first iteration that is not in the log

  /// Ranks' reports name the plan followed: only such reports count.
  [[nodiscard]] bool name_plans(const jobs::Job& job) const { return followed.known() || job.kept; }
  /// `finished`: the last iteration that has ended; `iteration`: the one that ranks are in, or that one. False: the
  /// number is implausible for the elapsed time, and no other rank confirms it.
  bool note_progress(const jobs::Job& job, const policies::Frontiers& frontiers, int rank, std::int64_t iteration,
                     std::int64_t finished, double now_s);
  /// The rank reports `count` iterations up to `last`. False: more than `possible` of it; they do not count.
  bool note_reported(const jobs::Job& job, const policies::Frontiers& frontiers, int rank, std::int64_t last,
                     std::int64_t count, double now_s);
  /// The first iteration that no rank can have begun when it receives a plan made now: from the last iteration that a
  /// rank reported, the time since then, and a margin for delivery. 0 (at once) without reports.
  [[nodiscard]] std::int64_t next_common_iteration(const jobs::Job& job, const policies::Frontiers& frontiers,
                                                   double now_s, int margin_iterations) const;
  /// The plan begins at an iteration that ranks will not reach: ranks that gave a wrong number had the majority.
  [[nodiscard]] bool has_put_off(const jobs::Job& job) const {
    return job.plan && progress && progress->iteration() &&
           job.plan->from_iteration > *progress->iteration() + savings::JobProgress::kBelieved;
  }
  /// The log has counted the iterations up to that one.
  void counted_to(std::int64_t last_iteration);
  /// The job's ranks have restarted: iterations count from 0.
  void forget_iterations();

 private:
  struct Reported {
    std::int64_t iterations = 0, last = -1;
  };

  /// The least time of an iteration that is possible now.
  double note_time(const jobs::Job& job, const policies::Frontiers& frontiers, double now_s);

  std::vector<Reported> reported_;  ///< by rank
};

}  // namespace perseus::live
