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
  Savings savings;                          ///< of the cluster, including the straggler
  std::optional<double> non_straggler_pct;  ///< saving of a pipeline that is no straggler, if there is one
};

Result<std::vector<ScalingRow>> emulate_scaling(const model::Scenario& scenario, const model::Profile& profile,
                                                const std::function<void(double done)>& progress = {});

}  // namespace perseus::emulator
