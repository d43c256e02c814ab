// The table of baseline methods: names for users, and functions that make their plans.
//
// Input:   a valid DAG.
// Output:  plans in the order in which the method finds them; judge() turns plans into a frontier, realized as those of
//          the planners (planning/planner/realize.h).
// Errors:  usage: a method is not defined for the DAG.
// Cost:    EnvPipe's steps, see planning/baselines/envpipe.h; the others are fast.
// Threads: pure functions.
// Source:  paper section 6.1.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/stop_check.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::baselines {

struct BaselinePlans {
  std::vector<model::Plan> plans;
  std::string note;  ///< remark about this result for the user; may be empty
};

struct BaselineMethod {
  std::string_view name;
  std::string_view description;
  /// ErrorCode::unavailable if `check` stops it.
  Result<BaselinePlans> (*plans_unless_stopped)(const model::ComputationDag& dag, StopCheck& check);
  [[nodiscard]] Result<BaselinePlans> plans(const model::ComputationDag& dag) const {
    return plans_unless_stopped(dag, StopCheck::never());
  }
};

/// envpipe, zeus-global, zeus-per-stage, all-max, min-energy
std::span<const BaselineMethod> baseline_methods();

/// The Pareto set of the plans' realized times and energies, with `bound` as the lower bound.
model::Frontier judge(const model::ComputationDag& dag, std::vector<model::Plan> plans, const model::LowerBound& bound);

}  // namespace perseus::baselines
