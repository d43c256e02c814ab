#include "server/savings/followed_iterations.h"

#include <gtest/gtest.h>

namespace perseus::savings {
namespace {

FollowedIterations::Report report(int rank, std::int64_t version, std::int64_t last, std::vector<double> energies) {
  FollowedIterations::Report report{rank, 2, true, version, last, static_cast<std::int64_t>(energies.size())};
  for (const double energy : energies) report.energies.emplace_back(energy);
  return report;
}

TEST(FollowedIterations, AreThoseThatAllRanksReportedUnderOnePlan) {
  FollowedIterations followed;
  followed.report(report(0, 7, 3, {10, 20, 30}));
  EXPECT_TRUE(followed.whole().empty()) << "rank 1 has not reported";
  followed.report(report(1, 0, 1, {5}));
  followed.report(report(1, 7, 2, {6}));
  followed.report(report(1, 7, 3, {-1}));
  followed.report(report(1, 7, 3, {7}));  // a repetition
  ASSERT_EQ(followed.whole().size(), 2U) << "rank 1 followed no plan in iteration 1";
  EXPECT_EQ(followed.whole()[0].iteration, 2);
  EXPECT_EQ(followed.whole()[0].version, 7);
  EXPECT_DOUBLE_EQ(followed.whole()[0].energy_j, 26);
  EXPECT_LT(followed.whole()[1].energy_j, 0) << "rank 1 has no energy of it";
  followed.counted_to(2);
  EXPECT_EQ(followed.whole().size(), 1U);
  EXPECT_EQ(followed.settled_from(), 6) << "two iterations after the last one under a plan";
}

TEST(FollowedIterations, ContinueInTheNextServer) {
  FollowedIterations before;
  before.report(report(0, 7, 4, {10, 20, 30, 40}));
  before.report(report(1, 7, 2, {5, 6}));
  FollowedIterations after;
  after.take(before.kept(1), 2);
  EXPECT_EQ(after.kept(1), before.kept(1));
  ASSERT_EQ(after.whole().size(), 1U) << "iteration 1 is counted";
  EXPECT_EQ(after.whole()[0].iteration, 2);
  EXPECT_DOUBLE_EQ(after.whole()[0].energy_j, 26);
  EXPECT_TRUE(after.measures(2));
  EXPECT_EQ(after.settled_from(), 7);
  after.report(report(0, 7, 3, {30}));  // a repetition
  after.report(report(1, 0, 3, {7}));   // at the highest clock
  after.report(report(1, 7, 4, {8}));
  ASSERT_EQ(after.whole().size(), 2U);
  EXPECT_DOUBLE_EQ(after.whole()[1].energy_j, 48);
}

}  // namespace
}  // namespace perseus::savings
