#include "base/count_text.h"

#include <gtest/gtest.h>

namespace perseus {
namespace {

TEST(CountText, HasThePluralOfAllButOne) {
  EXPECT_EQ(count_text(1, "rank"), "1 rank");
  EXPECT_EQ(count_text(0, "rank"), "0 ranks");
  EXPECT_EQ(count_text(12U, "rank"), "12 ranks");
  EXPECT_EQ(count_text(1, "microbatch"), "1 microbatch");
  EXPECT_EQ(count_text(4L, "microbatch"), "4 microbatches");
}

}  // namespace
}  // namespace perseus
