// Simulations worked out by hand.
#include "planning/checker/plan_run.h"

#include <gtest/gtest.h>

#include "planning/checker/clock_changes.h"

namespace perseus::checker {
namespace {

model::Measurement at(int clock_mhz, double time_s, double energy_j) {
  return {Megahertz(clock_mhz), Seconds(time_s), Joules(energy_j), {}, {}, 1};
}

/// F0 -> F1 -> B1 -> B0 on two ranks of one accelerator, 10 W while waiting, half a second per transfer.
model::ComputationDag two_ranks() {
  model::ComputationDag dag;
  dag.types = {{0, "forward", {at(1000, 1, 100), at(500, 2, 70)}},
               {1, "forward", {at(1000, 2, 200), at(500, 4, 150)}},
               {1, "backward", {at(1000, 3, 300), at(500, 6, 200)}},
               {0, "backward", {at(1000, 4, 400), at(500, 8, 300)}}};
  dag.computations = {{0, 0, 0}, {1, 1, 0}, {2, 1, 0}, {3, 0, 0}};
  dag.dependencies = {{0, 1, Seconds(0.5)}, {1, 2, Seconds(0)}, {2, 3, Seconds(0.5)}, {0, 3, Seconds(0)}};
  dag.rank_order = {{0, 3}, {1, 2}};
  dag.accelerators = {1, 1};
  dag.blocking_power = Watts(10);
  return dag;
}

/// One rank that runs its computations one after the other, one type each.
model::ComputationDag one_rank(std::vector<std::vector<model::Measurement>> options) {
  model::ComputationDag dag;
  dag.rank_order.resize(1);
  dag.accelerators = {1};
  dag.blocking_power = Watts(10);
  for (int i = 0; i < static_cast<int>(options.size()); ++i) {
    dag.types.push_back({-1, "task", options[i]});
    dag.computations.push_back({i, 0, -1});
    dag.rank_order[0].push_back(i);
    if (i > 0) dag.dependencies.push_back({i - 1, i, Seconds(0)});
  }
  return dag;
}

TEST(PlanRun, RunsTwoRanksAndTransfers) {
  const model::ComputationDag dag = two_ranks();
  ASSERT_TRUE(dag.validate().ok());
  const PlanRun s = run_plan(dag, {0, 0, 0, 0});
  EXPECT_DOUBLE_EQ(s.makespan.value(), 1 + 0.5 + 2 + 3 + 0.5 + 4);
  EXPECT_DOUBLE_EQ(s.start[1].value(), 1.5);
  EXPECT_DOUBLE_EQ(s.end[2].value(), 6.5);
  EXPECT_DOUBLE_EQ(s.start[3].value(), 7);
  EXPECT_DOUBLE_EQ(s.busy[0].value(), 5);
  EXPECT_DOUBLE_EQ(s.busy[1].value(), 5);
  EXPECT_DOUBLE_EQ(s.computing_energy.value(), 1000);
  EXPECT_DOUBLE_EQ(s.effective_energy.value(), 1000 - 10 * 10);
  EXPECT_DOUBLE_EQ(s.energy.value(), 1000 + 10 * (11 - 5) + 10 * (11 - 5));
}

TEST(PlanRun, ChoosesTheOptionsOfThePlan) {
  const PlanRun s = run_plan(two_ranks(), {1, 0, 1, 0});
  EXPECT_DOUBLE_EQ(s.makespan.value(), 2 + 0.5 + 2 + 6 + 0.5 + 4);
  EXPECT_DOUBLE_EQ(s.computing_energy.value(), 70 + 200 + 200 + 400);
}

TEST(PlanRun, CountsBlockingPowerOncePerAccelerator) {
  model::ComputationDag dag = two_ranks();
  dag.accelerators = {1, 8};
  const PlanRun s = run_plan(dag, {0, 0, 0, 0});
  EXPECT_DOUBLE_EQ(s.effective_energy.value(), 1000 - 10 * 5 - 80 * 5);
  EXPECT_DOUBLE_EQ(s.energy.value(), 1000 + 10 * (11 - 5) + 80 * (11 - 5));
}

TEST(PlanRun, KeepsARanksOrderEvenIfALaterComputationCouldRun) {
  // Rank 1 runs computation 1 (which waits for rank 0) before computation 2 (which waits for nothing).
  model::ComputationDag dag;
  dag.types = {{-1, "task", {at(1000, 5, 1)}}};
  dag.computations = {{0, 0, -1}, {0, 1, -1}, {0, 1, -1}};
  dag.dependencies = {{0, 1, Seconds(0)}, {1, 2, Seconds(0)}};
  dag.rank_order = {{0}, {1, 2}};
  dag.accelerators = {1, 1};
  EXPECT_DOUBLE_EQ(run_plan(dag, {0, 0, 0}).makespan.value(), 15);
}

TEST(PlanRun, CanBeRunAgain) {
  const model::ComputationDag dag = two_ranks();
  PlanRunner runner(dag);
  const PlanRun first = runner.run({0, 0, 0, 0});
  (void)runner.run({1, 1, 1, 1}, {Seconds(0.25)});
  const PlanRun again = runner.run({0, 0, 0, 0});
  EXPECT_EQ(first.makespan, again.makespan);
  EXPECT_EQ(first.energy, again.energy);
}

TEST(PlanRun, ErrorsNameTheMismatch) {
  const model::ComputationDag dag = two_ranks();
  EXPECT_TRUE(plan_fits(dag, {0, 1, 0, 1}).ok());
  const Status short_plan = plan_fits(dag, {0, 0});
  ASSERT_FALSE(short_plan.ok());
  EXPECT_EQ(short_plan.error().message, "plan has 2 options; the pipeline has 4 computations");
  const Status no_such_option = plan_fits(dag, {0, 0, 2, 0});
  ASSERT_FALSE(no_such_option.ok());
  EXPECT_EQ(no_such_option.error().message, "option 2 of computation 2 (backward of stage 1): must be below 2");
}

TEST(LateClocks, OldClockRunsUntilTheNewOneArrives) {
  // A at 1000 MHz for 4 s, then B: 2 s at 1000 MHz, 4 s at 500 MHz. The request for 500 is made at 4 s and arrives at
  // 5 s: B has done half of its work at 1000 MHz and needs 2 s for the rest. B ends at 7, with a request for 1000: it
  // arrives at 8, one second into the next iteration, in which A does 1/8 of its work at 500 MHz (8 s) and ends at 4.5.
  const model::ComputationDag dag =
      one_rank({{at(1000, 4, 400), at(500, 8, 240)}, {at(1000, 2, 200), at(500, 4, 120)}});
  const PlanRun s = run_plan(dag, {0, 1}, {Seconds(1)});
  EXPECT_DOUBLE_EQ(s.end[0].value(), 4.5);
  EXPECT_DOUBLE_EQ(s.makespan.value(), 4.5 + 1 + 2);
  EXPECT_DOUBLE_EQ(s.computing_energy.value(), 240.0 / 8 + 400.0 * 7 / 8 + 100 + 60);
  EXPECT_DOUBLE_EQ(s.effective_energy.value(), s.computing_energy.value() - 10 * 7.5);
}

TEST(LateClocks, WaitingHidesTheLatency) {
  // Both ranks wait long enough between their computations of different clocks.
  const model::ComputationDag dag = two_ranks();
  const model::Plan plan = {0, 0, 0, 1};  // rank 0: 1000 MHz, waits from 1 s to 7 s, 500 MHz until 15 s
  const PlanRun on_time = run_plan(dag, plan);
  // 500 -> 1000 MHz is requested at the iteration's very end, so that F0 starts late by it: 1 s at 1000, 2 s at 500.
  const PlanRun late = run_plan(dag, plan, {Seconds(0.5)});
  EXPECT_DOUBLE_EQ(late.end[0].value(), 0.5 + 0.75);
  EXPECT_DOUBLE_EQ(late.makespan.value(), on_time.makespan.value() + 0.25);
  EXPECT_DOUBLE_EQ(late.busy[0].value(), on_time.busy[0].value() + 0.25);
}

TEST(LateClocks, SameClockEverywhereIsNeverLate) {
  const model::ComputationDag dag = two_ranks();
  const PlanRun on_time = run_plan(dag, {1, 1, 1, 1});
  const PlanRun late = run_plan(dag, {1, 1, 1, 1}, {Seconds(100)});
  EXPECT_EQ(late.makespan, on_time.makespan);
  EXPECT_EQ(late.energy, on_time.energy);
}

TEST(LateClocks, ConstantTimeOperationsNeitherNeedNorCauseChanges) {
  // 1000 MHz, a constant-time operation of 3 s, 500 MHz: requested when the first ends, set when the last starts.
  const model::ComputationDag dag =
      one_rank({{at(1000, 1, 10), at(500, 2, 5)}, {at(0, 3, 1)}, {at(1000, 1, 10), at(500, 2, 5)}});
  const PlanRun s = run_plan(dag, {0, 0, 1}, {Seconds(2)});
  EXPECT_DOUBLE_EQ((s.end[1] - s.start[1]).value(), 3);
  EXPECT_DOUBLE_EQ((s.end[2] - s.start[2]).value(), 2);
  EXPECT_DOUBLE_EQ(s.end[0].value(), 2);  // in the second iteration all of the first computation runs at 500 MHz
}

TEST(LateClocks, RunsAtTheNearestMeasuredClockThatIsNotFaster) {
  // B was not measured at A's 900 MHz: it runs as at 800 MHz. C was measured above it only: it runs as at 1200 MHz.
  const model::ComputationDag dag = one_rank({{at(900, 1, 9)},
                                              {at(1000, 1, 10), at(800, 2, 8), at(600, 4, 6)},
                                              {at(900, 1, 9)},
                                              {at(1400, 1, 14), at(1200, 2, 12)}});
  const PlanRun s = run_plan(dag, {0, 0, 0, 0}, {Seconds(50)});  // no clock but A's arrives within an iteration
  EXPECT_DOUBLE_EQ((s.end[1] - s.start[1]).value(), 2);
  EXPECT_DOUBLE_EQ((s.end[3] - s.start[3]).value(), 2);
}

TEST(LateClocks, ARequestDuringAChangeWaitsForItsEnd) {
  // Requests: 500 at 1 s (arrives 2.5), 250 at the end of B. B runs from 1 s at 1000 MHz for its 1 s: ends at 2 s.
  // C starts at 2 s at 1000 MHz, at 2.5 s the clock is 500 and the change to 250 begins, at 4 s it is 250.
  const std::vector<model::Measurement> task = {at(1000, 1, 10), at(500, 2, 8), at(250, 4, 7)};
  const std::vector<model::Measurement> long_task = {at(1000, 10, 100), at(500, 20, 80), at(250, 40, 70)};
  // The last computation, a long constant one, makes the first clock arrive in time for the next iteration.
  const model::ComputationDag dag = one_rank({task, task, long_task, {at(0, 10, 1)}});
  const PlanRun s = run_plan(dag, {0, 1, 2, 0}, {Seconds(1.5)});
  EXPECT_DOUBLE_EQ(s.end[0].value(), 1);
  EXPECT_DOUBLE_EQ(s.end[1].value(), 2);
  const double work_left = 1 - 0.5 / 10 - 1.5 / 20;
  EXPECT_DOUBLE_EQ(s.end[2].value(), 4 + work_left * 40);
}

TEST(LateClocks, ARequestThatWaitsIsReplacedByTheNext) {
  // 500 is requested at 1 s and arrives at 6. 250, requested at 2 s, waits and is replaced at 3 s by 1000, which
  // arrives at 11: C ends at 3 s, and D does 3 s of work until 6, 2.5 s until 11, and the other 4.5 s after that.
  const std::vector<model::Measurement> task = {at(1000, 1, 10), at(500, 2, 8), at(250, 4, 7)};
  const std::vector<model::Measurement> long_task = {at(1000, 10, 100), at(500, 20, 80), at(250, 40, 70)};
  const model::ComputationDag dag = one_rank({task, task, task, long_task});
  const PlanRun s = run_plan(dag, {0, 1, 2, 0}, {Seconds(5)});
  EXPECT_DOUBLE_EQ(s.end[2].value(), 3);
  EXPECT_DOUBLE_EQ(s.end[3].value(), 11 + 4.5);
}

TEST(ClockChanges, CountsAroundTheEndOfTheIteration) {
  const model::ComputationDag dag = two_ranks();
  const model::Plan plan = {0, 0, 0, 1};
  const PlanRun s = run_plan(dag, plan);
  const std::vector<ClockChanges> changes = count_clock_changes(dag, plan, s);
  ASSERT_EQ(changes.size(), 2u);
  // Rank 0 requests 500 MHz at 1 s and 1000 MHz at its end, 15 s; the next request is 1 s after that.
  EXPECT_EQ(changes[0].count, 2);
  EXPECT_DOUBLE_EQ(changes[0].shortest_dwell.value(), 1);
  EXPECT_EQ(changes[1].count, 0);
  EXPECT_DOUBLE_EQ(changes[1].shortest_dwell.value(), 15);
}

TEST(ClockChanges, SkipsConstantTimeOperations) {
  const model::ComputationDag dag =
      one_rank({{at(1000, 1, 1)}, {at(0, 1, 1)}, {at(1000, 1, 1)}, {at(0, 1, 1)}, {at(500, 1, 1)}});
  const model::Plan plan(5, 0);
  const std::vector<ClockChanges> changes = count_clock_changes(dag, plan, run_plan(dag, plan));
  EXPECT_EQ(changes[0].count, 2);  // 500 at 3 s, 1000 at 5 s
  EXPECT_DOUBLE_EQ(changes[0].shortest_dwell.value(), 2);
}

}  // namespace
}  // namespace perseus::checker
