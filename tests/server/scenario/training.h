// The ranks of a training job that is profiled online, as clients of a scenario's target.
//
// They ask for what to run, run it on an invented GPU (tests/support/simulated_profile.h, 1 % of noise), and report. Each call
// of run_window() asks for all ranks, and reports for those that got a window which they have not run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/server/scenario/scenario.h"
#include "tests/support/simulated_job.h"
#include "tests/support/simulated_profile.h"

namespace perseus::testing {

class Training {
 public:
  Training(ScenarioTarget& target, std::string job, jobs::Degrees degrees, int microbatches,
           SimulationOptions options = {}, std::uint64_t seed = 1, InventedGpu gpu = {});

  [[nodiscard]] jobs::RegisterRank registration(int rank) const;
  Status register_ranks();
  /// Its ranks' devices have no energy counter.
  void without_energies() { energies_ = false; }
  /// Its ranks do not say when computations began and ended.
  void without_begins() { begins_ = false; }
  /// How many ranks reported; `silent` ones say nothing this time.
  Result<int> run_window(const std::set<int>& silent = {});
  /// What a rank would report of the window that it was told to run last, whether it has or not.
  std::optional<jobs::ReportIterations> report_of(int rank);
  /// Until ranks get a plan (or the maximum clock), at most so many windows.
  Status run_until_plan(int most_windows);
  /// What a rank was told last; null: nothing yet.
  [[nodiscard]] std::shared_ptr<const jobs::StageSchedule> told(int rank) const;
  [[nodiscard]] const model::ComputationDag& truth() const { return simulated_.dag(); }

 private:
  [[nodiscard]] std::optional<profiling::ProfilingWindow> window() const;
  [[nodiscard]] jobs::ReportIterations report(int rank, const profiling::RankResult& result) const;

  ScenarioTarget& target_;
  std::string job_;
  jobs::Degrees degrees_;
  SimulatedJob simulated_;
  bool energies_ = true, begins_ = true;
  std::map<int, std::shared_ptr<const jobs::StageSchedule>> told_;
  std::int64_t iteration_ = 10;      ///< the one that comes next
  std::map<int, std::int64_t> run_;  ///< version of the last window that each rank ran
};

}  // namespace perseus::testing
