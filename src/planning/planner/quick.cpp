#include "planning/planner/quick.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "planning/model/neighbors.h"
#include "planning/planner/choices.h"
#include "planning/planner/clock_runs.h"
#include "planning/planner/late_clocks.h"
#include "planning/planner/realize.h"

namespace perseus::planner {
namespace {

constexpr int kSlowdowns = 12;      // number of uniform slowdowns tried, from none to the slowest clocks
constexpr int kRoundsOfSlack = 5;   // rounds that use slack, each up to a greater slowdown
constexpr int kBusyTimes = 24;      // number of busy times tried, where each rank keeps one clock
constexpr double kSameTime = 1e-9;  // relative tolerance of times: sums in another order are not slower
constexpr long kOperationsOfSlack = 20, kOperationsOfOneClock = 40;

/// Plans for clocks that change at once: each computation gets its own clock.
class FreeClocks {
 public:
  explicit FreeClocks(const model::ComputationDag& dag)
      : kinds_(make_kinds(dag)), before_(model::neighbors_before_s(dag)), after_(model::neighbors_after_s(dag)) {
    for (const ChoiceSet& set : kinds_.sets) {
      most_slowdown_ = std::max(most_slowdown_, set.pareto.front().time / set.pareto.back().time);
    }
  }

  /// Ratio of times at the slowest clocks to those at the fastest.
  [[nodiscard]] double most_slowdown() const { return most_slowdown_; }

  /// Slows every computation at most `slowdown` times against its fastest, then further where that costs no time.
  model::Plan plan(double slowdown) {
    choice_.clear();
    for (const int kind : kinds_.of_computation) choice_.push_back(slowest_within(kinds_.sets[kind], slowdown));
    for (int round = 1; round <= kRoundsOfSlack; ++round) {
      spend_slack(slowdown * std::pow(most_slowdown_, static_cast<double>(round) / kRoundsOfSlack));
    }
    return kinds_.plan_of(choice_);
  }

 private:
  static int slowest_within(const ChoiceSet& set, double slowdown) {
    const Seconds most = set.pareto.back().time * (slowdown * (1 + kSameTime));
    int choice = static_cast<int>(set.pareto.size()) - 1;
    while (choice > 0 && set.pareto[choice - 1].time <= most) --choice;
    return choice;
  }
  [[nodiscard]] const std::vector<Choice>& choices_of(int i) const {
    return kinds_.sets[kinds_.of_computation[i]].pareto;
  }
  // Lowers clocks, up to most_slowdown against the fastest, where the iteration time stays the same.
  void spend_slack(double most_slowdown) {
    const auto duration = [&](int i) { return choices_of(i)[choice_[i]].time.value(); };
    const double makespan = model::longest_path(before_, duration, end_);
    const int n = static_cast<int>(choice_.size());
    latest_end_.resize(n);
    latest_start_.resize(n);
    for (int i = n - 1; i >= 0; --i) {
      latest_end_[i] = model::latest_end(after_, i, latest_start_, makespan);
      latest_start_[i] = latest_end_[i] - duration(i);
    }
    for (int i = 0; i < n; ++i) {
      const double start = model::earliest_start(before_, i, end_);
      const std::vector<Choice>& choices = choices_of(i);
      const double most =
          std::min(latest_end_[i] - start, choices.back().time.value() * most_slowdown * (1 + kSameTime));
      int& choice = choice_[i];
      while (choice > 0 && choices[choice - 1].time.value() <= most) --choice;
      end_[i] = start + choices[choice].time.value();
    }
  }

