// The kinds of alerts, where a text repeats the table of server/jobs/alert.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "program.h"
#include "server/jobs/alert.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::IsSupersetOf;
using Words = std::vector<std::string>;

Words column(std::string_view jobs::AlertEntry::*member) {
  Words words;
  for (const jobs::AlertEntry& entry : jobs::kAlertTable) words.emplace_back(entry.*member);
  return words;
}

std::string source(const fs::path& file) { return content_of(fs::path(PERSEUS_SOURCE_DIR) / file); }

/// The text from `from` to before `to`.
std::string part(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from);
  EXPECT_NE(begin, std::string::npos) << from;
  return text.substr(begin, text.find(to, begin) - begin);
}

/// What the group of `pattern` matches.
Words words_in(const std::string& part, const std::string& pattern) {
  const std::regex expression(pattern);
  Words words;
  for (std::sregex_iterator match(part.begin(), part.end(), expression), end; match != end; ++match) {
    words.push_back((*match)[1]);
  }
  return words;
}

TEST(AlertKinds, AreThoseOfTheApiOfTheDashboardAndOfTheManual) {
  const Words names = column(&jobs::AlertEntry::name);
  const std::string api = source("docs/openapi.json");
  EXPECT_EQ(
      words_in(part(part(api, "\"listAlerts\"", "only alerts of this kind"), "\"enum\"", "]"), R"re("(\w+)",?\n)re"),
      names);
  EXPECT_EQ(words_in(part(part(api, "\n   \"Alert\": {", "description"), "\"enum\"", "]"), R"re("(\w+)",?\n)re"),
            names);
  EXPECT_EQ(words_in(part(source("web/src/dashboard/alerts.js"), "const kinds = {", "};"), R"((\w+): ')"), names);
  EXPECT_EQ(words_in(part(source("docs/serve.md"), "| alert | condition |", "\n\n"), R"(\n\| `(\w+)` \|)"), names);
}

TEST(AlertKinds, HaveTheTitlesOfThePrometheusRules) {
  EXPECT_THAT(words_in(source("deploy/prometheus/perseus.rules.yml"), R"(- alert: (\w+))"),
              IsSupersetOf(column(&jobs::AlertEntry::title)));
}

}  // namespace
}  // namespace perseus::testing
