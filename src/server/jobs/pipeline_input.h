// What a pipeline is, completely: a profile with its shape; and what becomes of it, a characterized pipeline.
//
// Problem: frontiers are made once per distinct input and shared by jobs, servers and restarts, so an input needs a
//          text that is the same for the same thing and a key that follows from the text.
// Input:   profile CSV and shape as clients give them; `ranks`: the pp degree, 0 where no job is known yet.
// Output:  complete() fills in all that is left open; its text's hash is the key of the frontier.
// Errors:  what is wrong with the profile, the schedule or the two together; too_large: more computations than the
//          limit.
// Cost:    complete() parses the profile and builds the schedule and DAG once (a millisecond for 8 stages of 24
//          microbatches); characterise() plans, seconds for large pipelines. A pipeline that takes long to plan has
//          two frontiers, a quick one and the full one, each under a key of its own.
// Threads: pure functions.
// Source:  paper sections 4.1 and 5.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/stop_check.h"
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
/// Whether there is a profile that it fits; O(its action table).
Status check_shape(const PipelineShape& shape, int max_computations);
Result<PipelineInput> complete(const std::string& profile_csv, PipelineShape shape, const InputLimits& limits);

/// Its computations with their options.
Result<model::ComputationDag> dag_of(const PipelineInput& input);

std::string format_input(const PipelineInput& input);
Result<PipelineInput> parse_input(std::string_view text, const std::string& name);

/// Stages per rank, where only the schedule's name says it.
int chunks_of(const PipelineShape& shape);

/// The schedule of an input whose ranks are known.
Result<model::Schedule> schedule_of(const PipelineShape& shape, int ranks);

/// The key of the quick frontier (planning/planner/quick.h) of an input; the full one has the input's own key.
std::string quick_frontier_key(std::string_view input_key);
bool is_quick_frontier_key(std::string_view frontier_key);
/// The key of the input that a frontier is of.
std::string_view input_of_frontier(std::string_view frontier_key);

struct CharacterisationEffort {
  /// Input that is estimated to take more CPU seconds gets its quick frontier. Nothing: always the full one.
  std::optional<double> quick_above_s;
  /// So does input that turns out to take more than that.
  double quick_after_s = 0;
};
/// The key of what it returns tells which frontier it is. If `check` stops it: unavailable.
Result<CharacterisedPipeline> characterise(const std::string& input_key, const PipelineInput& input,
                                           const CharacterisationEffort& effort, StopCheck& check);

/// As the store keeps it: a plan file, gzipped, for a commit must not be held up by megabytes. Empty if it would be
/// larger than what parse_frontier() reads.
std::string format_frontier(const CharacterisedPipeline& pipeline);
Result<CharacterisedPipeline> parse_frontier(const std::string& key, std::string_view text);

}  // namespace perseus::jobs
