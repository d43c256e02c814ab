#include "io/formats/boost_json_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

namespace perseus::formats {
namespace {

namespace json = boost::json;

TEST(BoostJsonText, PrintsNumbersAsPeopleWriteThem) {
  const json::value value{{"power_w", 83.64}, {"count", 3},      {"most", 18446744073709551615U},
                          {"ok", true},       {"none", nullptr}, {"list", {0.001, "<a>", json::object{}}}};
  EXPECT_EQ(
      json_text(value),
      R"({"power_w":83.64,"count":3,"most":18446744073709551615,"ok":true,"none":null,"list":[0.001,"\u003ca>",{}]})");
}

json::value random_value(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<std::int64_t>(random()) - (std::int64_t{1} << 31U);
    case 3:
      return std::ldexp(static_cast<double>(random()) + 0.5, static_cast<int>(random() % 600) - 300);
    case 4:
      return json::string(random() % 5, static_cast<char>(random() % 128));
    case 5: {
      json::array array;
      for (unsigned i = random() % 4; i > 0; --i) array.push_back(random_value(random, depth - 1));
      return array;
    }
    default: {
      json::object object;
      for (unsigned i = random() % 4; i > 0; --i) object[std::to_string(i)] = random_value(random, depth - 1);
      return object;
    }
  }
}

/// Boost's parser rounds doubles a little differently; all else is equal.
bool is_same(const json::value& a, const json::value& b) {
  if (a.is_double() || b.is_double()) {
    const double x = a.to_number<double>(), y = b.to_number<double>();
    return std::abs(x - y) <= 1e-15 * std::abs(x);
  }
  if (a.is_array() && b.is_array()) {
    return std::equal(a.get_array().begin(), a.get_array().end(), b.get_array().begin(), b.get_array().end(), is_same);
  }
  if (a.is_object() && b.is_object()) {
    if (a.get_object().size() != b.get_object().size()) return false;
    for (const auto& [key, value] : a.get_object()) {
      if (!b.get_object().contains(key) || !is_same(value, b.at(key))) return false;
    }
    return true;
  }
  return a == b;
}

TEST(BoostJsonText, ReadsBackTheSame) {
  std::mt19937 random(53);
  for (int i = 0; i < 2000; ++i) {
    const json::value value = random_value(random, 3);
    EXPECT_TRUE(is_same(value, json::parse(json_text(value)))) << json_text(value);
  }
}

}  // namespace
}  // namespace perseus::formats
