#include "server/stage_schedule.h"

#include <gtest/gtest.h>

namespace perseus::server {
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

/// A job of one pipeline of two ranks that plan at maximum clock.
struct AtMaximumClock {
  AtMaximumClock() {
    job.spec.degrees = {1, 2, 1};
    job.clock_sets = {{}, {1410, 900}};
    job.instruction_sets = {{}, {"forward", "p2p", "backward"}};
    job.plan.emplace();
    job.plan->choices = {{"", -1}};
    job.plan->choice_of = {0};
  }
  Job job;
};

TEST(StageSchedule, AtMaximumClockIsTheRanksOwnInstructions) {
  const AtMaximumClock at;
  Rank rank;
  rank.clock_set = 1;
  rank.instruction_set = 1;
  const auto schedule = make_maximum_clock_schedule(at.job, rank, nullptr);
  EXPECT_EQ(schedule->kind, StageSchedule::Kind::maximum_clock);
  ASSERT_EQ(schedule->clocks.size(), 3U);
  for (const ClockedInstruction& c : schedule->clocks) EXPECT_EQ(c.clock, Megahertz(1410));
}

TEST(StageSchedule, AtMaximumClockIsTheSchedulesInstructionsElse) {
  const AtMaximumClock at;
  PipelineShape shape;
  shape.microbatches = 3;
  Rank rank;
  rank.pp_rank = 1;
  const auto schedule = make_maximum_clock_schedule(at.job, rank, &shape);
  ASSERT_EQ(schedule->clocks.size(), 6U);
  EXPECT_EQ(schedule->clocks[0].instruction, "forward");
  EXPECT_EQ(schedule->clocks[1].instruction, "backward") << "the last stage turns around at once";
  for (const ClockedInstruction& c : schedule->clocks) EXPECT_EQ(c.clock, Megahertz(0)) << "clocks not known: leave it";
}

}  // namespace
}  // namespace perseus::server
