#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace perseus {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error{ErrorCode::invalid_input, "odd"};
  return number / 2;
}

TEST(Result, IsAValueOrAnError) {
  ASSERT_TRUE(half(8).ok());
  EXPECT_EQ(*half(8), 4);
  ASSERT_FALSE(half(7).ok());
  EXPECT_EQ(half(7).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(half(7).error().message, "odd");
}

TEST(Result, MovesItsValueOut) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  EXPECT_EQ(*std::move(result).value(), 3);
}

TEST(ResultDeathTest, ValueOfAFailureAborts) {
  EXPECT_DEATH((void)half(7).value(), "value\\(\\) of a failed Result: odd");
}

TEST(ResultDeathTest, CheckNamesConditionAndMessage) {
  EXPECT_DEATH(PERSEUS_CHECK(1 == 2, "numbers changed"), "1 == 2: numbers changed");
}

}  // namespace
}  // namespace perseus
