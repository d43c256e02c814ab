#include "server/savings.h"

#include <gtest/gtest.h>

namespace perseus::server {
namespace {

/// Two pipelines of one stage with the same frontier; waiting draws 100 W.
class SavingsTest : public ::testing::Test {
 protected:
  SavingsTest() {
    auto pipeline = std::make_shared<CharacterisedPipeline>();
    pipeline->key = "a";
    pipeline->dag.blocking_power = Watts(100);
    pipeline->dag.accelerators = {1};
    pipeline->frontier.points = {{Seconds(2), Joules(360), Joules(160), {}, {}},
                                 {Seconds(1), Joules(300), Joules(200), {}, {}}};
    pipeline->all_max_time = Seconds(1);
    pipeline->all_max_effective_energy = Joules(250);
    frontiers_["a"] = pipeline;
    job_.spec.degrees = {2, 1, 1};
    PlanDeployed plan;
    plan.choices = {{"a", 1}};
    plan.choice_of = {0, 0};
    job_.plan = plan;
    job_.counted_s = 100;
  }
  Job job_;
  Frontiers frontiers_;
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

TEST_F(SavingsTest, NothingWhileAPipelineHasNoFrontier) {
  frontiers_.clear();
  EXPECT_FALSE(iteration_cost(job_, frontiers_));
  EXPECT_FALSE(counted(job_, frontiers_, 5, 200));
}

TEST_F(SavingsTest, IterationsAreThoseReportedElseThoseThatTheTimeAllows) {
  const auto estimated = counted(job_, frontiers_, std::nullopt, 110);
  ASSERT_TRUE(estimated);
  EXPECT_EQ(estimated->iterations, 10);
  EXPECT_FALSE(estimated->from_reports);
  EXPECT_DOUBLE_EQ(estimated->saved_j, 10 * 100);
  EXPECT_DOUBLE_EQ(estimated->all_max_energy_j, 10 * 700);

  job_.counted_to = 40;
  const auto reported = counted(job_, frontiers_, 47, 110);
  ASSERT_TRUE(reported);
  EXPECT_EQ(reported->iterations, 7);
  EXPECT_TRUE(reported->from_reports);
  EXPECT_EQ(reported->last_iteration, 47);
  EXPECT_FALSE(counted(job_, frontiers_, 40, 110)) << "nothing new";
  EXPECT_FALSE(counted(job_, frontiers_, 3, 110)) << "an old report";
}

}  // namespace
}  // namespace perseus::server
