// One configuration of a training job: schedule, recomputation and microbatches, as a ComputationDag that can be
// planned.
//
// A profile measures one configuration. Others are derived from it, and every assumption that this takes is part of the
// answer: how a backward splits (planning/search/configuration.cpp), chunks of a stage (stage_count.h), what
// recomputation costs (recomputation.h), and what fits a memory limit (memory.h). Input:   a Job (what was measured and
// what may not change) and a Choice (what may). Output:  a valid DAG of the Choice on the Job's ranks; memory per rank
// where it is known. Errors:  usage or invalid_input, naming what does not allow this choice: a schedule's shape, the
// memory limit, an
//          unknown recomputation, whatever build_dag() says. A search leaves such a configuration out and shows why.
// Cost:    O(computations).
// Threads: pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/search/memory.h"

namespace perseus::search {

/// Does the backward of a profile include the recomputation of its forward?
enum class MeasuredWith { unknown, recomputation, no_recomputation };

struct SearchedJob {
  model::Profile profile;
  int num_ranks = 0;  ///< 0: a rank per stage of the profile
  int microbatches = 12;
  model::PipelineCosts costs;
  std::optional<double> input_gradient_fraction;  ///< of a backward; nothing: kAssumedInputGradientFraction
  MeasuredWith measured_with = MeasuredWith::unknown;
  std::vector<model::StageMemory> memory;  ///< per stage of the profile; empty: unknown
  std::optional<double> memory_limit_gib;  ///< of each rank; needs `memory`
  // Where the profile is not what was measured (repartition.h):
  std::string variant = {};  ///< "+partition-best", the end of its configurations' names
  std::vector<std::string> assumptions = {};
  bool is_derived = false;
};

/// Where neither measurements nor the operator say: both halves of a backward are two matrix products of one size.
inline constexpr double kAssumedInputGradientFraction = 0.5;

enum class Recomputing {
  as_measured,
  none,
  all,
  /// Only stages whose activations do not fit. A stage that recomputes needs more time and energy at every clock, so no
  /// plan gets worse when it stops. Without a memory limit: every stage but those that are alone on their rank and hold
  /// one microbatch at a time, since recomputing as a whole they need the same memory. With several stages on a rank,
  /// those with the highest energy are tried first.
  best,
};

struct ConfigurationChoice {
  std::string schedule = "1f1b";
  int chunks = 1;  ///< stages per rank
  Recomputing recomputing = Recomputing::as_measured;
};

struct Configuration {
  std::string name;  ///< fit for a folder: "zero-bubble", "1f1b+recompute-best"
  ConfigurationChoice choice;
  model::ComputationDag dag;
  bool is_derived = false;  ///< some of its times and energies were not measured
  int microbatches = 0;
  std::vector<bool> recomputes;    ///< per stage; empty: unknown
  std::vector<double> memory_gib;  ///< per rank; empty: unknown
  std::vector<int> in_flight;      ///< per rank: microbatches of its stages held at once, at most
  std::vector<std::string> assumptions;
};

Result<Configuration> configure(const SearchedJob& job, const ConfigurationChoice& choice);

/// "1f1b+recompute-best": how results of this choice are called.
std::string name_of(const ConfigurationChoice& choice);

}  // namespace perseus::search
