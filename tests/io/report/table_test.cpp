#include "io/report/table.h"

#include <gtest/gtest.h>

namespace perseus::report {
namespace {

TEST(TextTableTest, ATableThatFitsHasItsColumnsTwoSpacesApart) {
  TextTable table({"name", "of a", "b"});
  table.add({"one", "1", "22"});
  EXPECT_EQ(table.to_string(14), "name  of a   b\none      1  22\n");
  EXPECT_EQ(table.to_string(), table.to_string(14));
}

TEST(TextTableTest, ATableWithoutSpacesInItsTitlesIsNarrowedFirst) {
  TextTable table({"name", "a", "b"});
  table.add({"one", "1", "22"});
  EXPECT_EQ(table.to_string(10), "name a  b\none  1 22\n");
}

TEST(TextTableTest, ATableThatIsTooWideIsShownInPartsWithTheLeftColumns) {
  TextTable table({"name", "kind", "first value", "second", "third value"}, 2);
  table.add({"one", "x", "1", "2", "3"});
  table.add({"two", "y", "10", "20", "30"});
  EXPECT_EQ(table.to_string(31),
            "name  kind  first value  second\n"
            "one   x               1       2\n"
            "two   y              10      20\n"
            "\n"
            "name  kind  third value\n"
            "one   x               3\n"
            "two   y              30\n");
  EXPECT_EQ(table.to_string(3).substr(0, 23), "name  kind  first value") << "a part has at least one more column";
}

TEST(TextTableTest, LeftColumnsAloneStayTogether) {
  TextTable table({"a b", "c d"}, 2);
  EXPECT_EQ(table.to_string(2), "a b  c d\n");
}

}  // namespace
}  // namespace perseus::report
