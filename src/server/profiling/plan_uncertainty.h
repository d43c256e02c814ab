// Judges the plan made from an estimate: how much it may lose, over the profiles that the results leave possible.
//
// Input:   the problem, the model to draw profiles from, slowdowns.
// Output:  per slowdown, the expected loss, bounds of loss and lateness, and the plans that it loses to; nothing if
//          `check` stopped it. Losses are energy above the bound of all plans, less that on the estimate itself:
//          against another plan, the chance of two roundings would count, and a loss of 0.09 % seemed one of 0.02 %.
// Errors:  none.
// Cost:    plans each of 5 to 20 drawn profiles, fewer where planning takes long. The second largest of 20 bounds one
//          more with a confidence of 19 / 21, the largest of 5 with 5 / 6.
// Threads: pure functions.
#pragma once

#include <random>
#include <vector>

#include "base/stop_check.h"
#include "planning/model/frontier.h"
#include "server/profiling/online_profiler.h"
#include "server/profiling/planning.h"
#include "server/profiling/time_energy_model.h"

namespace perseus::profiling {

struct JudgedPlan {
  PlanUncertainty doubt;
  /// By slowdown: the best plan of each profile, by option of the problem's reaching().
  std::vector<std::vector<model::Plan>> rivals;
};
JudgedPlan judge_plan(const PlanningProblem& problem, const TimeEnergyModel& model,
                      const std::vector<double>& slowdowns, std::mt19937_64& random, StopCheck& check);

struct RunUntil {
  Seconds until;  ///< the end of the iteration, or the deadline if that is later
  Joules energy;  ///< waiting until then included
};
RunUntil run_until(const model::ComputationDag& dag, const model::Plan& plan, Seconds deadline);

/// Iteration time with everything at the highest clock measured.
Seconds time_at_highest(const model::ComputationDag& dag);

/// The value that this share of the values does not exceed; 0 of none.
double quantile(std::vector<double> values, double share);

}  // namespace perseus::profiling
