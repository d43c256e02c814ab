// The ranks of a training job under online profiling, as clients of a scenario's target.
//
// They request a window, run it on an invented GPU (tests/support/simulated_profile.h, 1 % of noise), and report. Each
// call of run_window() sends the requests of all ranks, and reports for those with a window that they have not run yet.
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
  /// The devices of its ranks have no energy counter.
  void without_energies() { energies_ = false; }
  /// Before that window, its ranks report energies that cannot be used.
  void energies_from(int window) { energies_from_ = window; }
  /// Its ranks do not report when computations began and ended.
  void without_begins() { begins_ = false; }
  /// Its steps have so many microbatches from now on: its ranks cannot run windows of others.
  void change(int microbatches);
  /// Computations of that stage take so many times as long from now on, at the same power; `by_memory`: at the highest
  /// clock, and by as many seconds longer at all others.
  void slow_down(int stage, double times, bool by_memory = false);
  /// Returns how many ranks reported; `silent` ranks report nothing this time.
  Result<int> run_window(const std::set<int>& silent = {});
  /// The rank's report for the last window that it received, whether it has run the window or not.
  std::optional<jobs::ReportIterations> report_of(int rank);
  /// Runs windows until ranks get a plan (or the maximum clock), at most this many.
  Status run_until_plan(int most_windows);
  /// The last schedule that the rank received; null: none yet.
  [[nodiscard]] std::shared_ptr<const jobs::StageSchedule> received(int rank) const;
  [[nodiscard]] const model::ComputationDag& truth() const { return simulated_.dag(); }

 private:
  [[nodiscard]] SimulatedJob simulated(int microbatches) const;
  [[nodiscard]] bool runs_window() const;
  Result<int> miss_window();
  [[nodiscard]] std::optional<profiling::ProfilingWindow> window() const;
  [[nodiscard]] jobs::ReportIterations report(int rank, const profiling::RankResult& result) const;

  ScenarioTarget& target_;
  std::string job_;
  jobs::Degrees degrees_;
  SimulationOptions options_;
  std::uint64_t seed_;
  InventedGpu gpu_;
  int microbatches_;
  struct Slowness {
    int stage = 0;
    double times = 1;
    bool by_memory = false;
  };
  std::optional<Slowness> slow_;
  SimulatedJob simulated_;
  bool energies_ = true, begins_ = true;
  int energies_from_ = 0;
  std::map<int, std::shared_ptr<const jobs::StageSchedule>> received_;
  std::int64_t iteration_ = 10;      ///< the next one
  std::map<int, std::int64_t> run_;  ///< version of the last window that each rank ran
};

}  // namespace perseus::testing
