#include "oracles/instances.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "oracles/brute_force.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"

namespace perseus::testing {
namespace {

constexpr int kTopClock = 1410;
constexpr int kClockStep = 15;

/// Time falls and power rises with the clock, as on a real GPU.
void fill_smoothly(Dice& dice, std::vector<model::Measurement>& options) {
  const double time = dice.real(0.01, 0.2);
  const double static_power = dice.real(50, 150);
  const double dynamic_power = dice.real(50, 300);
  const double memory_bound = dice.real(0, 0.9);
  for (model::Measurement& option : options) {
    const double speed = option.clock.value() / static_cast<double>(kTopClock);
    option.time = Seconds(time * (memory_bound + (1 - memory_bound) / speed));
    option.energy = Watts(static_power + dynamic_power * speed * speed * speed) * option.time;
  }
}

/// Few different values: ties and repeated rows.
void fill_with_ties(Dice& dice, std::vector<model::Measurement>& options) {
  for (model::Measurement& option : options) {
    option.time = Seconds(0.125 * dice.roll(1, 4));
    option.energy = Joules(dice.roll(1, 4));
  }
}

/// No order at all: most rows are dominated.
void fill_with_anything(Dice& dice, std::vector<model::Measurement>& options) {
  for (model::Measurement& option : options) {
    option.time = Seconds(dice.real(0.01, 1));
    option.energy = Joules(dice.real(0, 100));
  }
}

/// The same measurement again and again, with noise of parts per billion to parts per thousand.
void fill_with_noise(Dice& dice, std::vector<model::Measurement>& options) {
  const double noise = std::pow(10.0, -dice.roll(3, 9));
  for (model::Measurement& option : options) {
    option.time = Seconds(0.1 * (1 + noise * dice.real(-1, 1)));
    option.energy = Joules(20 * (1 + noise * dice.real(-1, 1)));
  }
}

/// All options have the same effective energy: nothing is saved by waiting.
void fill_without_slope(Dice& dice, std::vector<model::Measurement>& options, Watts blocking_power) {
  for (model::Measurement& option : options) {
    option.time = Seconds(0.125 * dice.roll(1, 8));
    option.energy = Joules(1) + blocking_power * option.time;
  }
}

void scale_energies(model::ComputationDag& dag, double factor) {
  for (model::ComputationType& type : dag.types)
    for (model::Measurement& option : type.options) option.energy = option.energy * factor;
  dag.blocking_power = dag.blocking_power * factor;
}

Watts random_blocking_power(Dice& dice) { return dice.one_in(4) ? Watts(0) : Watts(dice.roll(1, 100)); }

void limit_plans(model::ComputationDag& dag, double max_plans) {
  while (num_plans(dag) > max_plans) {
    auto& largest = *std::ranges::max_element(dag.types, {},
                                              [](const model::ComputationType& type) { return type.options.size(); });
    largest.options.pop_back();
  }
}

model::ComputationDag finished(Dice& dice, model::ComputationDag dag, const InstanceLimits& limits) {
  limit_plans(dag, limits.max_plans);
  if (dice.one_in(4)) scale_energies(dag, std::pow(10.0, dice.roll(-6, 9)));
  const Status status = dag.validate();
  PERSEUS_CHECK(status.ok(), status.error().message.c_str());
  return dag;
}

}  // namespace

std::vector<model::Measurement> random_options(Dice& dice, int max_options, Watts blocking_power) {
  std::vector<model::Measurement> options(dice.one_in(6) ? 1 : dice.roll(1, max_options));
  int clock = kTopClock;
  for (model::Measurement& option : options) {
    option.clock = Megahertz(clock);
    clock -= kClockStep * dice.roll(1, std::max(1, 60 / static_cast<int>(options.size())));
  }
  switch (dice.roll(0, 5)) {
    case 0:
      fill_with_ties(dice, options);
      break;
    case 1:
      fill_with_anything(dice, options);
      break;
    case 2:
      fill_with_noise(dice, options);
      break;
    case 3:
      fill_without_slope(dice, options, blocking_power);
      break;
    default:
      fill_smoothly(dice, options);
  }
  return options;
}

model::Profile random_profile(Dice& dice, const model::Schedule& schedule, int max_options, Watts blocking_power) {
  std::set<std::pair<int, model::Instruction>> used;
  for (const std::vector<model::Action>& rank : schedule.ranks)
    for (const model::Action& action : rank) used.insert({action.stage, action.instruction});
  const bool are_stages_identical = dice.one_in(5);
  model::Profile profile;
  profile.accelerators.assign(schedule.num_stages, dice.one_in(4) ? dice.roll(2, 8) : 1);
  for (const auto& [stage, instruction] : used) {
    model::ProfileEntry entry{stage, std::string(model::name_of(instruction)), {}};
    const model::ProfileEntry* of_stage_0 = profile.find(0, entry.instruction);
    entry.measurements = are_stages_identical && of_stage_0 != nullptr
                             ? of_stage_0->measurements
                             : random_options(dice, max_options, blocking_power * profile.accelerators[0]);
    profile.entries.push_back(entry);
  }
  for (const char* name : {"load", "all_reduce", "optimizer_step"}) {
    if (!dice.one_in(4)) continue;
    const int stage = dice.roll(0, schedule.num_stages - 1);
    const model::Measurement constant{
        Megahertz(0), Seconds(dice.real(0.001, 0.1)), Joules(dice.real(0, 10)), {}, {}, 1};
    profile.entries.push_back({stage, name, {constant}});
  }
  std::ranges::stable_sort(profile.entries, {}, &model::ProfileEntry::stage);
  return profile;
}

model::ComputationDag random_pipeline(Dice& dice, const std::string& schedule_name, const InstanceLimits& limits) {
  model::ScheduleShape shape;
  shape.num_ranks = dice.roll(1, limits.max_ranks);
  shape.num_microbatches = dice.roll(1, limits.max_microbatches);
  const int fixed = model::chunks_fixed_by(schedule_name);
  shape.chunks = fixed > 0 ? fixed : dice.roll(1, 2);
  Result<model::Schedule> schedule = model::make_schedule(schedule_name, shape);
  if (!schedule) {  // this schedule lacks the shape: take one that all have
    shape.num_ranks = std::min(2, limits.max_ranks);
    shape.num_microbatches = 2 * shape.num_ranks;
    shape.chunks = fixed > 0 ? fixed : (schedule_name == "interleaved-1f1b" ? 2 : 1);
    schedule = model::make_schedule(schedule_name, shape);
  }
  PERSEUS_CHECK(schedule.ok(), schedule_name.c_str());
  const Watts blocking_power = random_blocking_power(dice);
  const Seconds latency(dice.one_in(3) ? dice.real(0.001, 0.05) : 0);
  Result<model::ComputationDag> dag = model::build_dag(
      random_profile(dice, *schedule, limits.max_options, blocking_power), *schedule, {blocking_power, latency});
  PERSEUS_CHECK(dag.ok(), dag.ok() ? "" : dag.error().message.c_str());
  return finished(dice, std::move(*dag), limits);
}

model::ComputationDag random_generic_dag(Dice& dice, const InstanceLimits& limits) {
  model::ComputationDag dag;
  dag.blocking_power = random_blocking_power(dice);
  const int num_types = dice.roll(1, 4);
  for (int t = 0; t < num_types; ++t)
    dag.types.push_back({-1, "task", random_options(dice, limits.max_options, dag.blocking_power)});
  const int num_ranks = dice.roll(1, limits.max_ranks);
  dag.rank_order.resize(num_ranks);
  for (int r = 0; r < num_ranks; ++r) dag.accelerators.push_back(dice.one_in(4) ? dice.roll(2, 4) : 1);
  const int n = dice.roll(1, 2 * limits.max_microbatches);
  for (int i = 0; i < n; ++i) {
    const model::Computation computation{dice.roll(0, num_types - 1), dice.roll(0, num_ranks - 1), -1};
    std::vector<int>& order = dag.rank_order[computation.rank];
    if (!order.empty()) dag.dependencies.push_back({order.back(), i, Seconds(0)});
    order.push_back(i);
    dag.computations.push_back(computation);
    for (int extra = dice.roll(0, 2); extra > 0 && i > 0; --extra) {
      const Seconds latency(dice.one_in(3) ? dice.real(0, 0.2) : 0);
      dag.dependencies.push_back({dice.roll(0, i - 1), i, latency});
    }
  }
  return finished(dice, std::move(dag), limits);
}

model::ComputationDag random_dag(Dice& dice, const InstanceLimits& limits) {
  const int kind = dice.roll(0, static_cast<int>(model::schedule_names().size()));
  if (kind == 0) return random_generic_dag(dice, limits);
  return random_pipeline(dice, model::schedule_names()[kind - 1], limits);
}

model::Plan random_plan(Dice& dice, const model::ComputationDag& dag) {
  model::Plan plan;
  for (const model::Computation& computation : dag.computations) {
    const int num_options = static_cast<int>(dag.types[computation.type].options.size());
    plan.push_back(static_cast<std::uint16_t>(dice.roll(0, num_options - 1)));
  }
  return plan;
}

}  // namespace perseus::testing
