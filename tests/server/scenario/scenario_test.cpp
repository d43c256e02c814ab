// Every text in this folder is one test: see README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/over_http.h"

namespace perseus::testing {
namespace {

const std::string folder = std::string(PERSEUS_SOURCE_DIR) + "/tests/server/scenario";

std::vector<std::string> scenarios() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

class Scenario : public ::testing::TestWithParam<std::string> {};

void expect_to_play(const std::string& name, ScenarioTarget& target) {
  std::ifstream file(folder + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  ASSERT_GT(text.str().size(), 0U);
  const Status played = play(text.str(), name, folder, target);
  EXPECT_TRUE(played.ok()) << played.error().message;
}

TEST_P(Scenario, PlaysInProcess) {
  InProcess target;
  expect_to_play(GetParam() + ".txt", target);
}

TEST_P(Scenario, PlaysOverHttp) {
  OverHttp target;
  expect_to_play(GetParam() + ".txt", target);
}

INSTANTIATE_TEST_SUITE_P(Texts, Scenario, ::testing::ValuesIn(scenarios()),
                         [](const auto& test) { return test.param; });

TEST(ScenarioText, ErrorsNameTheStepThatFailed) {
  InProcess target;
  const std::string text = "profile small small.csv\njob a pp=2 profile=small\n\nexpect a state=finished\n";
  const Status played = play(text, "story", folder, target);
  ASSERT_FALSE(played.ok());
  EXPECT_EQ(played.error().message, "story:4: expect a state=finished: expected state=finished, found 'deployed'");
}

TEST(ScenarioText, RefusesAStepThatItDoesNotKnow) {
  InProcess target;
  const Status played = play("dance a\n", "story", folder, target);
  ASSERT_FALSE(played.ok());
  EXPECT_EQ(played.error().message, "story:1: dance a: no step 'dance'");
}

}  // namespace
}  // namespace perseus::testing
