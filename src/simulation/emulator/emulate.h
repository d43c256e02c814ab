// Emulates a training job on a cluster in virtual time with one method's plans: time, energy, and its division by
// source.
//
// Between two events (an onset, a recovery, the server being notified of one) all iterations are the same, and
// pipelines of one kind, condition and plan do the same. So one pipeline is simulated once for each such state
// (planning/checker/plan_run.h), and the total is one iteration for each mix of states, times the number of its
// repetitions. Nothing is stepped per GPU or per iteration.
//
// One iteration: all pipelines start together; each waits `load`, then its stall if batches come late, then runs its
// plan under its condition (simulation/emulator/condition.h). All wait for the last: its time is the pace, T'.
// Gradients are synchronized, the optimizer steps, and the next iteration begins. Energy of a pipeline: eq. (1) at
// T', times the tensor-parallel degree; parts are those of EnergyParts. A throttled pipeline's
// bloat is measured against the bound of the healthy one.
//
// Events take effect at the next beginning of an iteration. The server is notified of onset and recovery notice_delay
// later, and plans reach the clients after `deploy`; until then all pipelines run as before. The server's rule: T' is
// the longest iteration among the pipelines as the server knows them, each at its default plan
// (planning/model/default_plan.h). A pipeline known to be a straggler counts, and runs, at its default plan without
// the tolerance, since all others wait for it. All others run the slowest plan within T'
// (planning/planner/look_up.h): T_opt = min(T*, T'). A failure changes the kind of the pipeline, and all GPUs idle
// for `restart`, at its beginning and end; its missing GPUs idle.
//
// Problem: emulate thousands of GPUs for a day, within seconds.
// Input:   a scenario (times and delivery), its kinds and a method's plans for them (simulation/emulator/cluster.h),
//          and stragglers that fit them (simulation/emulator/drawn_stragglers.h).
// Output:  Emulation, unique; the order of stragglers and of pipelines within a kind does not matter.
// Cost:    O(events * distinct states at a time), a simulation for each new state and a Fourier transform for each
//          new mix; keeps at most 64 MB of simulated states.
// Threads: one Emulator, one thread; it keeps references.
// Source:  paper sections 2.2, 3.1, 6.3.
#pragma once

#include <compare>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "base/units.h"
#include "planning/model/scenario.h"
#include "simulation/emulator/cluster.h"
#include "simulation/emulator/condition.h"
#include "simulation/emulator/pipeline_iteration.h"
#include "simulation/emulator/power_series.h"

namespace perseus::emulator {

// A job's energy, split into parts that add up to the total.
// Of the energy of computing, sum(e), the avoidable part is bloat, measured in effective energy (e - P t, so that the
// waiting which a slower computation replaces is not counted twice) against the proven lower bound:
//   intrinsic bloat: avoidable without making the pipeline slower;
//   extrinsic bloat: avoidable in addition by slowing the pipeline down to the time that it waits for anyway;
//   useful: the rest of sum(e), and the optimizer's step.
// Blocking: waiting, within the pipeline and for the slowest one, for batches, and in gradient synchronization. Idle:
// GPUs that no pipeline uses, and all of them while the job restarts.

struct EnergyParts {
  Joules useful;
  Joules intrinsic_bloat;
  Joules extrinsic_bloat;
  Joules blocking;
  Joules idle;

  [[nodiscard]] Joules total() const { return useful + intrinsic_bloat + extrinsic_bloat + blocking + idle; }

