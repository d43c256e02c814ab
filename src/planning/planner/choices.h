// The useful clocks of each kind of computation: the Pareto set in (time, effective energy), and its convex hull.
//
// Problem: most of a computation's measured options are noise or dominated. A planner chooses from the Pareto set; the
//          relaxation mixes vertices of its lower convex hull.
// Input:   the options of every computation type and the blocking power of the rank that runs it; a *kind* is a
//          distinct pair of both.
// Output:  per kind: choices from slowest (least effective energy) to fastest, times strictly decreasing, effective
//          energies strictly increasing; the hull as indices into them, first and last choice included, with strictly
//          increasing prices (J/s of speeding up) from vertex to vertex. The filter uses effective energy (e - P t),
//          not raw energy, as paper eq. (1) sums it.
// Errors:  none for a valid DAG.
// Cost:    O(options log options).
// Threads: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::planner {

struct Choice {
  Seconds time;
  Joules effective_energy;
  std::uint16_t option = 0;  ///< index into ComputationType::options
};

struct ChoiceSet {
  std::vector<Choice> pareto;
  std::vector<int> hull;
};

/// Pareto set and hull of `options` under that blocking power.
ChoiceSet make_choices(const std::vector<model::Measurement>& options, Watts blocking_power);

/// All kinds of a DAG and the kind of each computation.
struct Kinds {
  std::vector<ChoiceSet> sets;
  std::vector<int> of_computation;

  /// Converts `choices`, per computation an index into the Pareto set of its kind, to a plan.
  [[nodiscard]] model::Plan plan_of(const std::vector<int>& choices) const;
};
Kinds make_kinds(const model::ComputationDag& dag);

}  // namespace perseus::planner
