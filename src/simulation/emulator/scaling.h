// Strong and weak scaling: one pipeline straggles, and all sizes, degrees and methods are emulated in one go.
//
// Problem: does saving grow with the cluster? Strong: the scenario's global batch (microbatches x pipelines of its
// first kind) is shared out to however many pipelines the GPUs make; weak: each pipeline keeps its microbatches.
// Pipeline 0 is throttled as a whole, and the server knows. Input: a scenario with a sweep (kind, methods, timing; its
// stragglers and horizon do not matter) and its first kind's profile. Output: one row per scaling, size, slowdown and
// method, in that order, all-max first; one steady iteration each. Errors: those of simulation/emulator/cluster.h;
// invalid_input for GPUs that make no whole pipelines, or pipelines among which the batch cannot be shared out. Cost:
// planning once per number of microbatches, then O(slowdowns). Threads: progress on the caller's. Source: paper
// section 6.3, table 5, figure 8.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "planning/model/profile.h"
#include "planning/model/scenario.h"
#include "simulation/emulator/emulate.h"
#include "simulation/emulator/saving_by_source.h"

namespace perseus::emulator {

struct ScalingRow {
  model::Scaling scaling = model::Scaling::strong;
  int gpus = 0;
  int pipelines = 0;
  int microbatches = 0;  ///< of a pipeline
  double slowdown = 1;
  std::string method;
  ClusterIteration iteration;
  Savings savings;                          ///< of the cluster, straggler included
  std::optional<double> non_straggler_pct;  ///< what a pipeline that does not straggle saves, where there is one
};

Result<std::vector<ScalingRow>> emulate_scaling(const model::Scenario& scenario, const model::Profile& profile,
                                                const std::function<void(double done)>& progress = {});

}  // namespace perseus::emulator
