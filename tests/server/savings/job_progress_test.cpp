#include "server/savings/job_progress.h"

#include <gtest/gtest.h>

#include <optional>

namespace perseus::savings {
namespace {

constexpr double kFastest_s = 0.5;
constexpr std::int64_t kHuge = std::int64_t{1} << 52;

TEST(JobProgress, FollowsRanksThatIterateTogether) {
  JobProgress progress(100);
  for (int i = 1; i <= 1000; ++i) {
    for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(progress.report(rank, i, i - 1, 100 + i, kFastest_s));
    EXPECT_EQ(progress.iteration(), i);
    EXPECT_EQ(progress.finished(), i - 1);
    EXPECT_EQ(progress.at_s(), 100 + i);
  }
}

TEST(JobProgress, RejectsALargeStepOfOneRank) {
  JobProgress progress(100);
  for (int i = 1; i <= 10; ++i) {
    EXPECT_FALSE(progress.report(3, kHuge, kHuge, 100 + i, kFastest_s));
    for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(progress.report(rank, i, i, 100 + i, kFastest_s));
    EXPECT_EQ(progress.iteration(), i);
    EXPECT_EQ(progress.finished(), i);
  }
}

TEST(JobProgress, FollowsTheOthersPastARankThatIsFarAhead) {
  JobProgress progress(100);
  EXPECT_TRUE(progress.report(3, 900'000, 900'000, 100, kFastest_s));
  EXPECT_EQ(progress.iteration(), 900'000);  // no other rank has reported
  for (int i = 1; i <= 1000; ++i) {
    for (int rank = 0; rank < 2; ++rank) progress.report(rank, i, i, 100 + i, kFastest_s);
    progress.report(3, 900'000 + i, 900'000 + i, 100 + i, kFastest_s);
    EXPECT_LE(*progress.iteration(), i + 64 + 2);
    EXPECT_LE(progress.finished(), i + 64 + 2);
  }
}

TEST(JobProgress, AcceptsTwoRanksAfterARestartOfTheServer) {
  JobProgress progress(100);
  EXPECT_EQ(progress.iteration(), std::nullopt);
  EXPECT_FALSE(progress.report(0, 5'000'000, 4'999'999, 101, kFastest_s));
  EXPECT_EQ(progress.iteration(), std::nullopt);
  EXPECT_TRUE(progress.report(1, 5'000'001, 5'000'000, 101, kFastest_s));
  EXPECT_EQ(progress.iteration(), 5'000'001);
  EXPECT_TRUE(progress.report(0, 5'000'001, 5'000'000, 102, kFastest_s));
}

TEST(JobProgress, AcceptsTheOnlyRankAsFarAsTimeAllows) {
  JobProgress progress(100);
  EXPECT_FALSE(progress.report(0, kHuge, kHuge, 101, kFastest_s));
  for (int i = 1; i <= 1000; ++i) EXPECT_TRUE(progress.report(0, i, i - 1, 100 + i, kFastest_s));
  EXPECT_EQ(progress.iteration(), 1000);
}

TEST(JobProgress, AcceptsAnOnlyRankThatContinuesFromACheckpoint) {
  JobProgress progress(100, true);
  EXPECT_FALSE(progress.report(0, 5'000'000, 4'999'999, 101, kFastest_s));
  EXPECT_FALSE(progress.report(0, 5'000'000, 4'999'999, 102, kFastest_s)) << "a repetition";
  EXPECT_TRUE(progress.report(0, 5'000'002, 5'000'001, 103, kFastest_s));
  EXPECT_EQ(progress.iteration(), 5'000'002);
  EXPECT_FALSE(progress.report(0, kHuge, kHuge, 104, kFastest_s));
  EXPECT_TRUE(progress.report(0, 5'000'003, 5'000'002, 105, kFastest_s));
}

TEST(JobProgress, ReturnsToTheNumbersOfTheOthersAfterTwoRanksAgreedOnAHugeOne) {
  JobProgress progress(100);
  EXPECT_FALSE(progress.report(2, kHuge, kHuge - 1, 101, kFastest_s));
  EXPECT_TRUE(progress.report(3, kHuge, kHuge - 1, 101, kFastest_s));
  EXPECT_EQ(progress.iteration(), kHuge) << "no other rank has reported";
  for (int i = 1; i <= 100; ++i) {
    const bool first = i == 1;
    EXPECT_EQ(progress.report(0, i, i - 1, 101 + i, kFastest_s), !first);
    EXPECT_TRUE(progress.report(1, i, i - 1, 101 + i, kFastest_s));
    EXPECT_EQ(progress.iteration(), i);
    EXPECT_EQ(progress.finished(), i - 1);
    for (const int rank : {2, 3}) {
      EXPECT_FALSE(progress.report(rank, kHuge + i, kHuge + i, 101 + i, kFastest_s)) << "no more ranks than the others";
    }
  }
  EXPECT_EQ(progress.iteration(), 100);
}

TEST(JobProgress, FollowsMostRanksToACheckpoint) {
  JobProgress progress(100);
  for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(progress.report(rank, 10, 9, 101, kFastest_s));
  for (int rank = 0; rank < 2; ++rank) EXPECT_FALSE(progress.report(rank, 5'000'000, 4'999'999, 102, kFastest_s));
  EXPECT_TRUE(progress.report(2, 5'000'000, 4'999'999, 102, kFastest_s));
  EXPECT_EQ(progress.iteration(), 5'000'000);
  EXPECT_TRUE(progress.report(3, 5'000'000, 4'999'999, 102, kFastest_s));
}

TEST(JobProgress, GoesOnWhenTheClockIsSetBack) {
  JobProgress progress(100);
  for (int i = 1; i <= 100; ++i) {
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_TRUE(progress.report(rank, i, i, i < 50 ? 100 + i : i - 50, kFastest_s));
  }
  EXPECT_EQ(progress.iteration(), 100);
}

}  // namespace
}  // namespace perseus::savings
