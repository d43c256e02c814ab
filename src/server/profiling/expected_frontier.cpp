#include "server/profiling/expected_frontier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planning/model/build_dag.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/realize.h"

namespace perseus::profiling {
namespace {

constexpr long kBuildCost = 100;  // of a DAG, per computation

/// Times and energies of plans under all draws at once; the last lane is the DAG itself.
class Lanes {
 public:
  Lanes(const model::ComputationDag& dag, const DrawnTypes& draws)
      : dag_(dag), realizer_(dag), lanes_(draws.size() + 1), time_s_(dag.types.size()), energy_j_(dag.types.size()) {
    for (std::size_t type = 0; type < dag.types.size(); ++type) {
      for (std::size_t option = 0; option < dag.types[type].options.size(); ++option) {
        for (std::size_t lane = 0; lane < lanes_; ++lane) {
          const model::ComputationType& drawn = lane + 1 < lanes_ ? draws[lane][type] : dag.types[type];
          time_s_[type].push_back(drawn.options[option].time.value());
          energy_j_[type].push_back(drawn.options[option].energy.value());
        }
      }
    }
  }

  model::ProfileNoise of(const model::Plan& plan) {
    std::vector<const double*> times(plan.size());
    std::vector<double> makespan_s(lanes_), energy_j(lanes_);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const int type = dag_.computations[i].type;
      times[i] = time_s_[type].data() + plan[i] * lanes_;
      const double* own_j = energy_j_[type].data() + plan[i] * lanes_;
      const double waiting_w = dag_.blocking_power_of(static_cast<int>(i)).value();
      for (std::size_t k = 0; k < lanes_; ++k) energy_j[k] += own_j[k] - waiting_w * times[i][k];
    }
    realizer_.makespans(times, lanes_, makespan_s.data());
    const double waiting_w = dag_.total_blocking_power().value();
    for (std::size_t k = 0; k < lanes_; ++k) energy_j[k] += waiting_w * makespan_s[k];
    const auto [time_s, time_stddev_s] = spread(makespan_s);
    return {Seconds(time_s - makespan_s.back()), Seconds(time_stddev_s), Joules(spread(energy_j).second)};
  }
  [[nodiscard]] long cost() const { return static_cast<long>(lanes_ * (dag_.computations.size() + 1)); }

 private:
  /// Mean and standard deviation over the draws.
  [[nodiscard]] std::pair<double, double> spread(const std::vector<double>& values) const {
    const auto count = static_cast<double>(lanes_ - 1);
    double mean = 0, squares = 0;
    for (std::size_t k = 0; k + 1 < lanes_; ++k) mean += values[k] / count;
    for (std::size_t k = 0; k + 1 < lanes_; ++k) squares += (values[k] - mean) * (values[k] - mean);
    return {mean, std::sqrt(squares / std::max(count - 1, 1.0))};
  }

  const model::ComputationDag& dag_;
  planner::Realizer realizer_;
  std::size_t lanes_;
  std::vector<std::vector<double>> time_s_, energy_j_;  // [type][option * lanes + lane]
};

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
  frontier.maximum_clock_noise = lanes.of(model::all_maximum_clock(dag));
  for (model::FrontierPoint& point : frontier.points) {
    point.noise = lanes.of(point.plan);
    point.time += point.noise.lateness;
    point.energy += waiting * point.noise.lateness;
    point.bound = frontier.bound.at(point.time) + waiting * point.time;
    if (check.stop(lanes.cost())) return planning_stopped();
  }
  planner::keep_pareto(frontier.points);
  return frontier;
}

}  // namespace perseus::profiling
