// Options that an environment variable can set.
#include "training/client/options.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/training/client/scripted_server.h"
#include "tests/training/device/environment.h"

namespace perseus::client {
namespace {

TEST(Options, ThePlanTolerance) {
  std::vector<std::string> remarks;
  perseus_options given = default_options();
  const auto read = [&] { return read_options(&given, remarks).plan_tolerance; };
  device::Environment none("PERSEUS_PLAN_TOLERANCE", nullptr);
  EXPECT_EQ(read(), 0.01);
  device::Environment variable("PERSEUS_PLAN_TOLERANCE", "0.03");
  EXPECT_EQ(read(), 0.03);
  given.plan_tolerance = 0.02;
  EXPECT_EQ(read(), 0.02);
  given.plan_tolerance = -1;
  EXPECT_EQ(read(), -1);
  EXPECT_TRUE(remarks.empty());
  given.plan_tolerance = 0;
  for (const char* const wrong : {"1 %", "nan", "11"}) {
    device::Environment odd("PERSEUS_PLAN_TOLERANCE", wrong);
    EXPECT_EQ(read(), 0.01) << wrong;
  }
  EXPECT_THAT(remarks,
              ::testing::ElementsAre(
                  ::testing::StartsWith("PERSEUS_PLAN_TOLERANCE is '1 %', ignored; allowed: a number up to 10"),
                  ::testing::HasSubstr("'nan'"), ::testing::HasSubstr("'11'")));
  given.size = offsetof(perseus_options, plan_tolerance);  // a program compiled against an older header
  given.plan_tolerance = 5;
  EXPECT_EQ(read(), 0.03);
}

TEST(Options, TheMostSlowdown) {
  std::vector<std::string> remarks;
  const auto read = [&](const char* value) {
    device::Environment variable("PERSEUS_MOST_SLOWDOWN", value);
    return read_options(nullptr, remarks).most_slowdown;
  };
  EXPECT_EQ(read(nullptr), 2);
  EXPECT_EQ(read("1"), 1);
  EXPECT_EQ(read("6.5"), 6.5);
  EXPECT_TRUE(remarks.empty());
  for (const char* const wrong : {"0.5", "nan", "2x"}) EXPECT_EQ(read(wrong), 2) << wrong;
  EXPECT_THAT(remarks, ::testing::SizeIs(3));
  EXPECT_EQ(remarks[0], "PERSEUS_MOST_SLOWDOWN is '0.5', ignored; allowed: 1 to 1000");
}

/// The tier of a program with these options under these variables.
std::string tier_of(const perseus_options& given, const char* domain, const char* least_rate, const char* priority,
                    std::vector<std::string>& remarks) {
  device::Environment first("PERSEUS_DOMAIN", domain), second("PERSEUS_LEAST_RATE", least_rate),
      third("PERSEUS_PRIORITY", priority);
  const ClientOptions options = read_options(&given, remarks);
  const auto shown = [](const std::optional<double>& value) { return value ? fmt::format("{}", *value) : "none"; };
  return fmt::format("'{}' {} {}", options.domain, shown(options.least_rate), shown(options.priority));
}

TEST(Options, TheTier) {
  std::vector<std::string> remarks;
  perseus_options given = default_options();
  const auto read = [&](const char* domain, const char* least_rate, const char* priority) {
    return tier_of(given, domain, least_rate, priority, remarks);
  };
  EXPECT_EQ(read(nullptr, nullptr, nullptr), "'' none none");
  EXPECT_EQ(read("", "", ""), "'' none none");
  EXPECT_EQ(read("row-a", "0.9", "4"), "'row-a' 0.9 4");
  EXPECT_EQ(read("row-a", "0", "0.001"), "'row-a' 0 0.001") << "a least rate of 0 is one";
  given.domain = "row-b";
  given.least_rate = 0;
  given.priority = 2;
  EXPECT_EQ(read("row-a", "0.9", "4"), "'row-b' 0 2");
  EXPECT_TRUE(remarks.empty());

  given.least_rate = 1.5;
  given.priority = -1;
  EXPECT_EQ(read("row-a", "0.9", "4"), "'row-b' none none") << "a wrong value is no tier that can be guessed";
  EXPECT_THAT(remarks, ::testing::ElementsAre("least_rate is 1.5, ignored; allowed: 0 to 1",
                                              "priority is -1, ignored; allowed: 0.001 to 1000"));
  remarks.clear();
  given = default_options();
  EXPECT_EQ(read(nullptr, "90%", "0"), "'' none none");
  EXPECT_THAT(remarks, ::testing::ElementsAre("PERSEUS_LEAST_RATE is '90%', ignored; allowed: 0 to 1",
                                              "PERSEUS_PRIORITY is '0', ignored; allowed: 0.001 to 1000"));
  given.size = offsetof(perseus_options, domain);  // a program compiled against an older header
  given.least_rate = 0.5;
  EXPECT_EQ(read(nullptr, nullptr, nullptr), "'' none none");
}

TEST(Options, NoNameLabelOrFactCostsTheJobItsPlan) {
  std::vector<std::string> remarks;
  perseus_options given = default_options();
  given.job_name = "a\nb";
  given.domain = "row\x01";
  given.facts = "model=gpt\nnote=a\tb\nperseus.request=1";
  given.labels = "team=a b,gang=x";
  const ClientOptions options = read_options(&given, remarks);
  EXPECT_EQ(options.job_name + options.domain, "");
  EXPECT_THAT(options.facts, ::testing::ElementsAre(::testing::Pair("model", "gpt")));
  EXPECT_THAT(options.labels, ::testing::ElementsAre(::testing::Pair("gang", "x")));
  EXPECT_THAT(
      remarks,
      ::testing::UnorderedElementsAre(
          "job_name: must be UTF-8 without control or invisible characters; ignored",
          "domain: must be UTF-8 without control or invisible characters; ignored",
          "facts.note: must be UTF-8 without control or invisible characters; this one is left out",
          ::testing::StartsWith("facts: 'perseus.request'; allowed: names that do not begin with 'perseus.'"),
          "labels: 'team=a b'; allowed: a name of 1 to 63 and a value of at most 63 letters, digits and . _ - / "
          ": + @; this one is left out"));
}

TEST(Options, NoNumberOfLabelsOrFactsCostsTheJobItsPlan) {
  std::string labels, facts;
  for (int i = 100; i < 164; ++i) {
    labels += fmt::format("{}l{}=x", labels.empty() ? "" : ",", i);
    facts += fmt::format("f{}=x\n", i);
  }
  std::vector<std::string> remarks;
  perseus_options given = default_options();
  given.facts = facts.c_str();
  EXPECT_THAT(read_options(&given, remarks).facts, ::testing::SizeIs(64));
  EXPECT_THAT(remarks, ::testing::IsEmpty());
  facts += "f164=x";
  given.facts = facts.c_str();
  given.labels = labels.c_str();
  const ClientOptions options = read_options(&given, remarks);
  EXPECT_THAT(options.facts, ::testing::SizeIs(64));
  EXPECT_EQ(options.facts.rbegin()->first, "f163");
  EXPECT_THAT(options.labels, ::testing::SizeIs(32));
  EXPECT_EQ(options.labels.rbegin()->first, "l131");
  EXPECT_THAT(remarks, ::testing::ElementsAre("facts: 65 of them; allowed: 64; those after 'f163' are left out",
                                              "labels: 64 of them; allowed: 32; those after 'l131' are left out"));
}

TEST(Options, ReportsOfStragglersCanBeTurnedOff) {
  std::vector<std::string> remarks;
  const auto read = [&](const char* value) {
    device::Environment variable("PERSEUS_STRAGGLER_REPORTS", value);
    return read_options(nullptr, remarks).reports_straggler;
  };
  EXPECT_TRUE(read(nullptr));
  EXPECT_TRUE(read("1"));
  EXPECT_FALSE(read("0"));
  EXPECT_TRUE(remarks.empty());
  EXPECT_TRUE(read("no"));
  EXPECT_THAT(remarks, ::testing::ElementsAre("PERSEUS_STRAGGLER_REPORTS is 'no', ignored; allowed: 0, 1"));
}

TEST(Options, TheLogOnStandardError) {
  std::vector<std::string> remarks;
  const auto printed = [&](const char* level) {
    device::Environment variable("PERSEUS_LOG", level);
    ::testing::internal::CaptureStderr();
    const ClientOptions options = read_options(nullptr, remarks);
    options.log(LogLevel::info, "a plan");
    options.log(LogLevel::warning, "a problem");
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string all = "perseus: a plan\nperseus: warning: a problem\n";
  EXPECT_EQ(printed(nullptr), all);
  EXPECT_EQ(printed("info"), all);
  EXPECT_EQ(printed("warning"), "perseus: warning: a problem\n");
  EXPECT_EQ(printed("off"), "");
  EXPECT_TRUE(remarks.empty());
  EXPECT_EQ(printed("loud"), all);
  EXPECT_THAT(remarks, ::testing::ElementsAre("PERSEUS_LOG is 'loud', ignored; allowed: off, warning, info"));
}

}  // namespace
}  // namespace perseus::client
