// Options of `perseus plan` that request several configurations.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/pipeline.h"

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

}  // namespace perseus::cli
