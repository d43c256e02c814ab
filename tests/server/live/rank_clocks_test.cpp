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

}  // namespace
}  // namespace perseus::live
