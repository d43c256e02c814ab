#include "base/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus {
namespace {

using testing::ElementsAre;

TEST(Split, KeepsItemsAsTheyAre) { EXPECT_THAT(split("a, b,c", ','), ElementsAre("a", " b", "c")); }

TEST(Split, KeepsEmptyItems) {
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
  EXPECT_THAT(split("a,", ','), ElementsAre("a", ""));
  EXPECT_THAT(split(",a,,b", ','), ElementsAre("", "a", "", "b"));
}

TEST(Split, UsesOnlyItsSeparator) { EXPECT_THAT(split("fail=f:1,x", ':'), ElementsAre("fail=f", "1,x")); }

}  // namespace
}  // namespace perseus
