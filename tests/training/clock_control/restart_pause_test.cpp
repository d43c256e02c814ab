#include "training/clock_control/restart_pause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace perseus::clock_control {
namespace {

TEST(RestartPauses, DoubleUntilAHelperHasWorkedForLong) {
  RestartPause pause({1, 300});
  EXPECT_FALSE(pause.never());
  std::vector<double> pauses;
  for (int i = 0; i < 11; ++i) pauses.push_back(pause.after(i % 2 == 0 ? 0 : 299));
  EXPECT_THAT(pauses, ::testing::ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300));
  EXPECT_EQ(pause.after(300), 1);
  EXPECT_EQ(pause.after(0), 2);
}

TEST(RestartPauses, WithoutLimitsThereIsNoRestart) { EXPECT_TRUE(RestartPause({}).never()); }

}  // namespace
}  // namespace perseus::clock_control
