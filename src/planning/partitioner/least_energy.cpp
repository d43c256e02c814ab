#include "planning/partitioner/least_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/neighbors.h"
#include "planning/model/schedule.h"
#include "planning/partitioner/balance.h"
#include "planning/partitioner/stage_profile.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"

namespace perseus::partitioner {
namespace {

/// Differences below this are rounding errors.
constexpr double kNoise = 1e-9;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

Result<model::ComputationDag> one_f_one_b(const model::Profile& profile, const EnergyGoal& goal) {
  const auto schedule = model::make_schedule("1f1b", {profile.num_stages(), goal.microbatches, 1});
  if (!schedule) return schedule.error();
  return model::build_dag(profile, *schedule, {goal.blocking_power, Seconds(0)});
}

/// The pipeline of one partition after another.
class Candidates {
 public:
  Candidates(const std::vector<model::Layer>& layers, const EnergyGoal& goal) : layers_(layers), goal_(goal) {}

  /// Iteration time with every computation at its fastest; infinite for an impossible partition. O(computations).
  Seconds fastest(const Partition& partition) {
    if (!make_dag(partition)) return Seconds(kInfinite);
    std::vector<Seconds> of_type;
    of_type.reserve(dag_.types.size());
    for (const model::ComputationType& type : dag_.types) {
      of_type.push_back(std::ranges::min_element(type.options, {}, &model::Measurement::time)->time);
    }
    return model::longest_path(
        before_, [&](int i) { return of_type[dag_.computations[i].type]; }, end_);
  }

  Joules energy(const Partition& partition, Seconds deadline) {
    const auto [bound, is_new] = bounds_.try_emplace(partition.boundaries);
    if (is_new) {
      PERSEUS_CHECK(make_dag(partition), "only possible partitions are planned");
      bound->second = planner::compute_lower_bound(dag_).bound;
    }
    return bound->second.at(deadline) + dag_.total_blocking_power() * deadline;
  }

  /// Number of partitions planned so far.
  [[nodiscard]] int planned() const { return static_cast<int>(bounds_.size()); }

  /// Why the first impossible partition is impossible; nullopt: all were possible.
  [[nodiscard]] const std::optional<Error>& refusal() const { return refusal_; }

 private:
  /// Sets dag_ and before_ to those of the partition; false: it is impossible.
  bool make_dag(const Partition& partition) {
    const Result<model::Profile> profile = profile_of(layers_, partition);
    PERSEUS_CHECK(profile.ok(), "the first partition had a profile");
    if (!goal_.make_dag && !dag_.types.empty()) {  // 1F1B always has the same shape
      for (model::ComputationType& type : dag_.types)
        type.options = profile->find(type.stage, type.instruction)->measurements;
      return true;
    }
    Result<model::ComputationDag> dag =
        goal_.make_dag ? goal_.make_dag(partition, *profile) : one_f_one_b(*profile, goal_);
    if (!dag) {
      if (!refusal_) refusal_ = dag.error();
      return false;
    }
    dag_ = *std::move(dag);
    before_ = model::neighbors_before<Seconds>(dag_, &model::Dependency::latency);
    return true;
  }

