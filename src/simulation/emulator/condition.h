// The condition of one pipeline (throttled stages, late batches) and its DAG under that condition.
//
// A throttled accelerator gets the time and power that linear interpolation between the measurements gives; where it
// is slower than all measurements, it pauses at blocking power. The stage's other accelerators compute as planned and
// wait. Constant-time computations stay unchanged. No option gets below the hull of effective energies, so that a
// lower bound of the DAG remains one.
//
// Problem: a throttled GPU is not a scaled pipeline: only computations that the plan runs faster than the throttled
//          GPU can are slowed down.
// Input:   a valid DAG and, per throttled stage, a slowdown d >= 1 and the share of the stage's accelerators that it
//          affects.
// Output:  the same DAG with other options: an option faster than d times the computation's fastest takes exactly
//          that long. Units: s, J, of one rank.
// Errors:  none; stages that the DAG lacks are ignored.
// Cost:    O(options log options).
// Source:  paper section 2.2 (thermal and power throttling).
#pragma once

#include <compare>
#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"

namespace perseus::emulator {

struct ThrottledStage {
  int stage = 0;
  double slowdown = 1;  ///< >= 1
  double share = 1;     ///< of its accelerators, > 0 and <= 1
  auto operator<=>(const ThrottledStage&) const = default;
};

struct Condition {
  std::vector<ThrottledStage> throttled;  ///< in ascending order, each stage once
  Seconds stall;                          ///< how long the whole pipeline waits for its batch
  auto operator<=>(const Condition&) const = default;

  [[nodiscard]] bool healthy() const { return throttled.empty() && stall == Seconds(0); }
  /// Keeps the worse slowdown and share where a stage is listed already.
  void add(const ThrottledStage& stage);
};

model::ComputationDag throttled_dag(const model::ComputationDag& dag, const Condition& condition);

}  // namespace perseus::emulator
