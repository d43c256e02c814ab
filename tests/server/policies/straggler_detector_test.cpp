#include "server/policies/straggler_detector.h"

#include <gtest/gtest.h>

#include <cmath>

namespace perseus::policies {
namespace {

using Degree = std::optional<double>;

/// Reports iterations of all pipelines, the second one `slower` times slower. Returns the last degree of that
/// pipeline.
Degree round(StragglerDetector& detector, double slower, int pipelines = 3) {
  Degree said;
  for (int p = 0; p < pipelines; ++p) {
    const Degree degree = detector.report(p, p == 1 ? 1.07 * slower : 1.07);  // profiles are 7 % off for every pipeline
    if (p == 1) {
      said = degree;
    } else {
      EXPECT_EQ(degree, std::nullopt);
    }
  }
  return said;
}

TEST(StragglerDetector, DetectsAfterThreeSlowReportsInARow) {
  StragglerDetector detector(3);
  EXPECT_EQ(round(detector, 1), std::nullopt);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(round(detector, 1.04), std::nullopt);
  int rounds = 1;
  Degree degree = round(detector, 1.3);
  for (; !degree && rounds < 10; ++rounds) degree = round(detector, 1.3);
  EXPECT_EQ(degree, 1.3);
  EXPECT_GE(rounds, 3);
}

TEST(StragglerDetector, AHiccupIsNoStraggler) {
  StragglerDetector detector(3);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(round(detector, i % 3 == 0 ? 2 : 1), std::nullopt);
}

TEST(StragglerDetector, LeavesOnlyBelowTheLowerThreshold) {
  StragglerDetector detector(3);
  detector.assume(1, 1.2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(round(detector, 1.2), std::nullopt) << "nothing new";
  Degree degree;
  for (int i = 0; i < 10 && !degree; ++i) degree = round(detector, 1.03);
  EXPECT_EQ(degree, 1.03) << "less slow, but between the thresholds";
  degree.reset();
  for (int i = 0; i < 10 && !degree; ++i) degree = round(detector, 1.01);
  EXPECT_EQ(degree, 1);
}

TEST(StragglerDetector, NeedsAnotherPipelineToCompareWith) {
  StragglerDetector alone(3);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(alone.report(1, 5), std::nullopt);
}

TEST(StragglerDetector, OtherClocksBeginAnew) {
  StragglerDetector detector(3);
  round(detector, 1.5), round(detector, 1.5);
  detector.forget_times();
  EXPECT_EQ(round(detector, 1.5), std::nullopt);
}

TEST(StragglerDetector, IgnoresInvalidTimes) {
  StragglerDetector detector(2);
  for (const double value : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(detector.report(0, value), std::nullopt);
  }
}

}  // namespace
}  // namespace perseus::policies
