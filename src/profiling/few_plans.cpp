#include "profiling/few_plans.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "planner/choices.h"
#include "planner/realise.h"
#include "planner/relaxation.h"
#include "planner/rounding.h"

namespace perseus::profiling {
namespace {

// How much of the price of time slack counts in the rounding; see planner/exact.cpp.
constexpr double kDiscount = 0.7;

}  // namespace

Seconds least_time(const ComputationDag& dag) {
  Plan plan;
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    const std::vector<Measurement>& options = dag.type_of(i).options;
    const auto fastest = std::ranges::min_element(options, {}, &Measurement::time);
    plan.push_back(static_cast<std::uint16_t>(fastest - options.begin()));
  }
  return Realiser(dag).realise(plan).time;
}

Frontier few_plans(const ComputationDag& dag, std::vector<Seconds> deadlines) {
  const Kinds kinds = make_kinds(dag);
  Relaxation relaxation(dag, kinds);
  Rounding rounding(dag, kinds, relaxation);
  Realiser realiser(dag);
  std::ranges::sort(deadlines, std::greater{});
  deadlines.emplace_back(0);  // the sweep goes from T* to T_min, whatever is asked of it
  Frontier frontier;
  for (const Seconds deadline : deadlines) {
    relaxation.lower_deadline(deadline);
    const std::vector<int>& choices = rounding.round(kDiscount);
    FrontierPoint point;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      point.plan.push_back(kinds.sets[kinds.of_computation[i]].pareto[choices[i]].option);
    }
    const Realiser::Outcome outcome = realiser.realise(point.plan);
    point.time = outcome.time;
    point.effective_energy = outcome.effective_energy;
    frontier.points.push_back(std::move(point));
  }
  keep_pareto(frontier.points);
  return frontier;
}

}  // namespace perseus::profiling
