#include "server/savings/measured_iterations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::savings {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MeasuredIterationsTest : public ::testing::Test {
 protected:
  /// Two ranks; the report ends with `last`.
  std::vector<WholeIteration> report(int rank, std::int64_t last, const std::vector<Seconds>& times,
                                     const std::vector<Joules>& energies = {}, std::int64_t version = 1,
                                     bool has_plan = true, bool straggles = false) {
    return iterations.report({rank, 2, has_plan, version, last, times, energies, straggles});
  }
  MeasuredIterations iterations;
};

TEST_F(MeasuredIterationsTest, AreCompleteOnceEveryRankHasReported) {
  EXPECT_THAT(report(0, 1, {Seconds(1), Seconds(2)}, {Joules(10), Joules(20)}), IsEmpty());
  EXPECT_THAT(report(1, 0, {Seconds(3)}, {Joules(5)}), ElementsAre(WholeIteration{0, 3, 15, 1, false}))
      << "the time of the slowest rank, the energy of both";
  EXPECT_THAT(report(1, 2, {Seconds(1), Seconds(9)}, {Joules(6), Joules(7)}, 1, true, true),
              ElementsAre(WholeIteration{1, 2, 26, 1, true}));
}

TEST_F(MeasuredIterationsTest, ARepeatedReportCountsOnce) {
  (void)report(0, 0, {Seconds(1)});
  EXPECT_THAT(report(0, 0, {Seconds(1)}), IsEmpty());
  EXPECT_THAT(report(1, 0, {Seconds(1)}), ElementsAre(WholeIteration{0, 1, -1, 1, false}));
  EXPECT_THAT(report(1, 0, {Seconds(1)}), IsEmpty());
  EXPECT_THAT(report(0, 1, {Seconds(1), Seconds(1)}), IsEmpty()) << "one of them is over, the other is not complete";
}

TEST_F(MeasuredIterationsTest, KnowIterationsThatARankRepeats) {
  EXPECT_EQ(iterations.repeated(0, 9, 4), 0);
  (void)report(0, 9, std::vector(4, Seconds(1)));
  EXPECT_EQ(iterations.repeated(0, 9, 4), 4);
  EXPECT_EQ(iterations.repeated(0, 11, 4), 2);
  EXPECT_EQ(iterations.repeated(0, 5, 4), 4) << "long ago";
  EXPECT_EQ(iterations.repeated(1, 11, 4), 0) << "another rank";
}

TEST_F(MeasuredIterationsTest, AnEnergyThatARankDoesNotReportIsUnknown) {
  (void)report(0, 2, {Seconds(1), Seconds(1), Seconds(1)}, {Joules(1), Joules(0), Joules(1)});
  const auto whole = report(1, 2, {Seconds(1), Seconds(1), Seconds(1)}, {Joules(1), Joules(1)});
  ASSERT_EQ(whole.size(), 3U);
  EXPECT_EQ(whole[0].energy_j, 2);
  EXPECT_LT(whole[1].energy_j, 0);
  EXPECT_LT(whole[2].energy_j, 0);
}

TEST_F(MeasuredIterationsTest, HaveAPlanThatAllRanksFollowed) {
  (void)report(0, 2, {Seconds(1)}, {}, 4);
  EXPECT_EQ(report(1, 2, {Seconds(1)}, {}, 5).front().version, 0) << "not the same one";
  (void)report(0, 3, {Seconds(1)}, {}, 0);
  EXPECT_EQ(report(1, 3, {Seconds(1)}, {}, 5).front().version, 0) << "one at the highest clock";
  (void)report(0, 4, {Seconds(1)}, {}, 0, false);
  EXPECT_EQ(report(1, 4, {Seconds(1)}, {}, 5).front().version, 5) << "one without clocks follows any";
}

TEST_F(MeasuredIterationsTest, ASkippedIterationIsNotAwaited) {
  (void)report(0, 1, {Seconds(1), Seconds(1)});
  EXPECT_EQ(report(1, 1, {Seconds(1)}).front().iteration, 1);
  EXPECT_THAT(report(1, 0, {Seconds(1)}), IsEmpty());
}

}  // namespace
}  // namespace perseus::savings
