#include "server/savings/job_savings.h"

#include <gtest/gtest.h>

#include "planning/checker/plan_run.h"

namespace perseus::savings {
namespace {

/// Two pipelines of one stage with the same frontier; waiting draws 100 W.
class SavingsTest : public ::testing::Test {
 protected:
  SavingsTest() {
    auto pipeline = std::make_shared<jobs::CharacterizedPipeline>();
    pipeline->key = "a";
    pipeline->dag.blocking_power = Watts(100);
    pipeline->dag.accelerators = {1};
    pipeline->frontier.points = {{Seconds(2), Joules(360), Joules(160), {}, {}},
                                 {Seconds(1), Joules(300), Joules(200), {}, {}}};
    pipeline->all_max_time = Seconds(1);
    pipeline->all_max_effective_energy = Joules(250);
    frontiers_["a"] = pipeline;
    job_.spec.degrees = {2, 1, 1};
    job_.ranks_registered = 2;
    jobs::PlanDeployed plan;
    plan.choices = {{"a", 1}};
    plan.choice_of = {0, 0};
    job_.plan = plan;
    job_.counted_to = 40;
  }
  jobs::Job job_;
  policies::Frontiers frontiers_;
};

TEST_F(SavingsTest, OfOneIterationAgainstEverythingAtMaximumClock) {
  const auto cost = iteration_cost(job_, frontiers_);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->time, Seconds(1));
  EXPECT_DOUBLE_EQ(cost->energy.value(), 2 * 300);
  EXPECT_DOUBLE_EQ(cost->all_max_energy.value(), 2 * 350);
}

TEST_F(SavingsTest, BothSidesWaitForTheStraggler) {
  job_.notices.push_back({"s1", {}, 1, 1.5, 0, false, true});
  job_.notices[0].target.pipeline = 1;
  const auto cost = iteration_cost(job_, frontiers_);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->time, Seconds(1.5));
  EXPECT_DOUBLE_EQ(cost->energy.value(), 2 * (200 + 150));
  EXPECT_DOUBLE_EQ(cost->all_max_energy.value(), 2 * (250 + 150));
}

TEST(Savings, AStragglerDrawsAtMostItsPowerLimit) {
  // One computation of 300, 240 or 200 W; waiting draws 100 W.
  auto pipeline = std::make_shared<jobs::CharacterizedPipeline>();
  model::ComputationDag& dag = pipeline->dag;
  dag.blocking_power = Watts(100);
  dag.accelerators = {1};
  dag.types = {{0,
                "forward",
                {{Megahertz(1400), Seconds(1), Joules(300), {}, {}, 1},
                 {Megahertz(1200), Seconds(1.15), Joules(276), {}, {}, 1},
                 {Megahertz(1000), Seconds(1.3), Joules(260), {}, {}, 1}}}};
  dag.computations = {{0, 0, 0}};
  dag.rank_order = {{0}};
  pipeline->frontier.points = {{Seconds(1.15), Joules(276), Joules(161), {}, {1}},
                               {Seconds(1), Joules(300), Joules(200), {}, {0}}};
  pipeline->all_max_time = Seconds(1);
  pipeline->all_max_effective_energy = Joules(200);
  jobs::Job job;
  job.spec.degrees = {2, 1, 1};
  job.plan = jobs::PlanDeployed{1, 0, {{"a", 0}, {"a", 1}}, {0, 1}, {}, {}, ""};
  job.notices.push_back({"s1", {}, 1, 1.15, 0, false, true});
  job.notices[0].target.pipeline = 1;
  const policies::Frontiers frontiers{{"a", pipeline}};
  const auto cost = iteration_cost(job, frontiers);
  ASSERT_TRUE(cost);
  EXPECT_NEAR(cost->energy.value(), 276 + 276, 1e-9) << "not 276 + 315";
  EXPECT_NEAR(cost->all_max_energy.value(), 315 + 276, 1e-9);
  // Halfway between two limits.
  job.notices[0].degree = 1.225;
  EXPECT_NEAR(iteration_cost(job, frontiers)->energy.value(), 161 + 145.5 + 200 * 1.225, 1e-9);
}

