#include "simulation/emulator/emulate.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "planning/model/default_plan.h"
#include "simulation/emulator/drawn_stragglers.h"

namespace perseus::emulator {
namespace {

constexpr std::size_t kMaxSimulatedBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxMixes = 100'000;

PowerFigures constant_power(Watts power) {
  PowerFigures figures;
  figures.mean = figures.highest = figures.lowest = figures.first = figures.last = power;
  return figures;
}

/// Adds a segment to the totals of a run; ramps between segments are those from its last to the other's first 0.1 s.
void append(Emulation& run, const Segment& segment) {
  const PowerFigures& power = segment.power;
  run.highest_power = std::max(run.highest_power, power.highest);
  run.lowest_power = std::min(run.lowest_power, power.lowest);
  run.ramp_w_per_s = std::max(run.ramp_w_per_s, power.ramp_w_per_s);
  if (!run.segments.empty()) {
    const double step_w = std::abs((power.first - run.segments.back().power.last).value());
    run.ramp_w_per_s = std::max(run.ramp_w_per_s, step_w / kRampWindow.value());
  }
  if (segment.iterations > 0) {
    run.iterations += segment.iterations;
    run.iterating += segment.length();
    run.shortest_iteration = std::min(run.shortest_iteration, segment.each);
    run.longest_iteration = std::max(run.longest_iteration, segment.each);
    run.band_w2s += power.band_w2 * segment.length().value();
    run.variance_w2s += power.variance_w2 * segment.length().value();
  }
  run.energy += segment.energy;
  run.time += segment.length();
  run.segments.push_back(segment);
}

}  // namespace

double Emulation::band_rms_w() const { return iterations == 0 ? 0 : std::sqrt(band_w2s / iterating.value()); }
double Emulation::band_share() const { return variance_w2s > 0 ? std::min(1.0, band_w2s / variance_w2s) : 0; }

/// A pipeline with stragglers: their indices, ascending.
struct Emulator::PipelineState {
  std::vector<int> suffers;
  std::vector<int> is_known_to_suffer;
};

Emulator::Emulator(const model::Scenario& scenario, const std::vector<PipelineKind>& kinds, const MethodPlans& plans)
    : scenario_(scenario), kinds_(kinds), plans_(plans) {}

std::shared_ptr<const PipelineIteration> Emulator::pipeline_iteration(int kind, const Condition& condition,
                                                                      std::size_t point) {
  const StateKey key{kind, point, condition};
  if (const auto found = simulated_.find(key); found != simulated_.end()) return found->second;
  const model::ComputationDag& dag = kinds_[kind].dag;
  const model::Plan& plan = plans_.of_kind[kind].points[point].plan;
  const Seconds latency = scenario_.delivery.switch_latency;
  auto made = std::make_shared<const PipelineIteration>(
      condition.throttled.empty() ? iterate_pipeline(dag, plan, latency)
                                  : iterate_pipeline(throttled_dag(dag, condition), plan, latency));
  if (simulated_bytes_ > kMaxSimulatedBytes) {
    simulated_.clear();
    simulated_bytes_ = 0;
  }
  simulated_bytes_ += sizeof(PipelineIteration) + made->power.size() * sizeof(PowerChange);
  simulated_.emplace(key, made);
  return made;
}

Seconds Emulator::own_time(int kind, const Condition& condition, std::size_t point) {
  return scenario_.timing.load + condition.stall + pipeline_iteration(kind, condition, point)->time;
}

ClusterIteration Emulator::iterate(const std::vector<PipelineGroup>& groups, long spare_gpus, IterationPower* power) {
  const model::ClusterTiming& timing = scenario_.timing;
  const Watts synchronizing = timing.synchronization_power.value_or(scenario_.blocking_power);
  const Watts optimizing = timing.optimizer_power.value_or(scenario_.blocking_power);
  ClusterIteration result;
  for (const PipelineGroup& g : groups) { result.pace = std::max(result.pace, own_time(g.kind, g.condition, g.point)); }
  result.time = result.pace + timing.synchronization + timing.optimizer;

  PowerSeries series(result.time);
  for (const PipelineGroup& g : groups) {
    const PipelineKind& kind = kinds_[g.kind];
    const auto own = pipeline_iteration(g.kind, g.condition, g.point);
    const Seconds before = timing.load + g.condition.stall;
    const int degree = kind.tensor_parallel;
    const Joules least_at_own_time = kind.bound.at(own->time);
    const Joules least_at_pace = kind.bound.at(std::max(own->time, result.pace - before));
    EnergyParts one;
    one.intrinsic_bloat = degree * (own->effective - least_at_own_time);
    one.extrinsic_bloat = degree * (least_at_own_time - least_at_pace);
    one.useful = degree * own->computing - one.intrinsic_bloat - one.extrinsic_bloat +
                 kind.gpus() * optimizing * timing.optimizer;
    one.blocking = kind.waiting_power() * result.pace - degree * (own->computing - own->effective) +
                   kind.gpus() * synchronizing * timing.synchronization;
    result.energy += g.pipelines * one;
    result.of_one.push_back(one);

    const double gpus = static_cast<double>(g.pipelines) * kind.gpus();
    series.change(Seconds(0), g.pipelines * kind.waiting_power());
    series.change(result.pace, gpus * synchronizing - g.pipelines * kind.waiting_power());
    series.change(result.pace + timing.synchronization, gpus * (optimizing - synchronizing));
    series.add(own->power, before, g.pipelines * degree);
  }
  const Watts spare = static_cast<double>(spare_gpus) * scenario_.idle_power;
  result.energy.idle += spare * result.time;
  series.change(Seconds(0), spare);
  std::vector<double> bins = series.bins_w();
  result.power = power_figures(bins, series.bin_width());
  if (power != nullptr) *power = {result.time, series.bin_width(), std::move(bins)};
  return result;
}

std::vector<Emulator::Event> Emulator::events_of(const std::vector<model::Straggler>& stragglers) const {
  const Seconds heard_after = scenario_.delivery.notice_delay + scenario_.delivery.deploy;
  std::vector<Event> events;
  for (int i = 0; i < static_cast<int>(stragglers.size()); ++i) {
    const model::Straggler& s = stragglers[i];
    for (const auto& [time, begins] : {std::pair(s.at, true), std::pair(s.at + s.duration, false)}) {
      // After a restart the server knows the state at once.
      const bool at_once = s.hardship.cause == model::StragglerCause::failure || heard_after == Seconds(0);
      events.push_back({time, i, begins, true, at_once});
      if (!at_once) events.push_back({time + heard_after, i, begins, false, true});
    }
  }
  std::ranges::stable_sort(events, {}, &Event::time);
  return events;
}

Seconds Emulator::apply(const Event& event, const std::vector<model::Straggler>& stragglers, States& states) const {
  const model::Straggler& straggler = stragglers[event.straggler];
  PipelineState& state = states[straggler.pipeline];
  const auto change = [&](std::vector<int>& list) {
    const auto at = std::ranges::lower_bound(list, event.straggler);
    if (event.begins) {
      list.insert(at, event.straggler);
    } else if (at != list.end() && *at == event.straggler) {
      list.erase(at);
    }
  };
  if (event.happens) change(state.suffers);
  if (event.is_heard_of) change(state.is_known_to_suffer);
  if (state.suffers.empty() && state.is_known_to_suffer.empty()) states.erase(straggler.pipeline);
  return straggler.hardship.cause == model::StragglerCause::failure ? straggler.hardship.restart : Seconds(0);
}

Emulator::Mix Emulator::mix_of(const States& states, const std::vector<model::Straggler>& stragglers,
                               Response response) {
  struct Hampered {
    int kind;
    Condition is, is_known;
  };
  std::vector<int> healthy;
  for (const PipelineKind& kind : kinds_) healthy.push_back(kind.pipelines);
  Mix mix;
  std::vector<Hampered> hampered;
  for (const auto& [pipeline, state] : states) {
    const auto hardships = [&](const std::vector<int>& indices) {
      std::vector<const model::Hardship*> all;
      for (const int i : indices) all.push_back(&stragglers[i].hardship);
      return all;
    };
    const int original = kind_of_pipeline(kinds_, pipeline);
    int kind = original;
    for (const model::Hardship* h : hardships(state.suffers)) {
      // Of several failures the one that leaves the fewest GPUs; among equals the first kind.
      if (h->cause != model::StragglerCause::failure) continue;
      const int left = kinds_[h->becomes].gpus(), now = kinds_[kind].gpus();
      if (kind == original || left < now || (left == now && h->becomes < kind)) kind = h->becomes;
    }
    --healthy[original];
    mix.spare_gpus += kinds_[original].gpus() - kinds_[kind].gpus();
    hampered.push_back({kind, condition_of(hardships(state.suffers), kinds_[kind]),
                        condition_of(hardships(state.is_known_to_suffer), kinds_[kind])});
  }

  const auto own = [&](const Hampered& h) {
    return (h.is_known.healthy() ? plans_.default_of_kind : plans_.own_of_kind)[h.kind];
  };
  Seconds known_pace;
  for (int kind = 0; kind < static_cast<int>(kinds_.size()); ++kind) {
    if (healthy[kind] > 0) known_pace = std::max(known_pace, own_time(kind, {}, plans_.default_of_kind[kind]));
  }
  for (const Hampered& h : hampered) known_pace = std::max(known_pace, own_time(h.kind, h.is_known, own(h)));
  const auto planned = [&](int kind) {
    if (response == Response::default_plans) return plans_.default_of_kind[kind];
    return static_cast<std::size_t>(model::slowest_within(plans_.of_kind[kind], known_pace - scenario_.timing.load));
  };
  const auto planned_for = [&](const Hampered& h) {
    return h.is_known.healthy() || response == Response::default_plans ? planned(h.kind) : own(h);
  };

  std::map<std::tuple<int, Condition, std::size_t>, int> groups;
  for (int kind = 0; kind < static_cast<int>(kinds_.size()); ++kind) {
    if (healthy[kind] > 0) groups[{kind, {}, planned(kind)}] += healthy[kind];
  }
  for (const Hampered& h : hampered) ++groups[{h.kind, h.is, planned_for(h)}];
  for (const auto& [group, pipelines] : groups) {
    mix.groups.push_back({std::get<0>(group), std::get<1>(group), std::get<2>(group), pipelines});
  }
  return mix;
}

const ClusterIteration& Emulator::iteration_of(const Mix& mix) {
  if (const auto found = mixes_.find(mix); found != mixes_.end()) return found->second;
  if (mixes_.size() >= kMaxMixes) mixes_.clear();
  return mixes_.emplace(mix, iterate(mix.groups, mix.spare_gpus)).first->second;
}

SteadyState Emulator::steady_state(const std::vector<model::Straggler>& stragglers, Response response) {
  States states;
  for (int i = 0; i < static_cast<int>(stragglers.size()); ++i) apply({{}, i, true, true, true}, stragglers, states);
  const Mix mix = mix_of(states, stragglers, response);
  return {mix.groups, iteration_of(mix)};
}

Emulation Emulator::run(const std::vector<model::Straggler>& stragglers, Response response) {
  constexpr double forever = std::numeric_limits<double>::infinity();
  const Seconds end = scenario_.duration.value_or(Seconds(forever));
  const long iterations = scenario_.iterations.value_or(std::numeric_limits<long>::max());
  double all_gpus = 0;
  for (const PipelineKind& kind : kinds_) all_gpus += static_cast<double>(kind.pipelines) * kind.gpus();
  const std::vector<Event> events = events_of(stragglers);

  Emulation run;
  States states;
  std::size_t next = 0;
  Mix first, slowest;
  while (run.time < end && run.iterations < iterations) {
    Seconds restart;
    for (; next < events.size() && events[next].time <= run.time; ++next) {
      restart = std::max(restart, apply(events[next], stragglers, states));
    }
    if (restart > Seconds(0)) {
      const Watts idle = all_gpus * scenario_.idle_power;
      EnergyParts energy;
      energy.idle = idle * restart;
      append(run, {run.time, 0, restart, energy, constant_power(idle)});
      continue;
    }
    Mix mix = mix_of(states, stragglers, response);
    const ClusterIteration& each = iteration_of(mix);
    const Seconds until = std::min(end, next < events.size() ? events[next].time : Seconds(forever));
    const double wanted = std::ceil((until - run.time) / each.time);
    const auto left = static_cast<double>(iterations - run.iterations);
    const auto times = static_cast<long>(std::clamp(wanted, 1.0, left));
    if (run.iterations == 0) first = mix;
    if (each.time > run.longest_iteration) slowest = std::move(mix);
    append(run, {run.time, times, each.time, static_cast<double>(times) * each.energy, each.power});
  }
  if (run.iterations > 0) {
    iterate(first.groups, first.spare_gpus, &run.first);
    iterate(slowest.groups, slowest.spare_gpus, &run.slowest);
  }
  return run;
}

}  // namespace perseus::emulator