  Kinds kinds_;
  double most_slowdown_ = 1;
  model::Neighbors<double> before_, after_;
  std::vector<int> choice_;
  std::vector<double> end_, latest_end_, latest_start_;
};

std::vector<model::FrontierPoint> plan_free(const model::ComputationDag& dag, StopCheck& check) {
  FreeClocks clocks(dag);
  Realizer realizer(dag);
  std::vector<model::FrontierPoint> points;
  const long cost = kOperationsOfSlack * (3 * kRoundsOfSlack + 1) * static_cast<long>(dag.computations.size());
  for (int i = 0; i <= kSlowdowns; ++i) {
    if (check.stop(cost)) return {};
    model::Plan plan = clocks.plan(std::pow(clocks.most_slowdown(), static_cast<double>(i) / kSlowdowns));
    const Realizer::Outcome outcome = realizer.realize(plan);
    points.push_back({outcome.time, {}, outcome.effective_energy, {}, std::move(plan), {}});
  }
  return points;
}

/// Time that a rank computes in an iteration at each of its clocks, highest first.
std::vector<double> busy_times(const model::ComputationDag& dag, int rank, const std::vector<Megahertz>& clocks) {
  std::vector<int> count(dag.types.size(), 0);
  for (const int i : dag.rank_order[rank]) ++count[dag.computations[i].type];
  std::vector<double> busy_s(clocks.size(), 0);
  for (std::size_t type = 0; type < count.size(); ++type) {
    if (count[type] == 0) continue;
    for (std::size_t c = 0; c < clocks.size(); ++c) {
      const auto& options = dag.types[type].options;
      const auto at = std::ranges::find(options, clocks[c], &model::Measurement::clock);
      if (at != options.end()) busy_s[c] += count[type] * at->time.value();
    }
  }
  return busy_s;
}

/// One clock for each rank and iteration: no clock arrives late, and every clock stays long enough.
std::vector<model::FrontierPoint> plan_without_changes(const model::ComputationDag& dag, Seconds switch_latency,
                                                       StopCheck& check) {
  const ClockRuns runs(dag);
  LateClocks late(dag, switch_latency);
  std::vector<model::FrontierPoint> points;
  const model::Plan fastest = runs.fastest_without_changes();
  const auto add = [&](model::Plan plan) {
    const Realizer::Outcome outcome = late.realize(plan);
    points.push_back({outcome.time, {}, outcome.effective_energy, {}, std::move(plan), {}});
  };
  add(fastest);
  std::vector<std::vector<double>> busy_s;
  double least_s = 0, most_s = 0;  // time of the rank that computes longest, at the highest and at the lowest clocks
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    busy_s.push_back(busy_times(dag, rank, runs.clocks(rank)));
    if (busy_s[rank].empty()) continue;
    least_s = std::max(least_s, *std::ranges::min_element(busy_s[rank]));
    most_s = std::max(most_s, *std::ranges::max_element(busy_s[rank]));
  }
  for (int i = 0; i <= kBusyTimes && least_s > 0; ++i) {
    if (check.stop(kOperationsOfOneClock * static_cast<long>(dag.computations.size()))) return {};
    const double busy = least_s * std::pow(most_s / least_s, static_cast<double>(i) / kBusyTimes);
    model::Plan plan = fastest;
    for (int rank = 0; rank < dag.num_ranks(); ++rank) {
      const std::vector<double>& own = busy_s[rank];
      const auto fits = [&](double s) { return s <= busy * (1 + kSameTime); };
      const auto lowest = std::find_if(own.rbegin(), own.rend(), fits);
      if (lowest == own.rend()) continue;
      runs.set(plan, rank, 0, runs.length(rank), runs.clocks(rank)[own.rend() - lowest - 1]);
    }
    add(std::move(plan));
  }
  return points;
}

}  // namespace

Result<model::Frontier> plan_quick(const model::ComputationDag& dag, const PlannerOptions& options, StopCheck& check) {
  const bool limited = options.switch_latency > Seconds(0) || options.min_dwell > Seconds(0);
  model::Frontier frontier;
  frontier.points = limited ? plan_without_changes(dag, options.switch_latency, check) : plan_free(dag, check);
  if (check.stopped()) return planning_stopped();
  keep_pareto(frontier.points);
  Joules least;
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    const std::vector<model::Measurement>& all = dag.type_of(i).options;
    Joules of_one = all.front().energy - dag.blocking_power_of(i) * all.front().time;
    for (const model::Measurement& m : all) of_one = std::min(of_one, m.energy - dag.blocking_power_of(i) * m.time);
    least += of_one;
  }
  frontier.bound.vertices = {{frontier.points.back().time, least}};
  const Joules rounding = kSameTime * least;
  for (model::FrontierPoint& point : frontier.points) {
    const Joules blocking = dag.total_blocking_power() * point.time;
    point.energy = point.effective_energy + blocking;
    point.bound = std::min(point.energy, least + blocking);
    if (point.energy - point.bound <= rounding) point.bound = point.energy;
  }
  return frontier;
}

}  // namespace perseus::planner
