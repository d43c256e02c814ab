// What ranks report of their clocks: last figures, sums, and the growth of counters.
#include <gtest/gtest.h>

#include "server/live/rank_reports.h"

namespace perseus::live {
namespace {

TEST(RankClocks, CountTheGrowthOfEachProcess) {
  RankClocks clocks;
  EXPECT_EQ(clocks.report(3, {1410, 10, 4, 2}, 1, 100), ClockCounts{}) << "counted before this server began";
  EXPECT_EQ(clocks.report(3, {1200, 12, 4, 3}, 1, 130), (ClockCounts{2, 0, 1}));
  EXPECT_EQ(clocks.report(3, {1200, 12, 4, 3}, 1, 160), ClockCounts{});
  EXPECT_EQ(clocks.report(3, {1410, 1, 0, 0}, 2, 190), (ClockCounts{1, 0, 0})) << "a later process";
  EXPECT_EQ(clocks.report(3, {1410, 0, 0, 0}, 2, 220), ClockCounts{}) << "a counter never goes back";
  clocks.report(0, {900, 5, 6, 7}, 1, 220);
  EXPECT_EQ(clocks.sums(), (ClockCounts{5, 6, 7}));
}

TEST(RankClocks, AreThoseOfTheProcessThatHoldsTheRank) {
  RankClocks clocks;
  jobs::Rank held;
  held.epoch = 2;
  EXPECT_EQ(clocks.of(0, held), nullptr);
  clocks.report(1, {1410}, 1, 100);
  EXPECT_EQ(clocks.of(0, held), nullptr);
  EXPECT_EQ(clocks.of(1, held), nullptr) << "of the process before";
  clocks.report(1, {1200}, 2, 130);
  ASSERT_NE(clocks.of(1, held), nullptr);
  EXPECT_EQ(clocks.of(1, held)->figures.set_mhz, 1200);
  clocks.report(1, {900}, 0, 160);
  EXPECT_NE(clocks.of(1, held), nullptr) << "a client without epochs";
}

}  // namespace
}  // namespace perseus::live
