#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>
#include <string>

#include "io/http/http_message.h"

namespace perseus::http {
namespace {

TEST(JsonQuoted, ReadsBackTheSame) {
  for (const std::string& text :
       {std::string(), std::string("plain"), std::string("\"\\\n\t\0\x1f", 6), std::string("a\"b"), std::string("\\"),
        std::string("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xa1"), std::string(R"({"rank":0,"why":"a \"b\""})")}) {
    EXPECT_EQ(boost::json::parse(json_quoted(text)).as_string(), text);
  }
}

TEST(JsonQuoted, BytesThatAreNoTextBecomeQuestionMarks) {
  EXPECT_EQ(json_quoted("a\xff\xc3(\xed\xa0\x80z\xf0\x9f"), R"("a??(???z??")");
}

TEST(JsonQuoted, AnyBytesBecomeOneValidString) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (random() % 2 == 0 ? 256 : 128));
    EXPECT_NO_THROW((void)boost::json::parse(json_quoted(bytes)).as_string()) << json_quoted(bytes);
  }
}

}  // namespace
}  // namespace perseus::http
