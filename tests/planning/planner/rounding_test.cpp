// The sequence of weights that wanted deadlines are rounded in.
#include "planning/planner/rounding.h"

#include <gtest/gtest.h>

#include <set>

namespace perseus::planner {
namespace {

TEST(RoundingWeights, VaryWithinTheirRangesAndEveryOtherIsPunctual) {
  std::set<double> discounts;
  for (int k = 0; k < 400; ++k) {
    const RoundingWeights weights = varied_weights(k);
    if (k % 2 == 0) {
      EXPECT_EQ(weights.late, Rounding::kPunctual.late) << k;
    } else {
      EXPECT_GE(weights.late, 0.05) << k;
      EXPECT_LE(weights.late, 3) << k;
    }
    EXPECT_GE(weights.early, 0) << k;
    EXPECT_LE(weights.early, 0.4) << k;
    EXPECT_GE(weights.discount, 0.4) << k;
    EXPECT_LE(weights.discount, 0.9) << k;
    discounts.insert(weights.discount);
  }
  EXPECT_EQ(discounts.size(), 400u);
}

TEST(RoundingWeights, AreFewerForLargerDags) {
  EXPECT_EQ(weights_at_wanted(0), 96);
  EXPECT_EQ(weights_at_wanted(192), 96);
  EXPECT_EQ(weights_at_wanted(1000), 25);
  EXPECT_EQ(weights_at_wanted(1 << 20), 16);
}

}  // namespace
}  // namespace perseus::planner
