#include "training/client/job_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

ClockPlan plan_with_saving() {
  ClockPlan plan;
  plan.kind = ClockPlan::Kind::plan;
  plan.version = 3;
  plan.iteration_time_s = 2.83651;
  plan.maximum_clock_time_s = 2.83652;
  plan.saving_pct = 15.94;
  plan.reason = "no straggler";
  return plan;
}

TEST(JobMessages, TheStartNamesJobServerGpuAndWhetherClocksAreSet) {
  ClientOptions options;
  options.server = "http://user:secret@head:7787";
  options.job_name = "gpt3";
  options.schedule = "1f1b";
  options.microbatches = 12;
  options.pp_degree = 8;
  RankFacts facts;
  facts.clocks_mhz = {1410, 1200, 900};
  facts.host = "node1";
  EXPECT_THAT(
      start_message("j1", options, facts, {"NVIDIA A100", ""}),
      AllOf(HasSubstr("job j1 (gpt3) at http://"), HasSubstr("8 ranks, 1f1b with 12 microbatches"),
            HasSubstr("profiled while it trains"),
            HasSubstr("rank 0 on node1, NVIDIA A100: sets clocks from 900 to 1410 MHz"), Not(HasSubstr("secret"))));
  options.profile = "xl";
  options.pp_degree = 1;
  EXPECT_THAT(start_message("j1", options, {}, {"", "advice only, as configured"}),
              AllOf(HasSubstr("1 rank,"), HasSubstr("profile 'xl'"),
                    HasSubstr("no GPU: sets no clock: advice only, as configured")));
}

TEST(JobMessages, EachChangeOfPlanIsOneLine) {
  PlanMessages messages(true);
  ClockPlan plan = plan_with_saving();
  EXPECT_THAT(messages.arrived("j1", plan),
              Optional(std::string("job j1: plan 3: 2.837 s per iteration (2.837 s at maximum "
                                   "clock), 15.9 % less energy (estimated); no straggler")));
  EXPECT_EQ(messages.arrived("j1", plan), std::nullopt) << "the same plan again";
  plan.version = 4;
  plan.slower_because = "pipeline 1 is 1.2 times slower";
  EXPECT_THAT(messages.arrived("j1", plan), Optional(HasSubstr("slower because pipeline 1 is 1.2 times slower")));
}

TEST(JobMessages, WithoutClocksASavingIsOneThatWouldBe) {
  ClockPlan plan = plan_with_saving();
  plan.saving_stddev_pct = 0.31;
  const std::string would =
      "job j1: plan 3: would save 15.9 % (+- 0.3 %) of the energy if clocks were set (estimated), at 2.837 s per "
      "iteration (2.837 s at maximum clock); no straggler";
  EXPECT_THAT(PlanMessages(true).arrived("j1", plan, false), Optional(would)) << "this rank sets none";
  EXPECT_THAT(PlanMessages(true).arrived("j1", plan), Optional(HasSubstr(", 15.9 % (+- 0.3 %) less energy")));
  plan.only_possible = true;
  EXPECT_THAT(PlanMessages(true).arrived("j1", plan), Optional(would)) << "another rank sets none";
}

TEST(JobMessages, ProfilingIsOneLineForAllItsWindows) {
  PlanMessages messages(true);
  ClockPlan window;
  window.kind = ClockPlan::Kind::profiling_window;
  window.version = 1;
  EXPECT_THAT(messages.arrived("j1", window), Optional(HasSubstr("job j1 is being profiled")));
  window.version = 2;
  EXPECT_EQ(messages.arrived("j1", window), std::nullopt);
}

TEST(JobMessages, AModeledSavingIsNoPlan) {
  ClockPlan window;
  window.kind = ClockPlan::Kind::profiling_window;
  window.keeps_clocks = true;
  EXPECT_THAT(PlanMessages(true).arrived("j1", window, false),
              Optional(std::string("job j1 is being measured at the clocks that its GPUs have: none is set")));
  ClockPlan modeled;
  modeled.saving_pct = 11.8;
  modeled.only_possible = modeled.modeled = true;
  modeled.reason = "maximum clock: would save 11.8 % (+- 5.0 %) by a model";
  EXPECT_THAT(PlanMessages(true).arrived("j1", modeled, false),
              Optional(std::string("job j1: would save 11.8 % (+- 5.0 %) by a model")));
  EXPECT_EQ(PlanMessages(false).arrived("j1", modeled, false), std::nullopt);
  ClockPlan none;
  none.reason = "maximum clock: no saving is modeled: the GPU is another";
  EXPECT_THAT(PlanMessages(false).arrived("j1", none, false),
              Optional(std::string("no clock is set, no plan for job j1: no saving is modeled: the GPU is another")));
}

TEST(JobMessages, OtherRanksLogOnlyWhyThereIsNoPlan) {
  PlanMessages messages(false);
  EXPECT_EQ(messages.arrived("j1", plan_with_saving()), std::nullopt);
  ClockPlan none;
  none.reason = "maximum clock: no rank reports energy";
  EXPECT_THAT(messages.arrived("j1", none),
              Optional(std::string("the highest clock, no plan for job j1: no rank reports energy")));
  EXPECT_EQ(messages.arrived("j1", none), std::nullopt);
}

}  // namespace
}  // namespace perseus::client
