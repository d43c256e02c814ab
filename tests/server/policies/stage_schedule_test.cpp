#include "server/policies/stage_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::policies {
namespace {

TEST(SupportedClock, IsTheLowestThatIsNoSlower) {
  const std::vector<int> supported{1410, 1200, 900};
  const auto clock = [&](int planned) { return supported_clock(Megahertz(planned), supported).value(); };
  EXPECT_EQ(clock(1200), 1200);
  EXPECT_EQ(clock(1199), 1200);
  EXPECT_EQ(clock(901), 1200);
  EXPECT_EQ(clock(900), 900);
  EXPECT_EQ(clock(1), 900);
  EXPECT_EQ(clock(1410), 1410);
  EXPECT_EQ(clock(2000), 1410) << "nothing is as fast: the highest";
}

TEST(SupportedClock, TakesEveryClockWhereNoneIsKnown) {
  EXPECT_EQ(supported_clock(Megahertz(1234), {}), Megahertz(1234));
}

/// A job of one pipeline with two ranks, whose plan is maximum clock.
struct AtMaximumClock {
  AtMaximumClock() {
    job.spec.degrees = {1, 2, 1};
    job.clock_sets = {{}, {1410, 900}};
    job.instruction_sets = {{}, {"forward", "p2p", "backward"}};
    job.plan.emplace();
    job.plan->choices = {{"", -1}};
    job.plan->choice_of = {0};
  }
  jobs::Job job;
};

TEST(StageSchedule, AtMaximumClockIsTheRanksOwnInstructions) {
  const AtMaximumClock at;
  jobs::Rank rank;
  rank.clock_set = 1;
  rank.instruction_set = 1;
  const auto schedule = make_maximum_clock_schedule(at.job, rank, nullptr);
  EXPECT_EQ(schedule->kind, jobs::StageSchedule::Kind::maximum_clock);
  ASSERT_EQ(schedule->clocks.size(), 3U);
  for (const formats::ClockedInstruction& c : schedule->clocks) EXPECT_EQ(c.clock, Megahertz(1410));
}

TEST(StageSchedule, AtMaximumClockIsTheSchedulesInstructionsElse) {
  const AtMaximumClock at;
  jobs::PipelineShape shape;
  shape.microbatches = 3;
  jobs::Rank rank;
  rank.pp_rank = 1;
  const auto schedule = make_maximum_clock_schedule(at.job, rank, &shape);
  ASSERT_EQ(schedule->clocks.size(), 6U);
  EXPECT_EQ(schedule->clocks[0].instruction, "forward");
  EXPECT_EQ(schedule->clocks[1].instruction, "backward") << "the last stage turns around at once";
  for (const formats::ClockedInstruction& c : schedule->clocks)
    EXPECT_EQ(c.clock, Megahertz(0)) << "clocks not known: leave it";
}

/// One rank that computes once: 1 s at the highest clock, 1.2 s at the other; at maximum clock everything takes 1.1
/// s.
struct WithAPlan : AtMaximumClock {
  WithAPlan() {
    job.spec.degrees = {1, 1, 1};
    job.plan->choices = {{"a", 0}};
    job.plan->reason = "pipeline 1 is 1.2 times slower";
    model::ComputationDag& dag = pipeline.dag;
    dag.types = {{0,
                  "forward",
                  {{Megahertz(1410), Seconds(1), Joules(300), {}, {}, 1},
                   {Megahertz(900), Seconds(1.2), Joules(260), {}, {}, 1}}}};
    dag.computations = {{0, 0, 0}};
    dag.rank_order = {{0}};
    pipeline.frontier.points = {{Seconds(1.2), Joules(260), Joules(161), {}, {1}},
                                {Seconds(1.05), Joules(290), Joules(180), {}, {0}},
                                {Seconds(1), Joules(300), Joules(200), {}, {0}}};
    pipeline.all_max_time = Seconds(1.1);
  }
  [[nodiscard]] std::shared_ptr<const jobs::StageSchedule> schedule(int point) {
    job.plan->choices[0].point = point;
    return make_plan_schedule(job, jobs::Rank{}, pipeline);
  }
  jobs::CharacterizedPipeline pipeline;
};

TEST(StageSchedule, OfAPlanHasItsTimeAndThatOfTheHighestClock) {
  WithAPlan with;
  EXPECT_EQ(with.schedule(1)->iteration_time, Seconds(1.05));
  EXPECT_EQ(with.schedule(1)->all_max_time, Seconds(1.1));
  EXPECT_EQ(make_maximum_clock_schedule(with.job, jobs::Rank{}, nullptr)->all_max_time, std::nullopt);
}

TEST(StageSchedule, HasTheSavingThatItsPlanWasDeployedWithToAHundredthOfAPercent) {
  WithAPlan with;
  EXPECT_EQ(with.schedule(1)->saving_pct, std::nullopt) << "deployed by an earlier server";
  with.job.plan->saving_pct = 5.658929762411125;
  EXPECT_EQ(with.schedule(1)->saving_pct, 5.66);
  with.job.plan->saving_pct = 5.6589297624111246;
  EXPECT_EQ(with.schedule(1)->saving_pct, 5.66) << "read from the log, one bit off";
}

TEST(StageSchedule, IsSlowerOnPurposeOnlyIfItIsSlowerThanTheHighestClock) {
  WithAPlan with;
  EXPECT_TRUE(with.schedule(0)->slower_on_purpose);
  EXPECT_FALSE(with.schedule(1)->slower_on_purpose) << "not the fastest plan, but faster than the highest clock";
  EXPECT_FALSE(with.schedule(2)->slower_on_purpose);
  with.pipeline.all_max_time = Seconds(0.9);  // no plan is that fast
  EXPECT_FALSE(with.schedule(2)->slower_on_purpose);
  EXPECT_TRUE(with.schedule(1)->slower_on_purpose);
}

}  // namespace
}  // namespace perseus::policies
