// Traces of runs of a pipeline with known constants, made by the simulator: calibration must recover the constants.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/run_trace.h"
#include "tests/oracles/dice.h"
#include "tests/oracles/link_queue.h"

namespace perseus::testing {

/// The truth. Power of a stage is base_w + slope_w_per_mhz * clock; times are cycles / clock.
struct TrueRun {
  int stages = 3;
  int microbatches = 6;
  int plans = 12;
  Watts blocking_power = Watts(70);
  model::TransferLatency transfer_latency = Seconds(0.004);
  bool blocking_transfers = true;
  bool queues = false;               ///< a link carries one transfer per direction at a time; senders do not wait
  Seconds loading = Seconds(0.006);  ///< per microbatch, on the first and the last stage
  double loading_rise_per_mhz = 0;   ///< on the first stage, relative, above the lowest clock
  Seconds tail = Seconds(0.05);
  double first_backward_factor = 1;  ///< time of the first microbatch's backward, relative to the others
  double time_noise = 0;             ///< relative, of each computation
  double iteration_noise = 0;        ///< relative, of iteration times and energies

  [[nodiscard]] Seconds time(int stage, model::Instruction instruction, Megahertz clock) const {
    return Seconds((instruction == model::Instruction::forward ? 60 : 150) * (1 + 0.07 * stage) / clock.value());
  }
  [[nodiscard]] Seconds loading_at(int stage, Megahertz clock, Megahertz lowest) const {
    return loading * (1 + (stage == 0 ? loading_rise_per_mhz : 0) * (clock.value() - lowest.value()));
  }
  [[nodiscard]] Watts power(int stage, Megahertz clock) const {
    return Watts(60 + 5 * stage + (0.12 + 0.01 * stage) * clock.value());
  }
};

inline std::vector<Megahertz> synthetic_clocks() {
  std::vector<Megahertz> clocks;
  for (int mhz = 1410; mhz >= 810; mhz -= 120) clocks.emplace_back(mhz);
  return clocks;
}

/// By a simulation of ranks and links that shares no code with plans or calibration.
inline Seconds queued_makespan(const model::ComputationDag& dag, const model::TransferLatency& latency) {
  std::vector<double> durations_s;
  for (std::size_t c = 0; c < dag.computations.size(); ++c) {
    durations_s.push_back(dag.type_of(static_cast<int>(c)).options.front().time.value());
  }
  return Seconds(LinkQueueOracle(dag, durations_s).makespan_s([&](int from, int to) {
    return latency.between(from, to, dag.num_ranks()).value().value();
  }));
}

/// Each plan gives each stage's forwards and backwards their own clock, and the first microbatch another.
inline model::RunTrace synthetic_trace(const TrueRun& run, Dice& dice) {
  const std::vector<Megahertz> clocks = synthetic_clocks();
  model::Profile profile;
  profile.accelerators.assign(run.stages, 1);
  for (int stage = 0; stage < run.stages; ++stage) {
    for (const model::Instruction instruction : {model::Instruction::forward, model::Instruction::backward}) {
      model::ProfileEntry entry{stage, std::string(model::name_of(instruction)), {}};
      for (const Megahertz clock : clocks)
        entry.measurements.push_back({clock, run.time(stage, instruction, clock), {}, {}, {}});
      profile.entries.push_back(entry);
    }
    if (run.loading > Seconds(0) && (stage == 0 || stage == run.stages - 1))
      profile.entries.push_back({stage, "load", {{Megahertz(0), run.loading, {}, {}, {}}}});
    if (run.tail > Seconds(0))
      profile.entries.push_back({stage, "optimizer_step", {{Megahertz(0), run.tail, {}, {}, {}}}});
  }
  const model::Schedule schedule = *model::make_schedule("1f1b", {run.stages, run.microbatches, 1});
  const auto noise = [&](double relative) {
    double sum = -6;  // sum of twelve uniforms: approximately normal
    for (int i = 0; i < 12; ++i) sum += dice.real(0, 1);
    return 1 + relative * sum;
  };

  model::RunTrace trace;
  for (int p = 0; p < run.plans; ++p) {
    // One type per computation, so that each may have its own time.
    model::ComputationDag dag =
        *model::build_dag(profile, schedule, {run.blocking_power, run.transfer_latency, run.blocking_transfers});
    std::vector<model::ComputationType> types;
    model::TracedPlan plan;
    plan.id = p;
    plan.kind = "synthetic";
    plan.stages.resize(run.stages);
    for (std::size_t c = 0; c < dag.computations.size(); ++c) {
      types.push_back(dag.type_of(static_cast<int>(c)));
      types.back().options.resize(1);
      dag.computations[c].type = static_cast<int>(c);
    }
    dag.types = types;
    std::vector<Seconds> busy(run.stages), loading(run.stages);
    plan.energy.resize(run.stages);
    for (int stage = 0; stage < run.stages; ++stage) {
      const auto any_clock = [&] { return clocks[dice.roll(0, static_cast<int>(clocks.size()) - 1)]; };
      const Megahertz steady[] = {any_clock(), any_clock()}, first[] = {any_clock(), any_clock()};
      for (const int c : dag.rank_order[stage]) {
        const model::Instruction instruction = *model::instruction_named(dag.type_of(c).instruction);
        const bool backward = instruction == model::Instruction::backward,
                   is_first = dag.computations[c].microbatch == 0;
        if (instruction == model::Instruction::load) {
          Seconds& time = dag.types[c].options.front().time;
          time = run.loading_at(stage, (is_first ? first : steady)[0], clocks.back());
          loading[stage] += time;
        }
        if (model::is_constant_time(instruction)) continue;
        const Megahertz clock = (is_first ? first : steady)[backward ? 1 : 0];
        Seconds time = run.time(stage, instruction, clock) * noise(run.time_noise);
        if (backward && is_first) time = time * run.first_backward_factor;
        dag.types[c].options.front() = {clock, time, {}, {}, {}};
        plan.stages[stage].push_back({instruction, dag.computations[c].microbatch, clock, time});
        plan.energy[stage] += run.power(stage, clock) * time;
        busy[stage] += time;
      }
    }
    plan.iteration_time = run.queues ? queued_makespan(dag, run.transfer_latency)
                                     : checker::run_plan(dag, model::Plan(dag.computations.size())).makespan;
    for (int stage = 0; stage < run.stages; ++stage) {
      plan.energy[stage] += run.blocking_power * (plan.iteration_time - busy[stage]);
      plan.energy[stage] = plan.energy[stage] * noise(run.iteration_noise);
      plan.loading.push_back(loading[stage]);
    }
    plan.iteration_time = plan.iteration_time * noise(run.iteration_noise);
    trace.plans.push_back(std::move(plan));
  }
  return trace;
}

inline std::vector<int> all_plans(const model::RunTrace& trace) {
  std::vector<int> plans(trace.plans.size());
  for (std::size_t p = 0; p < plans.size(); ++p) plans[p] = static_cast<int>(p);
  return plans;
}

}  // namespace perseus::testing
