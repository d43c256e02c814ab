// The published method (`--method perseus`): from the minimum-energy schedule, shorten the iteration by tau at a time.
//
// Problem: that of the exact planner.
// Method:  that of Perseus: keep each computation type's raw-energy Pareto options with durations floored to tau, fit
//          a e^(b t) + c to their *effective* energies (e - P t), start with every computation at its slowest, and
//          repeat: find the minimum cut of the critical DAG under capacities with lower bounds (paper eq.
//          edge-capacity), speed up the computations it cuts by tau, slow down those it cuts backwards, until no cut is
//          finite. Then every planned duration becomes the slowest clock no slower than it, and the measurements give
//          the real time and energy of that plan. Differences from the published code, none of which changes the
//          planned curve: costs are integers, so that ties are exact, the unit of energy does not matter and no number
//          stands for infinity; each step's cut is a minimum cut as published, found by improving the flow of the step
//          before, which stays feasible (the published code solves two maximum flows from scratch, Edmonds-Karp); the
//          fit is the global least-squares optimum; the starting schedule is a step.
// Input:   a valid ComputationDag; tau. Transfer latencies and constant-time computations are floored to tau as well.
// Output:  PerseusRun: one step per tau from T* to T_min, slowest first, with the planned (fitted, floored) and the
//          realized (measured) time and energy of each, and any step's plan. Planned times fall by exactly tau. No
//          lower bound: see compute_lower_bound() in planning/planner/exact.h.
// Errors:  usage: tau is not a positive number, or so small that the slowest iteration has over 10^7 units.
//          unavailable: `check` stopped it.
// Cost:    O(steps * (V + E)) in practice; memory 56 bytes a step.
// Threads: single-threaded; it calls `progress` on the caller's thread.
// Source:  paper sections 4.2, 4.3, appendices "Continuous Relaxation" and "Full Details of GetNextSchedule";
//          docs/paper_method.md compares both, with measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "base/stop_check.h"
#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/planner/cost_curve.h"

namespace perseus::planner {

struct PerseusOptions {
  Seconds unit_time = Seconds(0.001);         ///< tau
  std::function<void(double done)> progress;  ///< called repeatedly with 0..1; may be empty
};

struct PerseusStep {
  Seconds planned_time;             ///< longest path of the planned durations
  Joules planned_energy;            ///< by the fits, with waiting, at T' = planned_time
  Joules planned_effective_energy;  ///< by the fits: sum of e - P t
  Seconds time;                     ///< longest path of the chosen clocks' measured times
  Joules energy;                    ///< measured, with waiting, at T' = time
  Joules effective_energy;          ///< measured: sum of e - P t
};

class PerseusRun {
 public:
  [[nodiscard]] const std::vector<PerseusStep>& steps() const { return steps_; }
  /// Planned durations in units of tau, per computation. O(changes up to that step).
  [[nodiscard]] std::vector<std::int64_t> durations(std::size_t step) const;
  /// The plan that realizes a step. O(changes up to that step).
  [[nodiscard]] model::Plan plan(std::size_t step) const;
  /// The Pareto set of the realized steps, slowest first. The caller fills in its `bound` and those of its points.
  [[nodiscard]] model::Frontier frontier() const;
  /// The cost curves behind the planned durations.
  [[nodiscard]] const CostCurves& curves() const { return curves_; }

 private:
  friend Result<PerseusRun> plan_perseus(const model::ComputationDag& dag, const PerseusOptions& options,
                                         StopCheck& check);
  void apply_changes(std::size_t step, std::vector<std::int64_t>& durations) const;
  [[nodiscard]] model::Plan realize(const std::vector<std::int64_t>& durations) const;

  CostCurves curves_;
  std::vector<PerseusStep> steps_;
  std::vector<int> changes_;              // of all steps, in order; i: computation i is one unit faster; ~i: slower
  std::vector<std::size_t> changes_end_;  // per step
};

Result<PerseusRun> plan_perseus(const model::ComputationDag& dag, const PerseusOptions& options = {},
                                StopCheck& check = StopCheck::never());

}  // namespace perseus::planner
