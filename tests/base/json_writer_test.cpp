#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace perseus {
namespace {

TEST(JsonWriter, StringsReadBackAndNeverEndAScript) {
  for (const std::string& text :
       {std::string(), std::string("plain"), std::string("\"\\\n\t\0\x1f\x7f", 7), std::string("</script><!--"),
        std::string("\xe2\x80\xa8 \xe2\x80\xa9 é 漢 🜂 \xef\xbf\xbe"), std::string(R"({"why":"a \"b\""})")}) {
    const std::string json = json_text(text);
    EXPECT_EQ(json.find('<'), std::string::npos) << json;
    EXPECT_EQ(json.find("\xe2\x80\xa8"), std::string::npos) << json;
    EXPECT_EQ(boost::json::parse(json).as_string(), text);
  }
}

TEST(JsonWriter, BytesThatAreNoTextBecomeReplacementCharacters) {
  EXPECT_EQ(json_text(std::string("a\xff\xc3(\xed\xa0\x80z\xf0\x9f")), R"("a��(���z��")");
}

TEST(JsonWriter, AnyBytesBecomeOneValidString) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (random() % 2 == 0 ? 256 : 128));
    EXPECT_NO_THROW((void)boost::json::parse(json_text(bytes)).as_string()) << json_text(bytes);
  }
}

TEST(JsonWriter, NumbersAreAsPeopleWriteThem) {
  EXPECT_EQ(json_text(83.64), "83.64");
  EXPECT_EQ(json_text(-0.001), "-0.001");
  EXPECT_EQ(json_text(2.0), "2");
  EXPECT_EQ(json_text(1790000000.25), "1790000000.25");
  EXPECT_EQ(json_text(250000.0), "250000");
  EXPECT_EQ(json_text(1e20), "1e+20");
  EXPECT_EQ(json_text(1.5e-7), "1.5e-07");
  EXPECT_EQ(json_text(std::int64_t{-9007199254740993}), "-9007199254740993");
  EXPECT_EQ(json_text(std::uint64_t{18446744073709551615U}), "18446744073709551615");
}

TEST(JsonWriter, NumbersThatAreNotFiniteBecomeNull) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(json_text(std::array{infinite, -infinite, std::nan("")}), "[null,null,null]");
}

TEST(JsonWriter, EveryNumberReadsBackExactly) {
  std::mt19937_64 random(20);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = json_text(value);
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    EXPECT_NO_THROW((void)boost::json::parse(text)) << text;
  }
}

TEST(JsonWriter, RoundsToDigitsAndDecimals) {
  EXPECT_EQ(json_text(with_digits(83.6412345678, 4)), "83.64");
  EXPECT_EQ(json_text(with_digits(123456789, 3)), "123000000");
  EXPECT_EQ(json_text(with_decimals(83.64999, 2)), "83.65");
  EXPECT_EQ(json_text(with_decimals(-1e-9, 3)), "0");
  EXPECT_EQ(json_text(with_decimals(1.7e308, 3)), "1.7e+308");
}

struct Described {
  int number = 0;
  std::optional<Seconds> time;
  std::vector<bool> flags;
  std::map<std::string, std::vector<double>> by_name;
  std::string text;
};
template <class F>
void describe(F& f, const Described& d) {
  f.always("number", d.number);
  f("time_s", d.time);
  f("flags", d.flags);
  f("by_name", d.by_name);
  f("text", d.text);
}

TEST(JsonWriter, LeavesOutMembersAtTheirDefault) {
  EXPECT_EQ(json_text(Described{}), R"({"number":0})");
  EXPECT_EQ(json_text(Described{1, Seconds(0), {true, false}, {{"a\"b", {0.5}}, {"c", {}}}, "x"}),
            R"({"number":1,"time_s":0,"flags":[true,false],"by_name":{"a\"b":[0.5],"c":[]},"text":"x"})");
}

TEST(JsonWriter, WritesObjectsAndListsWithoutAStruct) {
  const std::vector<int> clocks{1410, 1245};
  const std::string text = json_object([&](JsonWriter& f) {
    f.always("clocks", JsonList{clocks, [](int clock) { return std::pair("forward", Megahertz(clock)); }});
    f.always("inner", JsonObject{[](JsonWriter& inner) { inner.always("nothing", std::optional<int>()); }});
    f.always("raw", JsonRaw{"[1]"});
    f.always("parts", std::tuple(1, true, "x"));
  });
  EXPECT_EQ(
      text,
      R"({"clocks":[["forward",1410],["forward",1245]],"inner":{"nothing":null},"raw":[1],"parts":[1,true,"x"]})");
}

TEST(JsonWriter, WritesLinesForPeople) {
  const std::vector<int> numbers{1, 2};
  const auto twice = [](int number) { return 2 * number; };
  EXPECT_EQ(json_text(JsonLines{numbers, twice}), "[2,\n4]");
  const auto members = [&](JsonWriter& f) {
    f.always("a", 1);
    f.always("b", numbers);
  };
  EXPECT_EQ(json_object(members, JsonLayout::lines), "{\n  \"a\": 1,\n  \"b\": [1,2]\n}");
}

TEST(JsonWriter, TakesTheMembersOfAnObjectThatIsText) {
  const auto with = [](std::string_view object) {
    return json_object([&](JsonWriter& f) {
      f.members_of(object);
      f.always("last", 1);
    });
  };
  EXPECT_EQ(with("{}"), R"({"last":1})");
  EXPECT_EQ(with(R"({"first":{"a":0},"b":[]})"), R"({"first":{"a":0},"b":[],"last":1})");
}

}  // namespace
}  // namespace perseus
