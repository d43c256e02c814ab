#include <gtest/gtest.h>

#include "server/live/live_job.h"

namespace perseus::live {
namespace {

TEST(RankWindows, EachRankHasItsLastWindow) {
  RankWindows windows;
  EXPECT_EQ(windows.handed(0), std::nullopt);
  windows.hand_out(0, 0);
  windows.hand_out(0, 1);
  EXPECT_EQ(windows.handed(0), 1);
  EXPECT_EQ(windows.handed(1), std::nullopt);
}

TEST(RankWindows, AWindowThatWasHandedOutHasNotRunUntilTheRankReportsIt) {
  RankWindows windows;
  windows.hand_out(0, 0);
  EXPECT_FALSE(windows.has_run(0, 0));
  windows.ran(0, 0);
  EXPECT_TRUE(windows.has_run(0, 0));
  EXPECT_FALSE(windows.has_run(1, 0));
  windows.ran(0, 1);
  EXPECT_FALSE(windows.has_run(0, 0)) << "only the last one";
}

TEST(RankWindows, AReportOfAWindowThatAnotherServerHandedOutIsNotOneOfThisServer) {
  RankWindows windows;
  windows.ran(0, 4);
  EXPECT_EQ(windows.handed(0), std::nullopt);
}

TEST(RankWindows, NothingIsLeftWhenProfilingBeginsAnew) {
  RankWindows windows;
  windows.hand_out(0, 0);
  windows.ran(0, 0);
  windows.clear();
  EXPECT_EQ(windows.handed(0), std::nullopt);
  EXPECT_FALSE(windows.has_run(0, 0));
}

}  // namespace
}  // namespace perseus::live