TEST(Savings, AStragglersClocksArriveAsLateAsPlanned) {
  // Forward at 1400 MHz, backward at 1000 MHz; each clock arrives half a second late; waiting draws 100 W.
  auto pipeline = std::make_shared<jobs::CharacterizedPipeline>();
  model::ComputationDag& dag = pipeline->dag;
  dag.blocking_power = Watts(100);
  dag.accelerators = {1};
  for (const char* instruction : {"forward", "backward"}) {
    dag.types.push_back({0,
                         instruction,
                         {{Megahertz(1400), Seconds(1), Joules(300), {}, {}, 1},
                          {Megahertz(1200), Seconds(1.15), Joules(276), {}, {}, 1},
                          {Megahertz(1000), Seconds(1.3), Joules(260), {}, {}, 1}}});
  }
  dag.computations = {{0, 0, 0}, {1, 0, 0}};
  dag.dependencies = {{0, 1, Seconds(0)}};
  dag.rank_order = {{0, 1}};
  const model::Plan plan{0, 2};
  const checker::PlanRunOptions late{Seconds(0.5)};
  const checker::PlanRun planned = checker::run_plan(dag, plan, late);
  pipeline->frontier.points = {{planned.makespan, planned.energy, planned.effective_energy, {}, plan}};
  pipeline->all_max_time = Seconds(2);
  pipeline->all_max_effective_energy = Joules(400);
  // Below a limit of 250 W the device runs at 1200 MHz wherever the plan requests 1400 MHz.
  model::ComputationDag limited = dag;
  for (model::ComputationType& type : limited.types) {
    type.options[0].time = type.options[1].time;
    type.options[0].energy = type.options[1].energy;
  }
  const checker::PlanRun slowed = checker::run_plan(limited, plan, late),
                         slowed_all_max = checker::run_plan(limited, model::Plan{0, 0}, late);

  jobs::Job job;
  job.spec.degrees = {1, 1, 1};
  job.plan = jobs::PlanDeployed{1, 0, {{"a", 0}}, {0}, {}, {}, ""};
  job.planned_with["a"] = {0.5, false};
  job.notices.push_back({"s1", {}, 0, slowed.makespan / planned.makespan, 0, false, true});
  job.notices[0].target.pipeline = 0;
  const auto cost = iteration_cost(job, {{"a", pipeline}});
  ASSERT_TRUE(cost);
  EXPECT_NEAR(cost->time.value(), slowed.makespan.value(), 1e-9);
  EXPECT_NEAR(cost->energy.value(), slowed.energy.value(), 1e-6);
  EXPECT_NEAR(cost->all_max_time.value(), slowed_all_max.makespan.value(), 1e-9);
  EXPECT_NEAR(cost->all_max_energy.value(), slowed_all_max.energy.value(), 1e-6);
}

TEST_F(SavingsTest, RanksThatSetNoClocksSaveNothing) {
  job_.ranks.assign(2, jobs::Rank());
  job_.ranks[1]->dp_rank = 1;
  job_.ranks[1]->control = "none";
  job_.uncontrolled = {1};
  EXPECT_DOUBLE_EQ(iteration_cost(job_, frontiers_)->energy.value(), 600) << "what would be";
  EXPECT_DOUBLE_EQ(iteration_cost(job_, frontiers_, CountedRanks::as_they_are)->energy.value(), 300 + 350);
  EXPECT_EQ(without_control(job_, frontiers_),
            "rank 1 cannot set its clock; the plan saves 7.14 %, and would save 14.29 % if all ranks set their clocks");
  EXPECT_DOUBLE_EQ(counted(job_, frontiers_, 50)->saved_j, 10 * 50);
}

TEST_F(SavingsTest, MeasuredEnergiesComeBeforeEstimates) {
  job_.measured_highest[0] = jobs::EnergyMeasured{0, 10, 800, 1};
  EXPECT_FALSE(counted(job_, frontiers_, 50)->measured);
  job_.measured_plan[0] = jobs::EnergyMeasured{1, 10, 720, 1};
  const auto count = counted(job_, frontiers_, 50);
  EXPECT_TRUE(count->measured);
  EXPECT_DOUBLE_EQ(count->saved_j, 10 * 80);
  EXPECT_DOUBLE_EQ(count->all_max_energy_j, 10 * 800);
}

TEST_F(SavingsTest, IterationsBeforeThePlanAreNotCounted) {
  job_.plan->from_iteration = 21;
  job_.counted_to = -1;
  EXPECT_EQ(first_count(job_, frontiers_, 24, 8)->iterations, 4);
  EXPECT_FALSE(first_count(job_, frontiers_, 20, 8)) << "they ran before it";
}

TEST_F(SavingsTest, NothingWhileAPipelineHasNoFrontier) {
  frontiers_.clear();
  EXPECT_FALSE(iteration_cost(job_, frontiers_));
  EXPECT_FALSE(counted(job_, frontiers_, 50));
}

TEST_F(SavingsTest, OnlyReportedIterationsCount) {
  const auto reported = counted(job_, frontiers_, 47);
  ASSERT_TRUE(reported);
  EXPECT_EQ(reported->iterations, 7);
  EXPECT_EQ(reported->last_iteration, 47);
  EXPECT_DOUBLE_EQ(reported->saved_j, 7 * 100);
  EXPECT_DOUBLE_EQ(reported->all_max_energy_j, 7 * 700);
  EXPECT_FALSE(counted(job_, frontiers_, 40)) << "nothing new";
  EXPECT_FALSE(counted(job_, frontiers_, 3)) << "an old report";
  job_.counted_to = -1;
  EXPECT_FALSE(counted(job_, frontiers_, 47)) << "the first report counts its own iterations";
}

}  // namespace
}  // namespace perseus::savings
