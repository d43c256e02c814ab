// A training job on a cluster, what befalls it, and for how long: the input of the emulator.
//
// Shape: `kinds` are the different pipelines there are; kind k starts with `pipelines` replicas, which are numbered
// through all kinds in their order, from 0. A kind with 0 replicas is what a failure leaves of another one.
// `stragglers` are given ones in any order, `random` says from which distributions further ones are drawn.
// Units: s, W of one accelerator. Errors: those of the reader (io/formats/scenario_toml.h); `where` of a straggler is
// what a message about it starts with once profiles are known. Threads: plain values. Source: paper sections 2.2, 6.3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "planning/model/transfer_latency.h"

namespace perseus::model {

/// thermal, power: the clock is lowered; storage: batches arrive late; failure: some of a pipeline's GPUs are gone.
enum class StragglerCause { thermal, power, storage, failure };

std::string_view name_of(StragglerCause cause);
std::optional<StragglerCause> straggler_cause_named(std::string_view name);

/// What a cause does to the pipeline that it befalls.
struct Hardship {
  StragglerCause cause = StragglerCause::thermal;
  double slowdown = 1;       ///< thermal, power: of a computation's fastest time; storage: of the pipeline's fastest
  std::optional<int> stage;  ///< thermal, power: the only one that is throttled; otherwise all are
  std::optional<int> gpus;   ///< thermal, power: how many GPUs of each throttled stage; otherwise all
  int becomes = -1;          ///< failure: the kind that runs meanwhile
  Seconds restart;           ///< failure: how long nobody computes, at its beginning and at its end
  std::string where;         ///< "scenario.toml:12: [[straggler]]", for messages
};

struct Straggler {
  Hardship hardship;
  int pipeline = 0;
  Seconds at;        ///< onset
  Seconds duration;  ///< until recovery
};

/// Stragglers of one cause on every pipeline: times between recovery and next onset, and durations, are exponential.
struct RandomStragglers {
  Hardship hardship;  ///< its slowdown and stage are drawn
  Seconds mean_between;
  Seconds mean_duration;
  double least_slowdown = 1;  ///< drawn evenly between these two, in whole percent
  double most_slowdown = 1;
  bool one_stage = false;  ///< a stage is drawn; otherwise all are throttled
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

/// What happens around the computations of an iteration.
struct ClusterTiming {
  TransferLatency transfer_latency;
  bool blocking_transfers = false;
  Seconds load;                                ///< before each iteration, everybody waits
  Seconds synchronisation;                     ///< after the slowest pipeline, gradients are summed
  std::optional<Watts> synchronisation_power;  ///< of one GPU; blocking power where not given
  Seconds optimizer;                           ///< then the optimizer's step
  std::optional<Watts> optimizer_power;
};

/// How plans get from the server to the clocks.
struct PlanDelivery {
  Seconds notice_delay;    ///< from onset (and recovery) to the server's knowing of it; negative: known ahead
  Seconds deploy;          ///< from there until a new plan is with the clients; they take it at their next iteration
  Seconds switch_latency;  ///< of a clock change within an iteration
};

enum class Scaling { strong, weak };
std::string_view name_of(Scaling scaling);

/// Steady states of many sizes, with one pipeline that straggles as a whole.
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
  Watts idle_power;  ///< of a GPU that no pipeline uses
  ClusterTiming timing;
  PlanDelivery delivery;
  std::vector<std::string> methods;
  Seconds unit_time = Seconds(0.001);  ///< of the published method
  double slowdown = 0;                 ///< tolerated by plans without stragglers, see planning/model/default_plan.h
  std::uint64_t seed = 1;
  std::optional<Seconds> duration;  ///< one of these two
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
