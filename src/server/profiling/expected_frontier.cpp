#include "server/profiling/expected_frontier.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "planning/model/default_plan.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/neighbors.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/realize.h"

namespace perseus::profiling {
namespace {

constexpr long kBuildCost = 100;  // of a DAG, per computation

constexpr int kLoweringRounds = 200;
constexpr double kNoLateness = 1e-9;  ///< of the iteration's time: less is none

/// Times and energies of plans under all draws at once; the last lane is the DAG itself.
class Lanes {
 public:
  Lanes(const model::ComputationDag& dag, const DrawnTypes& draws)
      : dag_(dag),
        realizer_(dag),
        before_(model::neighbors_before_s(dag)),
        after_(model::neighbors_after_s(dag)),
        lanes_(draws.size() + 1),
        time_s_(dag.types.size()),
        energy_j_(dag.types.size()) {
    for (std::size_t type = 0; type < dag.types.size(); ++type) {
      for (std::size_t option = 0; option < dag.types[type].options.size(); ++option) {
        for (std::size_t lane = 0; lane < lanes_; ++lane) {
          const model::ComputationType& drawn = lane + 1 < lanes_ ? draws[lane][type] : dag.types[type];
          time_s_[type].push_back(drawn.options[option].time.value());
          energy_j_[type].push_back(drawn.options[option].energy.value());
        }
      }
    }
    for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
      const auto [steps, added] = shared_steps_.try_emplace(&realizer_.option(i, 0));
      if (added) steps->second = steps_of(i);
      steps_.push_back(&steps->second);
    }
  }

  /// `highest_j`: of everything at maximum clock.
  model::ProfileNoise of(const model::Plan& plan, const std::vector<double>& highest_j) {
    const std::vector<double> makespan_s = makespans_s(plan), energy_j = energies_j(plan);
    const auto [time_s, time_stddev_s] = spread(makespan_s);
    return {Seconds(time_s - makespan_s.back()), Seconds(time_stddev_s), Joules(spread(energy_j).second),
            share_stddev(energy_j, highest_j)};
  }

  /// One standard deviation of the share that the energies are of others, each draw giving both.
  [[nodiscard]] double share_stddev(std::vector<double> energy_j, const std::vector<double>& of_j) const {
    for (std::size_t k = 0; k < energy_j.size(); ++k) energy_j[k] /= of_j[k];
    return spread(energy_j).second;
  }

  /// Of iterations that end at their own times, or wait for the deadline.
  std::vector<double> energies_j(const model::Plan& plan, Seconds deadline = Seconds(0)) {
    std::vector<double> energy_j(lanes_);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const double* own_s = times_s(plan, i);
      const double* own_j = energy_j_[dag_.computations[i].type].data() + plan[i] * lanes_;
      const double waiting_w = dag_.blocking_power_of(static_cast<int>(i)).value();
      for (std::size_t k = 0; k < lanes_; ++k) energy_j[k] += own_j[k] - waiting_w * own_s[k];
    }
    const std::vector<double> makespan_s = makespans_s(plan);
    const double waiting_w = dag_.total_blocking_power().value();
    for (std::size_t k = 0; k < lanes_; ++k) energy_j[k] += waiting_w * std::max(makespan_s[k], deadline.value());
    return energy_j;
  }

