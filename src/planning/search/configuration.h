// Derives one configuration of a training job (schedule, recomputation, chunks) as a ComputationDag for planning.
//
// Problem: a profile measures one configuration. Others are derived from it, and the result lists every assumption
//          behind that: how a backward splits (configuration.cpp), chunks of a stage (stage_count.h), the cost of
//          recomputation (recomputation.h), and what fits a memory limit (memory.h).
// Input:   a SearchedJob (the measurements and what must not change) and a ConfigurationChoice (what may change).
// Output:  a valid DAG of the choice on the job's ranks, and its types under each draw of a noisy profile; memory per
//          rank if it is known.
// Errors:  usage or invalid_input, with the reason against this choice: a schedule's shape, the memory limit, an
//          unknown recomputation, an error of build_dag(). A search leaves such a configuration out and shows the
//          reason.
// Cost:    O(computations), for each draw too.
// Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/stage_memory.h"
#include "planning/search/memory.h"

namespace perseus::search {

/// Whether the backward of a profile includes the recomputation of its forward.
enum class MeasuredWith { unknown, recomputation, no_recomputation };

/// The memory of a model whose layers are divided among stages in any way.
struct LayerMemory {
  std::vector<int> layers;  ///< transformer layers of each stage of a job's profile
  /// Memory of stages with so many transformer layers each.
  std::function<Result<std::vector<model::StageMemory>>(const std::vector<int>& layers)> of;
};

struct SearchedJob {
  model::Profile profile;
  std::vector<model::Profile> draws = {};  ///< alternatives that a noisy profile leaves possible
  int num_ranks = 0;                       ///< 0: a rank per stage of the profile
  int microbatches = 12;
  model::PipelineCosts costs;
  std::optional<double> input_gradient_fraction;  ///< of a backward; nullopt: kAssumedInputGradientFraction
  MeasuredWith measured_with = MeasuredWith::unknown;
  std::vector<model::StageMemory> memory;   ///< per stage of the profile; empty: unknown
  std::optional<LayerMemory> layer_memory;  ///< of other chunks and partitions; nullopt: unknown
  std::optional<double> memory_limit_gib;   ///< of each rank; needs `memory`
  // For a derived profile (repartition.h):
  std::string variant = {};  ///< "+partition-best", the end of its configurations' names
  std::vector<std::string> assumptions = {};
  bool is_derived = false;
};

/// Default without measurements and options: the halves of a backward are two matrix products of one size.
inline constexpr double kAssumedInputGradientFraction = 0.5;

enum class Recomputing {
  as_measured,
  none,
  all,
  /// Only stages whose activations do not fit. A stage that recomputes needs more time and energy at every clock, so no
  /// plan gets worse when it stops. Without a memory limit: every stage but those that are alone on their rank and hold
  /// one microbatch at a time, since recomputing as a whole they need the same memory. If a rank has several stages,
  /// those with the highest energy stop recomputing first if they fit.
  best,
};

struct ConfigurationChoice {
  std::string schedule = "1f1b";
  int chunks = 1;  ///< stages per rank
  Recomputing recomputing = Recomputing::as_measured;
};

struct Configuration {
  std::string name;  ///< usable as a folder name: "zero-bubble", "1f1b+recompute-best"
  ConfigurationChoice choice;
  model::ComputationDag dag;
  /// [draw][type]: as in dag.types, from the job's draws, with the same recomputation.
  std::vector<std::vector<model::ComputationType>> drawn = {};
  bool is_derived = false;  ///< some of its times and energies were not measured
  int microbatches = 0;
  std::vector<bool> recomputes;    ///< per stage; empty: unknown
  std::vector<int> layers;         ///< transformer layers per stage; empty: unknown
  std::vector<double> memory_gib;  ///< per rank; empty: unknown
  std::vector<int> in_flight;      ///< per rank: microbatches of its stages held at once, at most
  std::vector<std::string> assumptions;
};

/// Sets the memory of the job's stages to that of their layers. Errors: those of `memory.of`.
Status set_memory(LayerMemory memory, SearchedJob& job);

Result<Configuration> configure(const SearchedJob& job, const ConfigurationChoice& choice);

/// Name of a choice in results: "1f1b+recompute-best".
std::string name_of(const ConfigurationChoice& choice);

}  // namespace perseus::search
