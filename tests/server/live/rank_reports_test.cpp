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

TEST_F(RankReportsTest, ReportsNamePlansOnceOneDoesHereOrInTheLog) {
  EXPECT_FALSE(reports_.name_plans(job_));
  job_.kept.emplace();
  EXPECT_TRUE(reports_.name_plans(job_));
  job_.kept.reset();
  reports_.followed.report({.rank = 0, .ranks = 2, .version = 1, .last = 3, .count = 1});
  EXPECT_TRUE(reports_.name_plans(job_));
}

TEST_F(RankReportsTest, IterationsThatTheLogHasAreNotKept) {
  for (const int rank : {0, 1})
    reports_.followed.report({.rank = rank, .ranks = 2, .version = 1, .last = 3, .count = 2});
  reports_.uncounted_since_s = 1100;
  ASSERT_EQ(reports_.followed.whole().size(), 2U);
  reports_.counted_to(2);
  EXPECT_EQ(reports_.followed.whole().size(), 1U);
  EXPECT_EQ(reports_.uncounted_since_s, std::nullopt);
}

TEST_F(RankReportsTest, AfterARestartIterationsCountFromZero) {
  ASSERT_TRUE(note(0, 10, 1100));
  reports_.followed.report({.rank = 0, .ranks = 2, .version = 1, .last = 10, .count = 1});
  reports_.measured.report({.rank = 0, .ranks = 2, .version = 1, .last = 10, .times = {}, .energies = {}});
  reports_.without_plan = true;
  reports_.forget_iterations();
  EXPECT_EQ(next(1100), 0);
  EXPECT_FALSE(reports_.followed.known());
  EXPECT_TRUE(reports_.without_plan) << "the clients are the same";
  ASSERT_TRUE(note(0, 0, 1101));
  EXPECT_EQ(next(1101), 3);
}

}  // namespace
}  // namespace perseus::live