  /// Mean and standard deviation over the draws.
  [[nodiscard]] std::pair<double, double> spread(const std::vector<double>& values) const {
    const auto count = static_cast<double>(lanes_ - 1);
    double mean = 0, squares = 0;
    for (std::size_t k = 0; k + 1 < lanes_; ++k) mean += values[k] / count;
    for (std::size_t k = 0; k + 1 < lanes_; ++k) squares += (values[k] - mean) * (values[k] - mean);
    return {mean, std::sqrt(squares / std::max(count - 1, 1.0))};
  }
  /// Gives each computation that decides the end of a draw's iteration, where that is later than at maximum clock, the
  /// next faster clock; `at_once`, or without one: the highest. False: no draw is later.
  bool raise_deciding(model::Plan& plan, const std::vector<double>& highest_s, bool at_once) {
    const std::vector<double> makespan_s = makespans_s(plan);
    const std::vector<double>& end_s = realizer_.ends_s();
    const auto end_of = [&](int i, std::size_t lane) { return end_s[static_cast<std::size_t>(i) * lanes_ + lane]; };
    std::vector<bool> raised(plan.size());
    for (std::size_t lane = 0; lane + 1 < lanes_; ++lane) {
      if (makespan_s[lane] <= model::kSameTime * highest_s[lane]) continue;
      int i = 0;
      for (int other = 1; other < static_cast<int>(plan.size()); ++other) {
        if (end_of(other, lane) > end_of(i, lane)) i = other;
      }
      while (i >= 0) {
        raised[static_cast<std::size_t>(i)] = plan[i] > 0;
        int decides = -1;
        double latest_s = 0;
        for (const model::Neighbor<double>& before : before_.of(i)) {
          const double ready_s = end_of(before.computation, lane) + before.latency;
          if (ready_s <= latest_s) continue;
          latest_s = ready_s;
          decides = before.computation;
        }
        i = decides;
      }
    }
    for (std::size_t i = 0; i < plan.size(); ++i) {
      if (!raised[i]) continue;
      const std::uint16_t faster = next(plan, i, false);
      plan[i] = at_once || faster == plan[i] ? std::uint16_t{0} : faster;
    }
    return std::ranges::find(raised, true) != raised.end();
  }
  /// Gives computations the next slower clocks, one at a time, each where it saves most per mean lateness over the
  /// draws, while the mean time stays within the limit.
  void lower_some(model::Plan& plan, double limit_s, StopCheck& check) {
    std::vector<bool> kept(plan.size());
    for (int round = 0; round < kLoweringRounds && !check.stop(3 * cost()); ++round) {
      const std::vector<double> lateness_s = lateness_of_next_s(plan);
      std::size_t best = plan.size();
      double most = 0;
      for (std::size_t i = 0; i < plan.size(); ++i) {
        const double saving_j = kept[i] ? 0 : saving_of_next_j(plan, i);
        if (saving_j <= 0) continue;
        const double worth = saving_j / std::max(lateness_s[i], kNoLateness * limit_s);
        if (worth <= most) continue;
        most = worth;
        best = i;
      }
      if (best == plan.size()) return;
      const std::uint16_t before = std::exchange(plan[best], next(plan, best, true));
      if (spread(makespans_s(plan)).first <= limit_s) continue;
      plan[best] = before;
      kept[best] = true;
    }
  }
  [[nodiscard]] long cost() const { return static_cast<long>(lanes_ * (dag_.computations.size() + 1)); }

  std::vector<double> makespans_s(const model::Plan& plan) {
    std::vector<const double*> times(plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) times[i] = times_s(plan, i);
    std::vector<double> makespan_s(lanes_);
    realizer_.makespans(times, lanes_, makespan_s.data());
    return makespan_s;
  }

 private:
  [[nodiscard]] const double* times_s(const model::Plan& plan, std::size_t computation) const {
    return time_s_[dag_.computations[computation].type].data() + plan[computation] * lanes_;
  }
  /// Options of the same measurements and blocking power share these.
  struct Steps {
    std::vector<std::uint16_t> faster, slower;
  };
  /// By the means, of the clocks that need less energy the fastest (`slower`), or of the faster clocks the one that
  /// needs least: clocks that others beat in both are skipped. The plan's own clock if there is none.
  [[nodiscard]] std::uint16_t next(const model::Plan& plan, std::size_t i, bool slower) const {
    return (slower ? steps_[i]->slower : steps_[i]->faster)[plan[i]];
  }
  [[nodiscard]] Steps steps_of(int computation) const {
    const int options = static_cast<int>(dag_.type_of(computation).options.size());
    const auto next_of = [&](int own, bool slower) {
      const auto worse = [&](int option, bool in_time) {
        const planner::Realizer::Option& one = realizer_.option(computation, option);
        return in_time ? one.time_s : one.effective_j;
      };
      int best = own;
      for (int option = 0; option < options; ++option) {
        if (worse(option, !slower) >= worse(own, !slower)) continue;
        if (best == own || worse(option, slower) < worse(best, slower)) best = option;
      }
      return static_cast<std::uint16_t>(best);
    };
    Steps steps;
    for (int own = 0; own < options; ++own) {
      steps.faster.push_back(next_of(own, false));
      steps.slower.push_back(next_of(own, true));
    }
    return steps;
  }
  [[nodiscard]] double saving_of_next_j(const model::Plan& plan, std::size_t i) const {
    const auto effective_j = [&](int option) { return realizer_.option(static_cast<int>(i), option).effective_j; };
    return effective_j(plan[i]) - effective_j(next(plan, i, true));
  }
  /// Per computation: the mean over the draws of what the next slower clock adds to the iteration's time.
  std::vector<double> lateness_of_next_s(const model::Plan& plan) {
    const std::vector<double> makespan_s = makespans_s(plan);
    const std::vector<double>& end_s = realizer_.ends_s();
    std::vector<double> late_s(plan.size()), latest_start_s;
    std::vector<const double*> next_s(plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) {
      next_s[i] = time_s_[dag_.computations[i].type].data() + next(plan, i, true) * lanes_;
    }
    for (std::size_t lane = 0; lane + 1 < lanes_; ++lane) {
      const auto duration_s = [&](int i) { return times_s(plan, static_cast<std::size_t>(i))[lane]; };
      model::latest_starts(after_, duration_s, makespan_s[lane], latest_start_s);
      for (std::size_t i = 0; i < plan.size(); ++i) {
        const double own_s = times_s(plan, i)[lane];
        const double slack_s = latest_start_s[i] + own_s - end_s[i * lanes_ + lane];
        const double longer_s = next_s[i][lane] - own_s;
        late_s[i] += std::max(0.0, longer_s - slack_s) / static_cast<double>(lanes_ - 1);
      }
    }
    return late_s;
  }
  const model::ComputationDag& dag_;
  planner::Realizer realizer_;
  model::Neighbors<double> before_, after_;
  std::size_t lanes_;
  std::vector<std::vector<double>> time_s_, energy_j_;  // [type][option * lanes + lane]
  std::map<const planner::Realizer::Option*, Steps> shared_steps_;
  std::vector<const Steps*> steps_;  // per computation
};