  EnergyParts& operator+=(const EnergyParts& other) {
    useful += other.useful;
    intrinsic_bloat += other.intrinsic_bloat;
    extrinsic_bloat += other.extrinsic_bloat;
    blocking += other.blocking;
    idle += other.idle;
    return *this;
  }
  friend EnergyParts operator*(double times, const EnergyParts& parts) {
    return {times * parts.useful, times * parts.intrinsic_bloat, times * parts.extrinsic_bloat, times * parts.blocking,
            times * parts.idle};
  }
};

/// look_up: the server's rule above. default_plans: the server knows no straggler and all pipelines run their default
/// plan, which leaves extrinsic bloat.
enum class Response { look_up, default_plans };

/// Pipelines in the same state.
struct PipelineGroup {
  int kind = 0;
  Condition condition;
  std::size_t point = 0;  ///< of the kind's frontier
  int pipelines = 0;
  auto operator<=>(const PipelineGroup&) const = default;
};

struct ClusterIteration {
  Seconds pace;  ///< T'
  Seconds time;  ///< with synchronization and optimizer
  EnergyParts energy;
  PowerFigures power;
  std::vector<EnergyParts> of_one;  ///< per group: of one of its pipelines, until the end of the iteration
};

/// The iteration that repeats while no event occurs and the server knows all stragglers.
struct SteadyState {
  std::vector<PipelineGroup> groups;
  ClusterIteration iteration;
};

/// Consecutive equal iterations, or a restart (no iterations).
struct Segment {
  Seconds start;
  long iterations = 0;
  Seconds each;  ///< time of an iteration, or of the restart
  EnergyParts energy;
  PowerFigures power;
  [[nodiscard]] Seconds length() const { return iterations == 0 ? each : static_cast<double>(iterations) * each; }
};

/// Power within one iteration: mean of each bin.
struct IterationPower {
  Seconds time;
  Seconds bin_width;
  std::vector<double> bins_w;
};

struct Emulation {
  long iterations = 0;
  Seconds time;
  EnergyParts energy;
  Seconds shortest_iteration = Seconds(std::numeric_limits<double>::infinity());
  Seconds longest_iteration;
  Seconds iterating;  ///< time without restarts
  Watts highest_power;
  Watts lowest_power = Watts(std::numeric_limits<double>::infinity());
  double ramp_w_per_s = 0;
  double band_w2s = 0;      ///< signal energy from 0.1 to 20 Hz
  double variance_w2s = 0;  ///< of all variation within iterations
  std::vector<Segment> segments;
  IterationPower first;    ///< iteration
  IterationPower slowest;  ///< iteration, the first of equals

  [[nodiscard]] Watts mean_power() const { return energy.total() / time; }
  [[nodiscard]] double peak_to_mean() const { return highest_power / mean_power(); }
  [[nodiscard]] double band_rms_w() const;
  /// Share of the signal energy of the alternating part, in 0..1.
  [[nodiscard]] double band_share() const;
  [[nodiscard]] Seconds mean_iteration() const { return iterating / static_cast<double>(iterations); }
  [[nodiscard]] Joules energy_per_iteration() const { return energy.total() / static_cast<double>(iterations); }
};

class Emulator {
 public:
  Emulator(const model::Scenario& scenario, const std::vector<PipelineKind>& kinds, const MethodPlans& plans);

  /// Runs until the scenario's duration is over (the last iteration is completed) or its iterations are done.
  Emulation run(const std::vector<model::Straggler>& stragglers, Response response);

  /// The state while all of these stragglers last.
  SteadyState steady_state(const std::vector<model::Straggler>& stragglers, Response response);

  /// One iteration of these pipelines, with some GPUs outside of any pipeline.
  ClusterIteration iterate(const std::vector<PipelineGroup>& groups, long spare_gpus, IterationPower* power = nullptr);

 private:
  /// Onset or recovery of one straggler: for the pipeline, for the server's knowledge of it, or for both.
  struct Event {
    Seconds time;
    int straggler = 0;
    bool begins = true;
    bool happens = true;
    bool is_heard_of = true;
  };
  struct PipelineState;
  struct Mix {
    std::vector<PipelineGroup> groups;
    long spare_gpus = 0;
    auto operator<=>(const Mix&) const = default;
  };
  using States = std::map<int, PipelineState>;

  [[nodiscard]] std::vector<Event> events_of(const std::vector<model::Straggler>& stragglers) const;
  /// Applies an event; returns the duration of the restart that it causes.
  Seconds apply(const Event& event, const std::vector<model::Straggler>& stragglers, States& states) const;
  Mix mix_of(const States& states, const std::vector<model::Straggler>& stragglers, Response response);
  const ClusterIteration& iteration_of(const Mix& mix);
  std::shared_ptr<const PipelineIteration> pipeline_iteration(int kind, const Condition& condition, std::size_t point);
  Seconds own_time(int kind, const Condition& condition, std::size_t point);

  const model::Scenario& scenario_;
  const std::vector<PipelineKind>& kinds_;
  const MethodPlans& plans_;

  struct StateKey {
    int kind;
    std::size_t point;
    Condition condition;
    auto operator<=>(const StateKey&) const = default;
  };
  std::map<StateKey, std::shared_ptr<const PipelineIteration>> simulated_;
  std::size_t simulated_bytes_ = 0;
  std::map<Mix, ClusterIteration> mixes_;
};

}  // namespace perseus::emulator
