// `perseus advise` as a user runs it: its savings are the plan's, and the sums over GPUs, days and years are right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "program.h"

namespace perseus::testing {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> words_about_sample(const std::string& command, const std::vector<std::string>& more) {
  std::vector<std::string> words{command, sample_profile(), "-m", "4", "--blocking-power", "90", "--effort", "low"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json::object json_of(const std::vector<std::string>& words) {
  const Outcome outcome = run_perseus(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.exit_code == 0 ? json::parse(outcome.out).as_object() : json::object{};
}

double number(const json::value& row, const char* name) { return row.at(name).to_number<double>(); }

TEST(AdviseCommand, EstimateAgreesWithThePlan) {
  const json::object advised = json_of(words_about_sample("advise", {"--noise", "0", "--gpus", "8", "--json"}));
  const json::object planned = json_of(words_about_sample("plan", {"--noise", "0", "--straggler", "1.1", "--json"}));
  const json::array& rows = advised.at("advice").as_array();
  ASSERT_EQ(rows.size(), 7);
  const double saving_pct = number(planned.at("default_plan"), "saving_pct");
  EXPECT_GT(saving_pct, 1);
  EXPECT_NEAR(number(rows[0], "saving_pct"), saving_pct, 0.1);
  EXPECT_NEAR(number(rows[5], "saving_pct"), number(planned.at("straggler"), "saving_pct"), 0.1);
  for (int i = 0; i < 3; ++i) EXPECT_LE(number(rows[i], "saving_pct"), number(rows[i + 1], "saving_pct") + 1e-9) << i;
  for (const json::value& row : rows) EXPECT_FALSE(row.as_object().contains("saving_stddev_pct"));
}

TEST(AdviseCommand, ClocksThatArriveLateSaveWhatTheirPlanSaves) {
  const std::vector<std::string> late{"--noise", "0", "--switch-latency", "0.02", "--json"};
  const json::value planned = json_of(words_about_sample("plan", late));
  const double saving_pct = number(planned.at("default_plan"), "saving_pct");
  const json::value advised = json_of(words_about_sample("advise", late));
  EXPECT_NEAR(number(advised.at("advice").at(0), "saving_pct"), saving_pct, 1e-6);
  EXPECT_THAT(json::serialize(advised.at("assumptions")), HasSubstr("a clock takes effect 0.02 s after"));
  const json::value at_once = json_of(words_about_sample("advise", {"--noise", "0", "--json"}));
  EXPECT_GT(number(at_once.at("advice").at(0), "saving_pct"), saving_pct + 0.5);
}

TEST(AdviseCommand, SumsOverGpusDaysAndYears) {
  const json::object advised = json_of(words_about_sample(
      "advise", {"--gpus", "1024", "--price", "0.25", "--currency", "EUR", "--carbon", "400", "--json"}));
  const int ranks = 4;
  for (const json::value& row : advised.at("advice").as_array()) {
    const int pipelines = 1024 / ranks - (row.as_object().contains("straggler") ? 1 : 0);
    const double kwh = number(row, "saved_j") * pipelines * 86400 / number(row, "time_s") / 3.6e6;
    EXPECT_NEAR(number(row, "kwh_per_day"), kwh, 1e-6 * kwh);
    EXPECT_NEAR(number(row, "kwh_per_year"), 365 * kwh, 1e-3 * kwh);
    EXPECT_NEAR(number(row, "cost_per_year"), 365 * kwh * 0.25, 1e-3 * kwh);
    EXPECT_NEAR(number(row, "co2_kg_per_year"), 365 * kwh * 0.4, 1e-3 * kwh);
  }
  EXPECT_EQ(advised.at("currency").as_string(), "EUR");
  EXPECT_TRUE(advised.at("origin").as_object().contains("SHA-256 of sample_profile.csv"));
}

/// The sample profile with two equal ranks a stage.
std::string with_two_ranks_a_stage(const ScratchFolder& scratch) {
  const std::string path = scratch.path("two_ranks_a_stage.csv");
  std::ifstream from(sample_profile());
  std::ofstream to(path);
  std::string line;
  std::getline(from, line);
  to << line << ",rank\n";
  while (std::getline(from, line)) to << line << ",0\n" << line << ",1\n";
  return path;
}

TEST(AdviseCommand, CountsTheGpusOfStagesThatHaveSeveral) {
  std::vector<std::string> words = words_about_sample("advise", {"--noise", "0", "--gpus", "64", "--json"});
  const json::object one = json_of(words);
  const ScratchFolder scratch;
  words[1] = with_two_ranks_a_stage(scratch);
  const json::object two = json_of(words);
  for (std::size_t i = 0; i < 7; ++i) {
    const json::value& row = two.at("advice").at(i);
    const double kwh = number(one.at("advice").at(i), "kwh_per_day");
    const double waiting = i < 4 ? 1 : (7.0 / 8) / (15.0 / 16);
    EXPECT_NEAR(number(row, "kwh_per_day"), waiting * kwh, 0.02 * kwh)
        << "64 GPUs are half as many pipelines of twice the GPUs";
  }
  EXPECT_THAT(std::string(two.at("assumptions").at(0).as_string()), HasSubstr("64 GPUs (8 a pipeline)"));
}

TEST(AdviseCommand, ANoisyProfileGivesErrorBars) {
  const json::object advised = json_of(words_about_sample("advise", {"--noise", "2", "--json"}));
  for (const json::value& row : advised.at("advice").as_array()) {
    EXPECT_GT(number(row, "saving_stddev_pct"), 0);
    EXPECT_LT(number(row, "saving_stddev_pct"), 2);
  }
}

/// The sample profile, whose highest clock is 1500 MHz, at that clock alone.
std::string at_one_clock(const ScratchFolder& scratch) {
  const std::string path = scratch.path("at_one_clock.csv");
  std::ifstream from(sample_profile());
  std::ofstream to(path);
  for (std::string line; std::getline(from, line);) {
    if (line.starts_with("stage,") || line.find(",1500,") != std::string::npos) to << line << "\n";
  }
  return path;
}

TEST(AdviseCommand, AModelCompletesAProfileOfOneClock) {
  std::vector<std::string> words = words_about_sample("advise", {"--model-clocks", "H100-SXM"});
  const Outcome several = run_perseus(words);
  EXPECT_EQ(several.exit_code, 65);
  EXPECT_THAT(several.err, HasSubstr("only a profile of one clock is completed by a model"));
  const ScratchFolder scratch;
  words[1] = at_one_clock(scratch);
  const Outcome plain = run_perseus(words);
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.out,
              AllOf(HasSubstr("saving (modeled)"), HasSubstr("one measured, the other clocks of H100-SXM modeled"),
                    HasSubstr("all but one clock are modeled, not measured")));
  words.emplace_back("--json");
  const json::object advised = json_of(words);
  EXPECT_TRUE(advised.at("modeled").as_bool());
  // Each GPU that the model allows is planned for the time of everything at the measured clock, which is known.
  std::vector<std::string> known = words_about_sample("plan", {"--json"});
  known[1] = words[1];
  EXPECT_NEAR(number(advised.at("advice").at(0), "time_s"), number(json_of(known), "t_max_s"), 1e-9);
  EXPECT_THAT(plain.out, Not(HasSubstr("nothing to choose")));
  for (const json::value& row : advised.at("advice").as_array()) EXPECT_GT(number(row, "saving_stddev_pct"), 2);
  words[words.size() - 2] = "H900";
  const Outcome unknown = run_perseus(words);
  EXPECT_EQ(unknown.exit_code, 64);
  EXPECT_THAT(unknown.out, HasSubstr("unknown GPU 'H900'; allowed: A40"));
}

TEST(AdviseCommand, PrintsATableAndItsAssumptions) {
  const Outcome plain = run_perseus(words_about_sample("advise", {"--noise", "0", "--gpus", "8"}));
  EXPECT_THAT(plain.out, AllOf(HasSubstr("no slower than maximum clock"), HasSubstr("0.3 % slower allowed"),
                               HasSubstr("waiting for one 1.2 times slower"), HasSubstr("kWh a year"),
                               HasSubstr("the job runs on 8 GPUs"), HasSubstr("no cost without --price"),
                               HasSubstr("the profile counts as exact"), Not(HasSubstr("CO2 a year"))));
  const Outcome priced =
      run_perseus(words_about_sample("advise", {"--price", "0.2", "--currency", "EUR", "--carbon", "300"}));
  EXPECT_THAT(priced.out,
              AllOf(HasSubstr("EUR a year"), HasSubstr("kg CO2 a year"), Not(HasSubstr("without --price"))));
  const Outcome alone = run_perseus(words_about_sample("advise", {"--noise", "0"}));
  EXPECT_THAT(alone.out, AllOf(HasSubstr("one pipeline: none waits"), Not(HasSubstr("waiting for one"))));
  const Outcome split = run_perseus(words_about_sample("advise", {"--gpus", "5"}));
  EXPECT_EQ(split.exit_code, 64);
  EXPECT_THAT(split.err, HasSubstr("--gpus: 5; allowed: multiples of 4, the GPUs of a pipeline"));
  const Outcome refused = run_perseus(words_about_sample("advise", {"--gpus", "0"}));
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_THAT(refused.err, HasSubstr("--gpus"));
}

TEST(AdviseCommand, ACurrencyNeedsAPriceAndNoControlCharacters) {
  EXPECT_THAT(run_perseus(words_about_sample("advise", {"--currency", "EUR"})).err, HasSubstr("requires --price"));
  for (const char* currency : {"a\nb", "more than twenty bytes"}) {
    const Outcome outcome = run_perseus(words_about_sample("advise", {"--price", "1", "--currency", currency}));
    EXPECT_EQ(outcome.exit_code, 64);
    EXPECT_THAT(outcome.err, HasSubstr("allowed: 1 to 20 bytes without control characters"));
  }
}

}  // namespace
}  // namespace perseus::testing
