// `perseus plan` with several configurations: plans each separately, and forms the frontier of their union.
//
// The configurations: the schedules of --schedule (a list, or best: every schedule), each as measured and, with
// --recompute best, with only the necessary stages recomputing; with --stage-layers, each of these also on the
// partition that needs the least energy at the default plan's deadline; with --microbatch-profile, each as measured
// with microbatches of another size. Impossible configurations (a schedule's shape, the memory limit, unknown
// recomputation) are skipped with their reason; only the reference must be possible.
//
// Output:  search_output.h.
// Errors:  those of the readers; usage where the reference is not in the list, options contradict each other, or the
//          reference itself is impossible.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "io/formats/plan_file.h"
#include "plan/pipeline.h"
#include "planning/model/default_plan.h"
#include "search/search_options.h"

namespace perseus::cli {

/// How to plan one configuration, and the metadata of its files.
struct SearchPlanner {
  std::function<Result<model::Frontier>(const model::ComputationDag&, const std::string& name)> plan;
  model::DefaultRule rule;
  Seconds switch_latency;
  formats::Metadata metadata;
  std::string out;  ///< empty: no files
};

Result<int> run_plan_search(const PipelineOptions& pipeline, const SearchOptions& options, const SearchPlanner& planner,
                            bool as_json);

}  // namespace perseus::cli
