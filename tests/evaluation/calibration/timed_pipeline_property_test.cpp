// The makespans that calibration fits are those of the plan checker and of a simulation of links that queue.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

#include "evaluation/calibration/timed_pipeline.h"
#include "oracles/dice.h"
#include "oracles/link_queue.h"
#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "tests/support/model_samples.h"

namespace perseus::calibration {
namespace {

using testing::ShrinkingDice;

/// A pipeline of 1F1B with a latency per boundary and direction, and computations that each have a time of their own.
struct Instance {
  model::Schedule schedule;
  model::Profile profile;
  LinkModel links;
  std::vector<double> unknowns;  ///< latencies, and the tail
  std::vector<double> durations;

  [[nodiscard]] model::ComputationDag dag(const model::PipelineCosts& costs) const {
    model::ComputationDag dag = model::build_dag(profile, schedule, costs).value();
    std::vector<model::ComputationType> types;
    for (std::size_t c = 0; c < durations.size(); ++c) {
      types.push_back(dag.type_of(static_cast<int>(c)));
      types.back().options = {{Megahertz(1000), Seconds(durations[c]), {}, {}, {}}};
      dag.computations[c].type = static_cast<int>(c);
    }
    dag.types = std::move(types);
    return dag;
  }
  [[nodiscard]] double makespan_s(Sending sending) const {
    return TimedPipeline(model::build_dag(profile, schedule, {}).value(), links, sending)
        .makespans(std::vector{TimedPlan{durations}}, unknowns)[0];
  }
  [[nodiscard]] double checked_s(bool blocking) const {
    const auto latencies = links.latencies(std::span(unknowns).first(links.num_latencies()));
    const model::ComputationDag built = dag({Watts(0), latencies, blocking});
    return checker::run_plan(built, model::Plan(durations.size())).makespan.value();
  }
};

Instance random_instance(testing::Dice& dice) {
  const int ranks = 2 * dice.roll(1, 3);
  Instance instance{model::make_schedule("1f1b", {ranks, dice.roll(1, 10), 1}).value(),
                    testing::profile_for_any_schedule(ranks),
                    {LinkDetail::per_direction, ranks, ranks / 2},
                    {},
                    {}};
  const double longest_s = dice.one_in(2) ? 0.02 : 2;
  for (int k = 0; k < instance.links.num_latencies(); ++k) instance.unknowns.push_back(dice.real(0, longest_s));
  instance.unknowns.push_back(0);
  for (const auto& actions : instance.schedule.ranks) {
    for (std::size_t a = 0; a < actions.size(); ++a) instance.durations.push_back(dice.real(0.1, 1));
  }
  return instance;
}

RC_GTEST_PROP(TimedPipelines, TakeAsLongAsInThePlanChecker, ()) {
  ShrinkingDice dice;
  const Instance instance = random_instance(dice);
  RC_ASSERT(std::abs(instance.makespan_s(Sending::waits) - instance.checked_s(true)) < 1e-9);
  RC_ASSERT(std::abs(instance.makespan_s(Sending::computes) - instance.checked_s(false)) < 1e-9);
}

RC_GTEST_PROP(TimedPipelines, QueueAsSimulatedLinksDo, ()) {
  ShrinkingDice dice;
  const Instance instance = random_instance(dice);
  const model::ComputationDag dag = instance.dag({});
  testing::LinkQueueOracle oracle(dag, instance.durations);
  const double simulated_s =
      oracle.makespan_s([&](int from, int to) { return instance.unknowns[instance.links.latency_of(from, to)]; });
  RC_ASSERT(std::abs(instance.makespan_s(Sending::queues) - simulated_s) < 1e-9);
  RC_ASSERT(instance.makespan_s(Sending::queues) >= instance.makespan_s(Sending::computes));
}

/// Senders that wait at some boundaries wait at the others too if transfers over those take no time.
RC_GTEST_PROP(TimedPipelines, WaitOnlyWhereTheySay, ()) {
  ShrinkingDice dice;
  Instance instance = random_instance(dice);
  const auto keep_only = [&](bool between_nodes) {
    Instance kept = instance;
    for (int b = 0; b < kept.links.num_boundaries(); ++b) {
      if (kept.links.between_nodes(b) == between_nodes) continue;
      kept.unknowns[kept.links.latency_of(b, b + 1)] = kept.unknowns[kept.links.latency_of(b + 1, b)] = 0;
    }
    return kept;
  };
  const Instance between = keep_only(true), within = keep_only(false);
  RC_ASSERT(between.makespan_s(Sending::waits_between_nodes) == between.makespan_s(Sending::waits));
  RC_ASSERT(between.makespan_s(Sending::waits_within_nodes) == between.makespan_s(Sending::computes));
  RC_ASSERT(within.makespan_s(Sending::waits_within_nodes) == within.makespan_s(Sending::waits));
  RC_ASSERT(within.makespan_s(Sending::waits_between_nodes) == within.makespan_s(Sending::computes));
}

/// A plan's makespan does not depend on the others beside it.
RC_GTEST_PROP(TimedPipelines, AreAsLongAlone, ()) {
  ShrinkingDice dice;
  const Instance instance = random_instance(dice);
  const model::ComputationDag dag = model::build_dag(instance.profile, instance.schedule, {}).value();
  TimedPipeline pipeline(dag, instance.links, Sending::queues);
  std::vector<TimedPlan> plans(dice.roll(1, 20), TimedPlan{instance.durations});
  for (TimedPlan& plan : plans) {
    for (double& duration : plan.durations) duration = dice.real(0.1, 1);
  }
  const std::vector<double> together_s = pipeline.makespans(plans, instance.unknowns);
  std::vector<std::vector<double>> gradients;
  for (std::size_t p = 0; p < plans.size(); ++p) gradients.push_back(pipeline.gradient(p));
  RC_ASSERT(together_s.size() == plans.size());
  for (std::size_t p = 0; p < plans.size(); ++p) {
    RC_ASSERT(pipeline.makespans({&plans[p], 1}, instance.unknowns)[0] == together_s[p]);
    RC_ASSERT(pipeline.gradient(0) == gradients[p]);
  }
}

/// The derivative of a convex function is a slope that nowhere leads above it.
RC_GTEST_PROP(TimedPipelines, HaveASubgradient, ()) {
  ShrinkingDice dice;
  const Instance instance = random_instance(dice);
  const model::ComputationDag dag = model::build_dag(instance.profile, instance.schedule, {}).value();
  for (const Sending sending : {Sending::waits, Sending::computes, Sending::queues}) {
    TimedPipeline pipeline(dag, instance.links, sending);
    const std::vector plan{TimedPlan{instance.durations}};
    const double here_s = pipeline.makespans(plan, instance.unknowns)[0];
    const std::vector<double> gradient = pipeline.gradient(0);
    std::vector<double> moved = instance.unknowns;
    double predicted_s = here_s;
    for (std::size_t k = 0; k < moved.size(); ++k) {
      const double step_s = dice.real(-1, 1) * moved[k];
      moved[k] += step_s;
      predicted_s += gradient[k] * step_s;
    }
    RC_ASSERT(pipeline.makespans(plan, moved)[0] >= predicted_s - 1e-9);
  }
}

}  // namespace
}  // namespace perseus::calibration
