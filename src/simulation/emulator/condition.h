// What hampers one pipeline at the moment, and the DAG that it runs then.
//
// Problem: a throttled GPU is not a scaled pipeline: only computations that the plan wants faster than it can get slow
// down. Input: a valid DAG and, per throttled stage, a slowdown d >= 1 and the share of the stage's accelerators that
// it concerns. Output: the same DAG with other options: an option faster than d times the computation's fastest takes
// just that long. A throttled accelerator then needs what the measurements, joined by straight lines, say of that time;
// slower than all measurements, it pauses at blocking power. The stage's other accelerators compute as planned and
// wait. Constant-time computations stay as they are. No option gets below the hull of effective energies, so that a
// lower bound of the DAG stays one. Units: s, J, of one rank. Errors: none; stages that the DAG lacks are ignored.
// Cost: O(options log options). Threads: pure. Source: paper section 2.2 (thermal and power throttling).
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
  std::vector<ThrottledStage> throttled;  ///< by rising stage, each once
  Seconds stall;                          ///< how long the whole pipeline waits for its batch
  auto operator<=>(const Condition&) const = default;

  [[nodiscard]] bool healthy() const { return throttled.empty() && stall == Seconds(0); }
  /// The worse of both where they meet.
  void add(const ThrottledStage& stage);
};

model::ComputationDag throttled_dag(const model::ComputationDag& dag, const Condition& condition);

}  // namespace perseus::emulator
