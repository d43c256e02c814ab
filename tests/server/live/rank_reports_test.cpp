// The iteration that a job is in, from its ranks' reports.
#include "server/live/rank_reports.h"

#include <gtest/gtest.h>

namespace perseus::live {
namespace {

/// A job of two ranks whose iterations take 2 s at the highest clock; it has no frontier.
class RankReportsTest : public ::testing::Test {
 protected:
  RankReportsTest() {
    job_.spec.degrees = {1, 2, 1};
    job_.created_s = 1000;
    job_.profiled.highest_s = 2;
  }
  bool note(int rank, std::int64_t iteration, double now_s) {
    return reports_.note_progress(job_, {}, rank, iteration, iteration, now_s);
  }
  [[nodiscard]] std::int64_t next(double now_s, int margin = 2) const {
    return reports_.next_common_iteration(job_, {}, now_s, margin);
  }

  jobs::Job job_;
  RankReports reports_;
};

TEST_F(RankReportsTest, WithoutReportsRanksSwitchAtOnce) { EXPECT_EQ(next(1100), 0); }

TEST_F(RankReportsTest, TheNextCommonIterationCountsTheTimeSinceTheReportAndTheMargin) {
  ASSERT_TRUE(note(0, 10, 1100));
  ASSERT_TRUE(note(1, 10, 1100));
  EXPECT_EQ(next(1100), 13);
  EXPECT_EQ(next(1100, 0), 11);
  EXPECT_EQ(next(1105), 15) << "two whole iterations of 2 s since";
  EXPECT_EQ(next(1090), 13) << "the clock was set back";
}

TEST_F(RankReportsTest, WithoutATimeOfIterationsOnlyTheMarginCounts) {
  job_.profiled.highest_s = 0;
  ASSERT_TRUE(note(0, 10, 1100));
  EXPECT_EQ(next(1200), 13);
}

TEST_F(RankReportsTest, ANumberThatNoJobCanHaveReachedIsRejected) {
  EXPECT_FALSE(note(0, 1'000'000'000'000, 1100));
  EXPECT_EQ(next(1100), 0);
  EXPECT_TRUE(note(1, 1'000'000'000'001, 1101)) << "another rank confirms it";
}

}  // namespace
}  // namespace perseus::live
