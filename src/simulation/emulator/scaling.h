// Strong and weak scaling: emulates all sizes, slowdowns and methods while one pipeline is a straggler.
//
// Strong: the scenario's global batch (microbatches x pipelines of its first kind) is divided among the pipelines
// that the GPUs form; weak: each pipeline keeps its microbatches. Pipeline 0 is throttled as a whole, and the server
// knows it.
//
// Problem: show whether the saving grows with the cluster.
// Input:   a scenario with a sweep (kind, methods, timing; its stragglers and horizon do not matter) and its first
//          kind's profile.
// Output:  one row per scaling, size, slowdown and method, in that order, all-max first; one steady iteration each.
// Errors:  those of simulation/emulator/cluster.h; invalid_input for GPUs that form no whole pipelines, or pipelines
//          among which the batch cannot be divided.
// Cost:    planning once per number of microbatches, then O(slowdowns).
// Threads: progress on the caller's.
// Source:  paper section 6.3, table 5, figure 8.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/profile.h"
#include "planning/model/scenario.h"
#include "simulation/emulator/emulate.h"

namespace perseus::emulator {

/// A method's saving by source, in percent of the energy of the same work with all computations at maximum clock.
/// Intrinsic: the saving of its fastest plans, whatever the stragglers do. Extrinsic: the additional saving from
/// slowing down for stragglers.
/// Input:   energy of the same work (an iteration) at maximum clock, with the fastest plans only, and with all plans.
struct Savings {
  double intrinsic_pct = 0;
  double extrinsic_pct = 0;
  double total_pct = 0;
};

inline Savings savings_of(Joules all_max, Joules fastest_plans, Joules all_plans) {
  return {100 * ((all_max - fastest_plans) / all_max), 100 * ((fastest_plans - all_plans) / all_max),
          100 * ((all_max - all_plans) / all_max)};
}

struct ScalingRow {
  model::Scaling scaling = model::Scaling::strong;
  int gpus = 0;
  int pipelines = 0;
  int microbatches = 0;  ///< of a pipeline
  double slowdown = 1;
  std::string method;
  ClusterIteration iteration;
  Savings savings;                          ///< of the cluster, including the straggler
  std::optional<double> non_straggler_pct;  ///< saving of a pipeline that is no straggler, if there is one
};

Result<std::vector<ScalingRow>> emulate_scaling(const model::Scenario& scenario, const model::Profile& profile,
                                                const std::function<void(double done)>& progress = {});

}  // namespace perseus::emulator
