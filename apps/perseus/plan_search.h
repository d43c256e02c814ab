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
  std::optional<int> ranks;  ///< of the pipeline; nullopt: one per stage of the profile
  std::string reference_schedule;
  std::string recompute = "as-measured";
  std::string measured_with;  ///< empty: unknown
  std::string memory;
  std::string memory_model;        ///< instead of `memory`: a model of the model zoo
  std::vector<int> memory_layers;  ///< of each stage; empty: equally many
  std::optional<int> microbatch_size, sequence_length, tensor_parallel;
  std::string precision;  ///< empty: the model's default
  std::optional<double> memory_limit_gib;
  std::vector<int> stage_layers;                 ///< one number: of every stage; not empty: other partitions are tried
  std::vector<std::string> microbatch_profiles;  ///< COUNT=FILE.csv
};

void add_search_options(CLI::App& subcommand, SearchOptions& options);

/// True if the options request more than one configuration, or one that is derived from the measured one.
bool is_search(const PipelineOptions& pipeline, const SearchOptions& options);

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
