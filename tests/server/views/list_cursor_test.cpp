#include "server/views/list_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::views {
namespace {

using ::testing::ElementsAre;

TEST(ListCursorTest, ReadsWhatItWrote) {
  const ListCursor cursor{1'700'000'000.0625, {"12", "", "j_1,2"}};
  const auto read = ListCursor::parse(cursor.text(), 3);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->time_s, cursor.time_s);
  EXPECT_THAT(read->names, ElementsAre("12", "", "j_1,2")) << "the last one has the commas";
}

TEST(ListCursorTest, RefusesOtherText) {
  for (const char* const wrong : {"", "1", "1,a", "x,a,b", "1x,a,b", "nan,a,b", "inf,a,b", "1e999,a,b", " 1,a,b"})
    EXPECT_FALSE(ListCursor::parse(wrong, 2)) << wrong;
  EXPECT_TRUE(ListCursor::parse("1,a,b", 2));
}

}  // namespace
}  // namespace perseus::views
