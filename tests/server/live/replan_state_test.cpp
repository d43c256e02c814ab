#include <gtest/gtest.h>

#include "server/live/live_job.h"

namespace perseus::live {
namespace {

TEST(ReplanState, AnInputIsNotTriedAgainWithTheLatencyThatFailedLast) {
  ReplanState replan;
  EXPECT_FALSE(replan.has_failed("a", Seconds(0.01)));
  replan.failed("a", Seconds(0.01));
  EXPECT_TRUE(replan.has_failed("a", Seconds(0.01)));
  EXPECT_FALSE(replan.has_failed("a", Seconds(0.02)));
  EXPECT_FALSE(replan.has_failed("b", Seconds(0.01)));
  replan.failed("a", Seconds(0.02));
  EXPECT_TRUE(replan.has_failed("a", Seconds(0.02)));
  EXPECT_FALSE(replan.has_failed("a", Seconds(0.01))) << "another latency was measured since";
}

}  // namespace
}  // namespace perseus::live