  const std::vector<model::Layer>& layers_;
  const EnergyGoal& goal_;
  model::ComputationDag dag_;
  model::Neighbors<Seconds> before_;
  std::optional<Error> refusal_;
  std::vector<Seconds> end_;
  std::map<std::vector<int>, model::LowerBound> bounds_;
};

/// Number of partitions, or `limit` + 1 if there are more.
long count_partitions(int layers, int stages, long limit) {
  double count = 1;
  for (int i = 1; i < stages; ++i) {
    count = count * (layers - i) / i;
    if (count > 1e15) break;
  }
  return count > static_cast<double>(limit) ? limit + 1 : std::lround(count);
}

/// All partitions, larger earlier stages first.
void list_partitions(int layers, int stages, std::vector<int>& begun, std::vector<Partition>& all) {
  const int left = stages - static_cast<int>(begun.size());
  if (left == 0) {
    begun.push_back(layers);
    all.push_back({begun});
    begun.pop_back();
    return;
  }
  for (int next = layers - left; next > begun.back(); --next) {
    begun.push_back(next);
    list_partitions(layers, stages, begun, all);
    begun.pop_back();
  }
}

/// Moves one layer from a stage to another and shifts the stages between them; larger earlier stages first.
std::vector<Partition> neighbors(const Partition& partition) {
  std::vector<Partition> all;
  for (const int shift : {1, -1}) {
    for (int first = 1; first < partition.num_stages(); ++first) {
      Partition moved = partition;
      for (int last = first; last < partition.num_stages(); ++last) {
        moved.boundaries[last] += shift;
        const auto& b = moved.boundaries;
        if (std::ranges::adjacent_find(b, std::greater_equal()) == b.end()) all.push_back(moved);
      }
    }
  }
  return all;
}

std::vector<Partition> balanced_starts(const std::vector<model::Layer>& layers, int stages) {
  std::vector<Seconds> forward;
  std::vector<Seconds> both;
  for (const model::Layer& layer : layers) {
    forward.push_back(layer.costs.front().forward);
    both.push_back(layer.costs.front().forward + layer.costs.front().backward);
  }
  std::vector<Partition> starts;
  for (const auto& latencies : {both, forward}) {
    for (const Balance balance : {Balance::longest_stage, Balance::imbalance}) {
      const auto partition = balance_layers(latencies, stages, balance);
      if (partition) starts.push_back(*partition);
    }
  }
  return starts;
}

Partition descend_to_least_time(Candidates& candidates, const std::vector<Partition>& starts) {
  Partition best = *std::ranges::min_element(starts, {}, [&](const Partition& p) { return candidates.fastest(p); });
  for (Seconds time = candidates.fastest(best);;) {
    const Seconds before = time;
    for (Partition& next : neighbors(best)) {
      if (const Seconds faster = candidates.fastest(next); faster < time * (1 - kNoise)) {
        time = faster;
        best = std::move(next);
        break;
      }
    }
    if (time == before) return best;
  }
}

}  // namespace

Result<LeastEnergy> least_energy(const std::vector<model::Layer>& layers, int stages, const EnergyGoal& goal) {
  const auto first = balance_layers(model::forward_latencies(layers), stages);
  if (!first) return first.error();
  const auto profile = profile_of(layers, *first);
  if (!profile) return profile.error();
  Candidates candidates(layers, goal);

  LeastEnergy answer;
  const int num_layers = static_cast<int>(layers.size());
  answer.all_tried = count_partitions(num_layers, stages, goal.max_planned) <= goal.max_planned;
  std::vector<Partition> starts;
  if (answer.all_tried) {
    std::vector<int> begun{0};
    list_partitions(num_layers, stages, begun, starts);
  } else {
    starts = balanced_starts(layers, stages);
    starts.insert(starts.end(), goal.starts.begin(), goal.starts.end());
    starts.push_back(descend_to_least_time(candidates, starts));
  }
  Seconds least_time = candidates.fastest(starts.front());
  for (const Partition& start : starts) least_time = std::min(least_time, candidates.fastest(start));
  if (!std::isfinite(least_time.value())) {
    const Error& refusal = *candidates.refusal();
    return Error{refusal.code, fmt::format("no partition{} is possible; one of them: {}",
                                           answer.all_tried ? "" : " that was tried", refusal.message)};
  }
  answer.deadline = goal.deadline.value_or(least_time);
  if (answer.deadline < least_time) {
    return Error{ErrorCode::invalid_input, fmt::format("no partition {} finishes in {} s; the fastest takes {} s",
                                                       answer.all_tried ? "at all" : "that was tried",
                                                       answer.deadline.value(), least_time.value())};
  }

  const Seconds in_time = answer.deadline * (1 + kNoise);
  const int most = answer.all_tried ? static_cast<int>(starts.size()) : goal.max_planned;
  const auto consider = [&](const Partition& partition) {
    if (candidates.planned() >= goal.max_planned || candidates.fastest(partition) > in_time) return false;
    const Joules energy = candidates.energy(partition, answer.deadline);
    if (goal.progress) goal.progress(static_cast<double>(candidates.planned()) / most);
    if (!answer.partition.boundaries.empty() && energy >= answer.energy * (1 - kNoise)) return false;
    answer.partition = partition;
    answer.energy = energy;
    return true;
  };
  for (const Partition& start : starts) consider(start);
  for (bool improved = !answer.all_tried; improved;) {
    improved = false;
    for (const Partition& next : neighbors(answer.partition)) improved |= consider(next);
  }
  answer.planned = candidates.planned();
  answer.fastest = candidates.fastest(answer.partition);
  answer.balanced = *first;
  answer.balanced_fastest = candidates.fastest(*first);
  answer.balanced_energy = std::isfinite(answer.balanced_fastest.value())
                               ? candidates.energy(*first, std::max(answer.deadline, answer.balanced_fastest))
                               : Joules(kInfinite);
  return answer;
}

}  // namespace perseus::partitioner
