// Compares a learned profile with a job's own iterations before the job uses it.
//
// Problem: facts like the model's name do not determine everything that a profile depends on (sequence length,
//          driver, power cap, the split into stages), and any client of the same namespace can have stored a wrong
//          profile. The first iterations of online profiling run at the highest clock anyway, so the comparison costs
//          nothing.
// Input:   the profile with the job's shape, the highest clock of each stage, and the measuring ranks' results of one
//          profiling window of kTrialIterations iterations at the highest clock.
// Output:  the verdict with the deciding figure. Per stage rank, medians over the iterations: the time of each
//          instruction and the energy of all its computations, or of the iteration where only that was measured.
//          Replicas count as in a profile: the slowest, and the sum. Nothing if a stage rank reported fewer than
//          kLeastIterations.
// Errors:  none; a profile that cannot be read, or lacks the clock used, does not agree.
// Cost:    builds the DAG once; linear in the values.
// Threads: pure functions.
// Source:  docs/decisions/0037.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/jobs/event.h"
#include "server/profiling/online_profiler.h"

namespace perseus::profiles {

/// Iterations of a window at the highest clock while a profile is on trial: the median of five tolerates two
/// outliers.
inline constexpr int kTrialIterations = 5;
inline constexpr int kLeastIterations = 3;
/// Allowed deviations from the profile. Times at one clock repeat within 1 to 2 % between runs and devices of a kind.
/// Energies differ by more between devices, and a profile does not contain the energy that an iteration draws outside
/// computations.
inline constexpr double kTimeTolerance = 0.05, kEnergyTolerance = 0.10, kIterationEnergyTolerance = 0.25;

struct TrialQuestion {
  std::string input;             ///< the blob of the profile on trial
  std::vector<int> highest_mhz;  ///< per stage: the clock used
  std::vector<profiling::RankResult> results;
};
std::optional<jobs::TrialEnded> judge_trial(const TrialQuestion& question);

}  // namespace perseus::profiles
