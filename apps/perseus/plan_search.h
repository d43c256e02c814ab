// `perseus plan` with several configurations: each is planned by itself, and the frontier is that of their union.
//
// Which: the schedules of --schedule (a list, or best: every schedule that there is), each as measured and, with
// --recompute best, with only those stages recomputing that have to; with --stage-layers, each of these also on the
// partition that needs the least energy at the default plan's deadline; with --microbatch-profile, each as measured
// with microbatches of another size. What cannot be (a schedule's shape, the memory limit, unknown recomputation) is
// left out with its reason; only the reference must be possible. Output:  search_output.h. Errors: those of the
// readers; usage where the reference is not in the list, options
//          contradict each other, or the reference itself is impossible.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/formats/plan_file.h"
#include "pipeline.h"
#include "planning/model/default_plan.h"

namespace perseus::cli {

struct SearchOptions {
  std::optional<int> ranks;  ///< of the pipeline; nothing: one per stage of the profile
  std::string reference_schedule;
  std::string recompute = "as-measured";
  std::string measured_with;  ///< empty: unknown
  std::string memory;
  std::string memory_model;        ///< instead of `memory`: a model of the zoo
  std::vector<int> memory_layers;  ///< of each stage; empty: equally many
  std::optional<int> microbatch_size, sequence_length, tensor_parallel;
  std::string precision;  ///< empty: the model's usual
  std::optional<double> memory_limit_gib;
  std::vector<int> stage_layers;                 ///< one number: of every stage; not empty: other partitions are tried
  std::vector<std::string> microbatch_profiles;  ///< COUNT=FILE.csv
};

void add_search_options(CLI::App& subcommand, SearchOptions& options);

/// Do the options ask for more than one configuration, or for one that is derived from the measured one?
bool is_search(const PipelineOptions& pipeline, const SearchOptions& options);

/// How one configuration is planned, and what its files note.
struct SearchPlanner {
  std::function<Result<model::Frontier>(const model::ComputationDag&, const std::string& name)> plan;
  model::DefaultRule rule;
  Seconds switch_latency;
  formats::Metadata metadata;
  std::string out;  ///< empty: nothing is written
};

Result<int> run_plan_search(const PipelineOptions& pipeline, const SearchOptions& options, const SearchPlanner& planner,
                            bool as_json);

}  // namespace perseus::cli
