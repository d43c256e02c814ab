#include "simulation/replay/simulated_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace perseus::replay {
namespace {

struct TimePower {
  Seconds time;
  Watts power;
};

TimePower of(const model::Measurement& m) { return {m.time, m.energy / m.time}; }

/// At that clock: as measured, else interpolated between the neighbors, else as at the nearest end.
TimePower at_clock(const model::ComputationType& type, Megahertz clock) {
  const std::vector<model::Measurement>& options = type.options;
  if (clock >= options.front().clock) return of(options.front());
  if (clock <= options.back().clock) return of(options.back());
  const auto below = std::find_if(options.begin(), options.end(), [&](const auto& m) { return m.clock <= clock; });
  if (below->clock == clock) return of(*below);
  const TimePower high = of(*(below - 1)), low = of(*below);
  const double share = static_cast<double>(clock.value() - below->clock.value()) /
                       static_cast<double>((below - 1)->clock.value() - below->clock.value());
  return {low.time + share * (high.time - low.time), low.power + share * (high.power - low.power)};
}

/// Highest first.
std::vector<Megahertz> clocks_of(const model::ComputationDag& dag, const std::vector<int>& types) {
  std::set<Megahertz, std::greater<>> clocks;
  for (const int t : types) {
    for (const model::Measurement& m : dag.types[t].options) {
      if (m.clock.value() > 0) clocks.insert(m.clock);
    }
  }
  if (clocks.empty()) clocks.insert(Megahertz(1000));  // only constant-time operations
  return {clocks.begin(), clocks.end()};
}

/// Down takes longer than up, and neighboring targets differ irregularly, as on measured GPUs.
Seconds switch_latency_to(std::size_t clock, std::size_t clocks, const SimulatedRankOptions& options) {
  if (clocks < 2) return options.least_switch_latency;
  const double down = static_cast<double>(clock) / static_cast<double>(clocks - 1);
  const double uneven = 0.1 * std::sin(2.3 * static_cast<double>(clock));
  const double share = std::clamp(down + uneven, 0.0, 1.0);
  return options.least_switch_latency + share * (options.most_switch_latency - options.least_switch_latency);
}

}  // namespace

std::vector<int> types_of(const model::ComputationDag& dag, int rank) {
  std::set<int> types;
  for (const int i : dag.rank_order[rank]) types.insert(dag.computations[i].type);
  return {types.begin(), types.end()};
}

simulated_gpu::SimulatedGpuSpec gpu_of_rank(const model::ComputationDag& dag, int rank,
                                            const SimulatedRankOptions& options) {
  const std::vector<int> types = types_of(dag, rank);
  const double accelerators = dag.accelerators[rank];
  simulated_gpu::SimulatedGpuSpec spec;
  spec.name = "Perseus simulated GPU (no real device)";
  spec.clocks = clocks_of(dag, types);
  Watts highest;
  for (const int t : types) {
    const model::ComputationType& type = dag.types[t];
    simulated_gpu::SimulatedComputation computation{
        fmt::format("{} of stage {}", type.instruction, type.stage), {}, {}};
    for (const Megahertz clock : spec.clocks) {
      const auto [time, power] = at_clock(type, clock);
      computation.time.push_back(time);
      computation.power.push_back(power);
      highest = std::max(highest, power);
    }
    spec.computations.push_back(std::move(computation));
  }
  spec.blocking_power.assign(spec.clocks.size(), options.blocking_power * accelerators);
  spec.idle_power = options.idle_power * accelerators;
  spec.counter_refresh = options.counter_refresh;
  for (std::size_t k = 0; k < spec.clocks.size(); ++k) {
    spec.switch_latency.push_back(switch_latency_to(k, spec.clocks.size(), options));
  }
  spec.power_limit = spec.default_power_limit = Watts(std::ceil(1.05 * highest.value()));
  return spec;
}

int option_under_limit(const model::ComputationType& type, int option, Watts limit) {
  const int last = static_cast<int>(type.options.size()) - 1;
  while (option < last && type.options[option].energy / type.options[option].time > limit) ++option;
  return option;
}

}  // namespace perseus::replay
