// Power and savings of the jobs in memory, for metrics.
//
// Input:   the jobs in memory; events that this server wrote.
// Output:  job_figures(): of one job in training, as measured where all ranks measure, otherwise as planned.
//          EnergyCounters: sums since the server started, of iterations that ranks reported. They never go back: a plan
//          that wastes energy adds to `wasted_j`.
// Errors:  none: a job without a plan or reports, or whose frontier is being read, has no figures.
// Cost:    O(pipelines) per job, O(1) per event.
// Threads: io thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/live/live_job.h"
#include "server/savings/job_savings.h"

namespace perseus::reports {

struct JobFigures {
  std::string job, name;
  savings::JobPower power;
  Seconds planned_time, all_max_time;  ///< of an iteration
  std::optional<Seconds> measured_time;
  int point = -1, points = 0;  ///< of pipeline 0; -1: its highest clocks
  std::int64_t stragglers = 0, uncontrolled = 0;
  /// Energy saved since the job began against maximum clock, as counted in its log; negative: its plans used more.
  /// Nothing: no iterations of that kind.
  std::optional<Joules> saved_measured, saved_estimated;
  live::ClockCounts clocks;  ///< of the present processes of its ranks
};
std::optional<JobFigures> job_figures(const live::LiveJob& live);

class EnergyCounters {
 public:
  struct Sums {
    std::int64_t iterations = 0;
    double used_j = 0, saved_j = 0, wasted_j = 0;
  };
  void take(const std::vector<live::SequencedEvent>& written);
  [[nodiscard]] const Sums& measured() const { return sums_[1]; }
  [[nodiscard]] const Sums& estimated() const { return sums_[0]; }
  [[nodiscard]] std::int64_t plans_dropped() const { return plans_dropped_; }

 private:
  std::array<Sums, 2> sums_;  ///< estimated, measured
  std::int64_t plans_dropped_ = 0;
};

}  // namespace perseus::reports