// Rounds that raise clocks by one step; later ones raise them to the highest, so that the rounds end soon.
constexpr int kFineRounds = 128;
constexpr int kOffered = 16;  ///< every so many rounds, the plan on the way is offered

}  // namespace

Result<DrawnTypes> drawn_types(const std::vector<model::Profile>& draws, std::optional<double> split,
                               const model::Schedule& schedule, const model::PipelineCosts& costs, StopCheck& check) {
  DrawnTypes all;
  for (const model::Profile& draw : draws) {
    const Result<model::Profile> profile = split ? model::split_backward(draw, *split) : Result<model::Profile>(draw);
    if (!profile) return profile.error();
    Result<model::ComputationDag> dag = model::build_dag(*profile, schedule, costs);
    if (!dag) return dag.error();
    if (check.stop(kBuildCost * static_cast<long>(dag->computations.size()))) return planning_stopped();
    all.push_back(std::move(dag->types));
  }
  return all;
}

Result<model::Frontier> expected_frontier(const model::ComputationDag& dag, const DrawnTypes& draws,
                                          model::Frontier frontier, StopCheck& check) {
  if (draws.empty()) return frontier;
  Lanes lanes(dag, draws);
  const Watts waiting = dag.total_blocking_power();
  const model::Plan highest = model::all_maximum_clock(dag);
  const std::vector<double> highest_j = lanes.energies_j(highest);
  frontier.maximum_clock_noise = lanes.of(highest, highest_j);
  const auto expect = [&](model::FrontierPoint& point) {
    point.noise = lanes.of(point.plan, highest_j);
    point.time += point.noise.lateness;
    point.energy += waiting * point.noise.lateness;
    point.bound = frontier.bound.at(point.time) + waiting * point.time;
  };
  for (model::FrontierPoint& point : frontier.points) {
    expect(point);
    if (check.stop(lanes.cost())) return planning_stopped();
  }
  planner::Realizer realizer(dag);
  const Seconds t_max = realizer.realize(highest).time + frontier.maximum_clock_noise.lateness;
  const auto in_time = [&](const model::FrontierPoint& point) { return point.time <= model::kSameTime * t_max; };
  if (std::ranges::none_of(frontier.points, in_time)) {
    const bool limited = std::ranges::any_of(
        frontier.points, [](const model::FrontierPoint& point) { return point.clock_limit_cost > Joules(0); });
    const auto fastest = std::ranges::min_element(frontier.points, {}, &model::FrontierPoint::time);
    const auto offer = [&](const model::Plan& plan) {
      const planner::Realizer::Outcome outcome = realizer.realize(plan);
      model::FrontierPoint point{
          outcome.time, outcome.effective_energy + waiting * outcome.time, outcome.effective_energy, {}, plan};
      expect(point);
      frontier.points.push_back(std::move(point));
    };
    // Where clocks arrive late or have to stay, only a plan without changes is known to be what it claims.
    model::Plan plan = limited ? highest : fastest->plan;
    const std::vector<double> highest_s = lanes.makespans_s(highest);
    for (int round = 1; lanes.raise_deciding(plan, highest_s, round >= kFineRounds); ++round) {
      if (round % kOffered == 0) offer(plan);
      if (check.stop(lanes.cost())) return planning_stopped();
    }
    offer(plan);
    if (!limited) {
      lanes.lower_some(plan, t_max.value(), check);
      if (check.stopped()) return planning_stopped();
      offer(plan);
    }
    offer(highest);
  }
  planner::keep_pareto(frontier.points);
  return frontier;
}

double saving_stddev(const model::ComputationDag& dag, const DrawnTypes& draws, const model::Plan& plan,
                     std::optional<Seconds> deadline) {
  Lanes lanes(dag, draws);
  const Seconds end = deadline.value_or(Seconds(0));
  return lanes.share_stddev(lanes.energies_j(plan, end), lanes.energies_j(model::all_maximum_clock(dag), end));
}

}  // namespace perseus::profiling
