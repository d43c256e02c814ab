// Every text in this folder is one test: see README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
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

std::string text_of(const std::string& name) {
  std::ifstream file(folder + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_GT(text.str().size(), 0U);
  return text.str();
}

TEST_P(Scenario, PlaysOverHttp) {
  OverHttp target;
  const std::string name = GetParam() + ".txt";
  const Status played = play(text_of(name), name, folder, target);
  EXPECT_TRUE(played.ok()) << played.error().message;
}

/// The same with ranks that know budgets, so that a limit could bind their jobs.
std::string with_budgets(const std::string& text) {
  std::string changed, line;
  for (std::stringstream lines(text); std::getline(lines, line);) {
    const std::size_t end = std::min(line.find('#'), line.size());
    const bool registers = line.starts_with("rank ") || line.starts_with("ranks ");
    if (registers) line.insert(end, " keeps_budgets=yes ");
    changed += line + "\n";
  }
  return changed;
}

/// A server with limits acts every second, so that a month takes minutes: the text's days are hours here.
std::string with_hours(const std::string& text) {
  return std::regex_replace(text, std::regex("(^|\\n)at ([0-9]+)d"), "$1at $2h");
}

/// Jobs under a limit that cannot bind get the plans, versions, answers and times that they get without a site.
TEST_P(Scenario, PlaysTheSameUnderALimitThatCannotBind) {
  const std::string text = text_of(GetParam() + ".txt");
  if (text.find("\nsite ") != std::string::npos) GTEST_SKIP() << "it sets limits of its own";
  service::ServiceOptions options;
  const bool has_days = with_hours(text) != text;
  if (has_days) options.idle_expiry_s /= 24;
  InProcess target(options);
  const Status limited = play("site hall=1e9\n", "limit", folder, target);
  ASSERT_TRUE(limited.ok()) << limited.error().message;
  const Status played = play(with_budgets(with_hours(text)), GetParam() + ".txt", folder, target);
  EXPECT_TRUE(played.ok()) << played.error().message;
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
