#include "base/terminal_text.h"

#include <gtest/gtest.h>

#include <string>

namespace perseus {
namespace {

TEST(TerminalText, OrdinaryTextIsUnchanged) {
  for (const std::string text : {"", "stage 3: 'forward'\n\tnext", "Grüße, 模型 \U0001f600", "back\\slash"}) {
    EXPECT_EQ(terminal_text(text), text);
  }
}

TEST(TerminalText, NothingThatATerminalActsOnRemains) {
  EXPECT_EQ(terminal_text("\x1b[31mred\a\r\x7f"), "\\x1b[31mred\\x07\\x0d\\x7f");
  EXPECT_EQ(terminal_text(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(terminal_text("\u009b31m\u0085"), "\\u009b31m\\u0085");
  EXPECT_EQ(terminal_text("a\u202eb\u2066c\u200fd\u061ce\u2028f"), "a\\u202eb\\u2066c\\u200fd\\u061ce\\u2028f");
}

TEST(TerminalText, BytesThatAreNotUtf8AreShown) {
  EXPECT_EQ(terminal_text("\x9b"
                          "31m"),
            "\\x9b31m");                                        // a C1 control as one byte
  EXPECT_EQ(terminal_text("\xc0\x9b\xff"), "\\xc0\\x9b\\xff");  // too long
  EXPECT_EQ(terminal_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(terminal_text("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
  EXPECT_EQ(terminal_text("end\xe2\x82"), "end\\xe2\\x82");  // cut off
}

TEST(TerminalText, ASecondPassChangesNothing) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string once = terminal_text(all);
  EXPECT_EQ(terminal_text(once), once);
}

TEST(TerminalText, ALineStaysOne) {
  EXPECT_EQ(line_text("fall\nperseus: note: no limit\tany more\x1b[2K"),
            "fall\\x0aperseus: note: no limit\\x09any more\\x1b[2K");
}

}  // namespace
}  // namespace perseus
