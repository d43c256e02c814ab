// Dependencies of transfers that queue: a plan takes as long as in a simulation of links with queues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/link_queue.h"
#include "planning/checker/certificate_check.h"
#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/queued_transfers.h"
#include "planning/planner/exact.h"
#include "tests/support/model_samples.h"

namespace perseus::model {
namespace {

using testing::ShrinkingDice;

struct Instance {
  Profile profile;
  Schedule schedule;
  TransferLatency latency;

  [[nodiscard]] ComputationDag dag(bool serial) const {
    return build_dag(profile, schedule, {Watts(70), latency, false, serial}).value();
  }
  [[nodiscard]] double simulated_s(const Plan& plan) const {
    const ComputationDag free = build_dag(profile, schedule, {}).value();
    std::vector<double> durations_s;
    for (std::size_t c = 0; c < plan.size(); ++c) {
      durations_s.push_back(free.type_of(static_cast<int>(c)).options[plan[c]].time.value());
    }
    return testing::LinkQueueOracle(free, durations_s).makespan_s([&](int from, int to) {
      return latency.between(from, to, free.num_ranks()).value().value();
    });
  }
};

Instance random_instance(testing::Dice& dice) {
  const auto names = schedule_names();
  const std::string name = names[dice.roll(0, static_cast<int>(names.size()) - 1)];
  const int fixed = chunks_fixed_by(name), chunks = fixed != 0 ? fixed : usual_chunks(name);
  const int ranks = dice.roll(2, 4);
  Result<Schedule> schedule = make_schedule(name, {ranks, ranks * dice.roll(1, 4), chunks});
  if (!schedule) schedule = make_schedule("1f1b", {ranks, ranks, 1});
  Profile profile = testing::random_profile(dice, *schedule, 4, Watts(70));
  double longest_s = 0;
  for (const ProfileEntry& entry : profile.entries) {
    for (const Measurement& m : entry.measurements) longest_s = std::max(longest_s, m.time.value());
  }
  std::vector<BoundaryLatency> boundaries;
  for (int b = 0; b < (ranks > 2 ? ranks : ranks - 1); ++b) {
    const double most_s = longest_s * (dice.one_in(3) ? 4 : 1);
    boundaries.push_back({Seconds(dice.real(0, most_s)), Seconds(dice.real(0, most_s))});
  }
  return {std::move(profile), *std::move(schedule), TransferLatency(std::move(boundaries))};
}

RC_GTEST_PROP(QueuedTransfers, PlansTakeAsLongAsSimulatedLinksWithQueues, ()) {
  ShrinkingDice dice;
  const Instance instance = random_instance(dice);
  const ComputationDag dag = instance.dag(true);
  RC_ASSERT(dag.validate().ok());
  const Plan plan = testing::random_plan(dice, dag);
  const double found_s = checker::run_plan(dag, plan).makespan.value(), simulated_s = instance.simulated_s(plan);
  RC_ASSERT(std::abs(found_s - simulated_s) <= 1e-9 * simulated_s);
  RC_ASSERT(found_s >= checker::run_plan(instance.dag(false), plan).makespan.value() - 1e-9 * found_s);
}

RC_GTEST_PROP(QueuedTransfers, FrontiersHoldInTheSimulation, ()) {
  ShrinkingDice dice;
  const Instance instance = random_instance(dice);
  const Frontier frontier = planner::plan_exact(instance.dag(true));
  for (const FrontierPoint& point : frontier.points) {
    RC_ASSERT(std::abs(instance.simulated_s(point.plan) - point.time.value()) <= 1e-9 * point.time.value());
  }
}

TEST(QueuedTransfers, CannotBindWhereComputationsTakeLonger) {
  const Schedule schedule = make_schedule("1f1b", {4, 12, 1}).value();
  const Profile profile = testing::profile_for_any_schedule(4);  // 1 s, 2 s
  const auto dependencies = [&](Seconds latency, bool serial) {
    return build_dag(profile, schedule, {Watts(70), latency, false, serial})->dependencies.size();
  };
  EXPECT_EQ(dependencies(Seconds(0.8), true), dependencies(Seconds(0.8), false));
  // Longer than a forward: only those of the forwards before the first backward and of the last backwards queue.
  EXPECT_EQ(dependencies(Seconds(1.5), true), dependencies(Seconds(1.5), false) + 4);
  EXPECT_GT(dependencies(Seconds(5), true), dependencies(Seconds(5), false) + 100);
}

TEST(QueuedTransfers, AreTooManyForThousandsOfSlowTransfers) {
  const Schedule schedule = make_schedule("1f1b", {2, 2000, 1}).value();
  const auto dag = build_dag(testing::profile_for_any_schedule(2), schedule, {Watts(70), Seconds(20), false, true});
  ASSERT_FALSE(dag);
  EXPECT_THAT(dag.error().message, ::testing::HasSubstr("the 2000 from rank 0 to rank 1 of 20 s each"));
}

}  // namespace
}  // namespace perseus::model
