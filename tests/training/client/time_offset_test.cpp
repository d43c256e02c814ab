// Offset between the GPU's time and the host's, computed from times that the test generates. The true offset is 100
// s.
#include "training/client/time_offset.h"

#include <gtest/gtest.h>

#include <random>

namespace perseus::client {
namespace {

constexpr double kOffset_s = 100;

class TimeOffsetTest : public ::testing::Test {
 protected:
  double random(double most) { return std::uniform_real_distribution<double>(0, most)(dice); }
  /// 8 s of a host that is 0.5 s ahead, with a step every 0.7 s.
  void train(double seen_late_s, double probe_waits_s) {
    for (int step = 0; step < 12; ++step) {
      const double device_s = 1 + 0.7 * step, host_s = device_s + kOffset_s;
      offset.enqueued(device_s, host_s - 0.5);
      if (seen_late_s >= 0) offset.seen(device_s, host_s + seen_late_s + random(1e-4));
      if (probe_waits_s >= 0) offset.probed(device_s + 5e-6 + random(probe_waits_s), host_s, -1);
    }
  }
  TimeOffset offset;
  std::mt19937 dice{7};
};

TEST_F(TimeOffsetTest, NotKnownWhereTheHostRunsAheadAndNothingElseIsSeen) {
  train(-1, -1);
  EXPECT_FALSE(offset.known());
}

TEST_F(TimeOffsetTest, OfAHostThatRunsAheadByProbes) {
  train(-1, 1e-5);
  EXPECT_TRUE(offset.known());
  EXPECT_NEAR(offset.seconds(), kOffset_s, 1e-4);
}

TEST_F(TimeOffsetTest, HowLatePositionsBecomeVisibleIsNoPartOfIt) {
  train(5e-3, 1e-5);
  EXPECT_NEAR(offset.seconds(), kOffset_s, 1e-4);
}

TEST_F(TimeOffsetTest, ProbesThatWaitBehindOtherWorkAreLessTrustedThanPositions) {
  train(5e-5, 0.2);
  EXPECT_TRUE(offset.known());
  EXPECT_NEAR(offset.seconds(), kOffset_s, 2e-4);
}

TEST_F(TimeOffsetTest, OneProbeThatIsDoneAtOnceIsEnough) {
  offset.enqueued(1, 100.5);
  EXPECT_FALSE(offset.known());
  offset.probed(2, 102 - 1e-5, 102 + 1e-5);
  EXPECT_TRUE(offset.known());
  EXPECT_NEAR(offset.seconds(), kOffset_s, 2e-5);
}

TEST_F(TimeOffsetTest, FollowsScalesThatDriftApart) {
  for (int second = 1; second < 300; ++second) {
    const double device_s = second, host_s = device_s * (1 + 4e-6) + kOffset_s;
    offset.enqueued(device_s, host_s - 0.5);
    offset.probed(device_s, host_s, -1);
  }
  EXPECT_NEAR(offset.seconds(), kOffset_s + 300 * 4e-6, 1e-4);
}

}  // namespace
}  // namespace perseus::client
