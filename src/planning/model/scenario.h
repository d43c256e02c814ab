// A scenario: a training job on a cluster, its stragglers and its duration; the input of the emulator.
//
// Shape:   `kinds` are the different pipelines; kind k starts with `pipelines` replicas, numbered from 0 through all
//          kinds in order. A kind with 0 replicas is what a failure leaves of another kind. `stragglers` lists given
//          stragglers in any order, `random` the distributions from which the emulator draws further ones.
// Units:   s, W of one accelerator.
// Errors:  those of the reader (io/formats/scenario_toml.h); `where` of a straggler begins messages about it that need
//          the profiles.
// Threads: plain values.
// Source:  paper sections 2.2, 6.3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "planning/model/transfer_latency.h"

namespace perseus::model {

/// thermal, power: lower clock; storage: batches arrive late; failure: a pipeline lacks some of its GPUs.
enum class StragglerCause { thermal, power, storage, failure };

std::string_view name_of(StragglerCause cause);
std::optional<StragglerCause> straggler_cause_named(std::string_view name);

/// Effect of a cause on a pipeline.
struct Hardship {
  StragglerCause cause = StragglerCause::thermal;
  double slowdown = 1;       ///< thermal, power: of a computation's fastest time; storage: of the pipeline's fastest
  std::optional<int> stage;  ///< thermal, power: the throttled stage; nullopt: all stages
  std::optional<int> gpus;   ///< thermal, power: number of throttled GPUs in each throttled stage; nullopt: all
  int becomes = -1;          ///< failure: the kind that runs meanwhile
  Seconds restart;           ///< failure: how long no GPU computes, at its beginning and at its end
  std::string where;         ///< "scenario.toml:12: [[straggler]]", for messages
};

struct Straggler {
  Hardship hardship;
  int pipeline = 0;
  Seconds at;        ///< onset
  Seconds duration;  ///< until recovery
};

/// Stragglers of one cause on every pipeline; times from recovery to the next onset, and durations, are exponential.
struct RandomStragglers {
  Hardship hardship;  ///< the emulator draws its slowdown and stage
  Seconds mean_between;
  Seconds mean_duration;
  double least_slowdown = 1;  ///< slowdowns are uniform between these two, in whole percent
  double most_slowdown = 1;
  bool one_stage = false;  ///< true: throttles one stage, drawn at random; false: all stages
};

struct ScenarioKind {
  std::string name;
  std::string profile;  ///< path as the reader resolved it
  std::string schedule = "1f1b";
  int chunks = 1;
  int microbatches = 1;
  int pipelines = 0;
  std::string where;
};

/// Durations of an iteration outside of its computations.
struct ClusterTiming {
  TransferLatency transfer_latency;
  bool blocking_transfers = false;
  bool serial_transfers = false;               ///< a link carries one transfer per direction at a time
  Seconds load;                                ///< before each iteration; all ranks wait
  Seconds synchronization;                     ///< all-reduce of gradients after the slowest pipeline
  std::optional<Watts> synchronization_power;  ///< of one GPU; default: blocking power
  Seconds optimizer;                           ///< the optimizer's step after the all-reduce
  std::optional<Watts> optimizer_power;
};

/// Delays between the onset of a straggler and the clocks of the plan for it.
struct PlanDelivery {
  Seconds notice_delay;    ///< from onset (and recovery) until the server receives notice; negative: notice ahead
  Seconds deploy;          ///< from notice until clients have the new plan; they apply it at their next iteration
  Seconds switch_latency;  ///< of a clock change within an iteration
};

enum class Scaling { strong, weak };
std::string_view name_of(Scaling scaling);

/// Steady states of several cluster sizes, in which one whole pipeline is a straggler.
struct ScalingSweep {
  std::vector<Scaling> scaling;
  std::vector<int> gpus;
  std::vector<double> slowdowns;
};

struct Scenario {
  std::string name;
  std::vector<ScenarioKind> kinds;
  int tensor_parallel = 1;
  Watts blocking_power;
  Watts idle_power;  ///< of a GPU outside of all pipelines
  ClusterTiming timing;
  PlanDelivery delivery;
  std::vector<std::string> methods;
  Seconds unit_time = Seconds(0.001);  ///< of the published method
  double slowdown = 0;                 ///< allowed of plans without stragglers, see planning/model/default_plan.h
  std::uint64_t seed = 1;
  std::optional<Seconds> duration;  ///< a scenario has either `duration` or `iterations`
  std::optional<long> iterations;
  std::vector<Straggler> stragglers;
  std::vector<RandomStragglers> random;
  std::optional<ScalingSweep> sweep;

  [[nodiscard]] int num_pipelines() const {
    int all = 0;
    for (const ScenarioKind& kind : kinds) all += kind.pipelines;
    return all;
  }
};

}  // namespace perseus::model
