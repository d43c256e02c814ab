// The pipelines of a cluster, as DAGs with their lower bounds, and each method's plans for them.
//
// Input:   a scenario's kind with its profile.
// Output:  PipelineKind: the DAG is that of one GPU of each tensor-parallel group (all GPUs of a group do the same),
//          so that energies count `tensor_parallel` times. MethodPlans: one frontier a kind, realized under the
//          scenario's switch latency; a method with a single plan has a frontier of one point.
// Errors:  those of schedule and DAG, naming the kind; usage for a method that is unknown or not defined for a DAG.
// Cost:    the planners'.
// Source:  paper sections 4.4 (data and tensor parallelism), 6.1.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/frontier.h"
#include "planning/model/profile.h"
#include "planning/model/scenario.h"

namespace perseus::emulator {

struct PipelineKind {
  std::string name;
  model::ComputationDag dag;
  model::LowerBound bound;
  int pipelines = 0;        ///< number at the start of a job
  int tensor_parallel = 1;  ///< number of GPUs that each of the DAG's accelerators stands for

  [[nodiscard]] int gpus() const;             ///< of one pipeline
  [[nodiscard]] Watts waiting_power() const;  ///< of one pipeline, all its GPUs
};

Result<PipelineKind> make_kind(const model::Profile& profile, const model::ScenarioKind& kind,
                               const model::Scenario& scenario);

/// exact, perseus (the published method), envpipe, zeus-global, zeus-per-stage, all-max, min-energy
std::vector<std::string_view> emulated_method_names();

struct MethodPlans {
  std::string name;
  std::vector<model::Frontier> of_kind;
  std::vector<std::size_t> default_of_kind;  ///< the point for iterations without stragglers, see
                                             ///< planning/model/default_plan.h
  std::vector<std::size_t> own_of_kind;      ///< a straggler's point: the same without the tolerance, as in T of T'/T
};

/// `progress` as in planning/planner/exact.h; may be empty.
Result<MethodPlans> plan_method(std::string_view name, const std::vector<PipelineKind>& kinds,
                                const model::Scenario& scenario, const std::function<void(double)>& progress = {});

}  // namespace perseus::emulator
