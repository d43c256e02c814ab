// The published method's continuous relaxation: energy and clock of each planned duration of a computation.
//
// Problem: the method plans durations in whole units of tau between a computation's fastest and slowest candidate. It
//          needs the fitted effective energy at each, the energy that one unit more or less costs, and finally a clock.
// Input:   a valid ComputationDag and tau.
// Output:  one curve per (type, accelerators of the rank), shared by its computations. Step costs are integers: fitted
//          joules times one common factor, chosen so that sums over all computations stay below 2^61. So equal costs
//          are equal and the unit of energy does not matter. Step costs never fall as durations shrink (the fit is
//          convex).
// Errors:  none.
// Cost:    O(curves * (clocks * 400 + units)).
// Threads: plain values.
// Source:  paper section 4.1, appendices.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"

namespace perseus::planner {

struct CostCurve {
  std::int64_t fastest = 0;  ///< units of tau
  std::int64_t slowest = 0;
  std::vector<double> energy_j;         ///< fitted effective energy; the index of all three arrays is units - fastest
  std::vector<std::int64_t> step_cost;  ///< from this duration to one unit less; [0] is 0
  std::vector<std::uint16_t> option;    ///< of the slowest clock whose floored time is no longer

  [[nodiscard]] double energy_at(std::int64_t units) const { return energy_j[units - fastest]; }
  [[nodiscard]] std::int64_t step_cost_at(std::int64_t units) const { return step_cost[units - fastest]; }
  [[nodiscard]] std::uint16_t option_at(std::int64_t units) const { return option[units - fastest]; }
};

struct CostCurves {
  std::vector<CostCurve> curves;
  std::vector<int> curve_of;  ///< per computation

  [[nodiscard]] const CostCurve& of(int computation) const { return curves[curve_of[computation]]; }
};

CostCurves make_cost_curves(const model::ComputationDag& dag, Seconds unit);

}  // namespace perseus::planner
