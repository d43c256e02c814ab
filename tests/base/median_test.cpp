#include "base/median.h"

#include <gtest/gtest.h>

namespace perseus {
namespace {

TEST(Median, OfAnOddCountIsTheMiddleValue) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(upper_median<double>({3, 1, 2}), 2);
  EXPECT_EQ(lower_median<double>({3, 1, 2}), 2);
  EXPECT_EQ(median({7}), 7);
}

TEST(Median, OfAnEvenCountFollowsItsRule) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(upper_median<double>({4, 1, 3, 2}), 3);
  EXPECT_EQ(lower_median<double>({4, 1, 3, 2}), 2);
}

}  // namespace
}  // namespace perseus
