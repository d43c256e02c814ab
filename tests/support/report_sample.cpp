#include "tests/support/report_sample.h"

#include <algorithm>
#include <cmath>

#include "io/report/timeline.h"

namespace perseus::report {
namespace {

constexpr int clocks = 24;

std::vector<model::Measurement> options(double seconds_at_top) {
  std::vector<model::Measurement> all;
  for (int k = 0; k < clocks; ++k) {
    const int mhz = 1410 - 30 * k;
    const double slow = 0.25 + 0.75 * 1410.0 / mhz;  // part of the work waits for memory, at every clock
    const double power = 110 + 290 * std::pow(mhz / 1410.0, 2.4);
    const double time = seconds_at_top * slow;
    all.push_back({Megahertz(mhz), Seconds(time), Joules(power * time), Seconds(), Joules(), 1});
  }
  return all;
}

/// 1F1B: a rank's actions as (is_backward, microbatch).
std::vector<std::pair<bool, int>> one_f_one_b(int rank, int ranks, int microbatches) {
  const int warm_up = std::min(ranks - rank - 1, microbatches);
  std::vector<std::pair<bool, int>> actions;
  int f = 0, b = 0;
  while (f < warm_up) actions.emplace_back(false, f++);
  while (b < microbatches) {
    if (f < microbatches) actions.emplace_back(false, f++);
    actions.emplace_back(true, b++);
  }
  return actions;
}

}  // namespace

model::ComputationDag sample_dag(int ranks, int microbatches) {
  model::ComputationDag dag;
  dag.blocking_power = Watts(83);
  dag.accelerators.assign(ranks, 1);
  dag.rank_order.resize(ranks);
  std::vector<std::vector<std::pair<bool, int>>> actions;
  for (int r = 0; r < ranks; ++r) {
    const double weight = 0.030 * (1 + 0.16 * std::sin(2.1 * r + 0.4) + (r == ranks - 1 ? 0.08 : 0));
    dag.types.push_back({r, "forward", options(weight)});
    dag.types.push_back({r, "backward", options(2.05 * weight)});
    actions.push_back(one_f_one_b(r, ranks, microbatches));
  }
  // Number the computations as they become ready, so that every dependency points forward.
  std::vector<std::vector<int>> forward(ranks, std::vector<int>(microbatches, -1)), backward = forward;
  std::vector<std::size_t> next(ranks, 0);
  const std::size_t count = 2ul * ranks * microbatches;
  while (dag.computations.size() < count) {
    for (int r = 0; r < ranks; ++r) {
      if (next[r] == actions[r].size()) continue;
      const auto [is_backward, m] = actions[r][next[r]];
      const int neighbor = is_backward ? r + 1 : r - 1;
      const bool first = neighbor < 0 || neighbor == ranks;
      const int input = first ? -1 : (is_backward ? backward : forward)[neighbor][m];
      if (!first && input < 0) continue;
      const int i = static_cast<int>(dag.computations.size());
      dag.computations.push_back({2 * r + (is_backward ? 1 : 0), r, m});
      if (!first) dag.dependencies.push_back({input, i, Seconds(0.001)});
      if (!dag.rank_order[r].empty()) dag.dependencies.push_back({dag.rank_order[r].back(), i, Seconds(0)});
      dag.rank_order[r].push_back(i);
      (is_backward ? backward : forward)[r][m] = i;
      ++next[r];
    }
  }
  return dag;
}

model::Frontier sample_frontier(const model::ComputationDag& dag, int points) {
  double heaviest = 0;
  for (const model::ComputationType& type : dag.types) heaviest = std::max(heaviest, type.options[0].time.value());
  const model::Plan slowest = model::minimum_energy_plan(dag);
  model::Frontier frontier;
  const auto add = [&](model::Plan plan) {
    const Timeline timeline = timeline_of(dag, plan);
    const bool better =
        frontier.points.empty() || (timeline.makespan < frontier.points.back().time &&
                                    timeline.effective_energy > frontier.points.back().effective_energy);
    if (better)
      frontier.points.push_back(
          {timeline.makespan, timeline.energy, timeline.effective_energy, Joules(), std::move(plan)});
  };
  add(slowest);
  for (int k = points - 2; k >= 0; --k) {
    const double slower = 0.998 + 0.5 * k / std::max(1, points - 2);
    model::Plan plan(dag.computations.size());
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const model::Computation& c = dag.computations[i];
      const auto& all = dag.types[c.type].options;
      const double part = c.type % 2 == 0 ? 1 / 2.05 : 1;  // forwards are shorter than backwards by this factor
      const double wobble = 1 + 0.003 * std::sin(1.7 * c.microbatch + k);
      const Seconds allowed(heaviest * part * slower * wobble);
      int option = 0;
      while (option < slowest[i] && all[option + 1].time <= allowed) ++option;
      plan[i] = static_cast<model::Plan::value_type>(option);
    }
    add(std::move(plan));
  }
  const Joules below = 0.002 * frontier.points.back().energy;
  for (auto p = frontier.points.rbegin(); p != frontier.points.rend(); ++p)
    frontier.bound.vertices.push_back({p->time, p->effective_energy - below});
  for (model::FrontierPoint& p : frontier.points)
    p.bound = frontier.bound.at(p.time) + dag.total_blocking_power() * p.time;
  return frontier;
}

}  // namespace perseus::report
