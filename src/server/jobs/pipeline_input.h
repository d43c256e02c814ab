// The complete input of a pipeline (profile and shape), and the frontier characterized from it.
//
// A pipeline that takes long to plan has two frontiers, a quick one and the full one, each under its own key.
//
// Problem: frontiers are made once per distinct input and shared by jobs, servers and restarts, so an input needs a
//          canonical text and a key derived from that text.
// Input:   profile CSV and shape from clients; `ranks`: the pp degree, 0 where no job is known yet.
// Output:  complete() fills in everything left open; the hash of its text is the key of the frontier.
// Errors:  what is wrong with the profile, the schedule or the two together; too_large: more computations than the
//          limit.
// Cost:    complete() parses the profile and builds the schedule and DAG once (a millisecond for 8 stages of 24
//          microbatches); characterize() plans, seconds for large pipelines.
// Threads: pure functions.
// Source:  paper sections 4.1 and 5.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/stop_check.h"
#include "planning/model/build_dag.h"
#include "planning/model/schedule.h"
#include "server/jobs/requests.h"

namespace perseus::jobs {

struct PipelineInput {
  std::string profile_csv;
  PipelineShape shape;  ///< with chunks, blocking power and latencies
  int stages = 0;
  int ranks = 0;
  int microbatches = 0;  ///< also of an action table
  int deadlines = 1000;  ///< PlannerOptions::deadlines
  bool operator==(const PipelineInput&) const = default;
};

struct InputLimits {
  int ranks = 0;  ///< wanted; 0: any
  int max_computations = 1 << 17;
  int deadlines = 1000;
};
/// Ok if some profile can fit the shape; O(its action table).
Status check_shape(const PipelineShape& shape, int max_computations);
Result<PipelineInput> complete(const std::string& profile_csv, PipelineShape shape, const InputLimits& limits);

/// The computations with their options.
Result<model::ComputationDag> dag_of(const PipelineInput& input);

std::string format_input(const PipelineInput& input);
Result<PipelineInput> parse_input(std::string_view text, const std::string& name);

/// Power of waiting ranks and links, as the DAG takes them.
model::PipelineCosts costs_of(const PipelineShape& shape);
/// The schedule of an input with a known number of ranks.
Result<model::Schedule> schedule_of(const PipelineShape& shape, int ranks);

/// The key of the quick frontier (planning/planner/quick.h) of an input; the full one has the input's own key.
std::string quick_frontier_key(std::string_view input_key);
bool is_quick_frontier_key(std::string_view frontier_key);
/// The key of the input that a frontier belongs to.
std::string_view input_of_frontier(std::string_view frontier_key);

struct CharacterizationEffort {
  /// Inputs estimated to take more CPU seconds than this get a quick frontier. Nothing: always the full one.
  std::optional<double> quick_above_s;
  /// Inputs whose planning has taken longer than this get a quick frontier too.
  double quick_after_s = 0;
};
/// The key of the result identifies the frontier. If `check` stops it: unavailable.
Result<CharacterizedPipeline> characterize(const std::string& input_key, const PipelineInput& input,
                                           const CharacterizationEffort& effort, StopCheck& check);

/// The stored form: a gzipped plan file, since megabytes would delay a commit. Empty if it would exceed what
/// parse_frontier() reads.
std::string format_frontier(const CharacterizedPipeline& pipeline);
Result<CharacterizedPipeline> parse_frontier(const std::string& key, std::string_view text);

}  // namespace perseus::jobs
