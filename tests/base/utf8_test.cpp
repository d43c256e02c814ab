#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace perseus {
namespace {

TEST(Utf8, EveryCodePointComesBack) {
  for (char32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, point);
    const CodePoint read = first_code_point(text + "\xE4");
    ASSERT_EQ(read.value, point);
    ASSERT_EQ(read.bytes, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(first_code_point(std::string_view(text).substr(0, cut)).bytes, 0) << static_cast<std::uint32_t>(point);
      ASSERT_EQ(first_code_point(std::string_view(text).substr(cut)).bytes, 0) << static_cast<std::uint32_t>(point);
    }
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndCodesBeyondUnicode) {
  for (const char* text : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xFE", "\x80"}) {
    EXPECT_EQ(first_code_point(text).bytes, 0) << text;
  }
}

TEST(Utf8, PutsAQuestionMarkForEachWrongByte) {
  EXPECT_EQ(valid_utf8("a\xFF\xC3\xA4\xE2\x82z"), "a?\xC3\xA4??z");
  EXPECT_EQ(valid_utf8(std::string(3, '\xE4')), "???");
  EXPECT_EQ(valid_utf8(""), "");
}

TEST(Utf8, CountsColumnsNotBytes) { EXPECT_EQ(display_columns("gr\xC3\xB6\xC3\x9F\x65r"), 6); }

TEST(Utf8, CountsWideAndCombiningCharacters) {
  EXPECT_EQ(display_columns("\u6F22\u5B57"), 4);  // two Chinese characters
  EXPECT_EQ(display_columns("e\u0301"), 1);       // e and a combining accent
  EXPECT_EQ(display_columns("\uFF21\uD55C\u30AB"), 6);
  EXPECT_EQ(display_columns("\U0001F680"), 2);
  EXPECT_EQ(display_columns("a\u200Bb\u2026"), 3);
}

TEST(Utf8, RecognizesCharactersThatChangeTheDisplay) {
  for (const char32_t point : {0U, 0x1BU, 0x7FU, 0x85U, 0x9FU, 0x61CU, 0x200EU, 0x2028U, 0x202EU, 0x2066U, 0x2069U}) {
    EXPECT_TRUE(changes_display(point)) << static_cast<std::uint32_t>(point);
  }
  for (const char32_t point : {0x20U, 0xA0U, 0x200BU, 0x2027U, 0x202FU, 0x2065U, 0x206AU, 0x1F680U}) {
    EXPECT_FALSE(changes_display(point)) << static_cast<std::uint32_t>(point);
  }
}

}  // namespace
}  // namespace perseus
