// `perseus site plan` and `perseus site emulate` as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdlib>
#include <filesystem>

#include "program.h"
#include "tests/support/shared_data.h"

namespace perseus::testing {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

const std::string kSampleDay = PERSEUS_SOURCE_DIR "/data/sample_site_day.toml";
const std::string kSampleSite = PERSEUS_SOURCE_DIR "/data/sample_site.toml";

std::string small_site(const std::string& domain, const std::string& job) {
  return "[[domain]]\nname = \"hall\"\n" + domain + "[[job]]\nname = \"one\"\nprofile = \"" + sample_profile() +
         "\"\nmicrobatches = 4\n" + job;
}

TEST(SiteCommand, EveryIntervalOfTheSampleKeepsEveryLimit) {
  const Outcome outcome = run_perseus({"site", "plan", kSampleSite, "--effort", "low", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value answer = json::parse(outcome.out);
  const json::array& intervals = answer.at("intervals").as_array();
  ASSERT_GT(intervals.size(), 3U);
  bool fell = false;
  for (const json::value& interval : intervals) {
    for (const json::value& domain : interval.at("domains").as_array()) {
      const double used_w = domain.at("used_w").to_number<double>();
      const json::value* limit = domain.as_object().if_contains("limit_w");
      if (limit != nullptr) { EXPECT_LE(used_w, limit->to_number<double>() * (1 + 1e-9)); }
      EXPECT_EQ(domain.at("missing_w").to_number<double>(), 0);
    }
    for (const json::value& job : interval.at("jobs").as_array()) {
      EXPECT_GE(job.at("rate").to_number<double>(), job.at("least_rate").to_number<double>() - 1e-12);
    }
    EXPECT_LT(interval.at("gap_pct").to_number<double>(), 0.5);
    fell = fell || interval.at("throughput").to_number<double>() < 0.97;
  }
  EXPECT_TRUE(fell);
  EXPECT_TRUE(answer.at("origin").is_object());
}

TEST(SiteCommand, WritesAPage) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(
      {"site", "plan", kSampleSite, "--effort", "low", "--objective", "max-min", "--out", scratch.path("out")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("The slowest job has"));
  for (const char* name : {"site.html", "site.json", "jobs.csv"}) {
    EXPECT_TRUE(std::filesystem::exists(scratch.path("out") + "/" + name)) << name;
  }
}

TEST(SiteCommand, SaysWhichDeadlineIsMissed) {
  const ScratchFolder scratch;
  const auto planned = [&](const std::string& job, bool as_json) {
    static_cast<void>(scratch.file("site.toml", "end_s = 100\n" + small_site("", job)));
    std::vector<std::string> words{"site", "plan", scratch.path("site.toml"), "--effort", "low"};
    if (as_json) words.emplace_back("--json");
    const Outcome outcome = run_perseus(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string impossible = "least_rate = 0.5\ndeadline_s = 50\niterations = 1000000\n";
  EXPECT_THAT(planned(impossible, false), HasSubstr("job 'one' misses its deadline of 50 s: 999"));
  const json::value answer = json::parse(planned(impossible, true));
  const json::array& missed = answer.at("missed_deadlines").as_array();
  ASSERT_EQ(missed.size(), 1U);
  EXPECT_EQ(missed[0].at("job").as_string(), "one");
  EXPECT_LT(missed[0].at("iterations_left").to_number<double>(), 1'000'000);
  EXPECT_THAT(planned("least_rate = 0.5\ndeadline_s = 50\niterations = 1\n", false),
              ::testing::Not(HasSubstr("misses its deadline")));
}

TEST(SiteCommand, ErrorsNameMissingArguments) {
  const ScratchFolder scratch;
  static_cast<void>(scratch.file("site.toml", small_site("limit_w = 300\n", "least_rate = 1\n")));
  const Outcome outcome = run_perseus({"site", "plan", scratch.path("site.toml"), "--effort", "low"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("domain 'hall' lacks"));
  EXPECT_THAT(outcome.out, HasSubstr("1 job is below the least rate: one"));
}

TEST(SiteCommand, WarnsThatEvenWaitingJobsExceedALimit) {
  const ScratchFolder scratch;
  const std::string file = scratch.file("site.toml", small_site("limit_w = 0\n", "least_rate = 0\n"));
  const Outcome outcome = run_perseus({"site", "plan", file, "--effort", "low"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("; even waiting, its jobs draw 264 W"));
}

TEST(SiteCommand, PlansOfADirectoryGiveTheSameAsTheirProfile) {
  const ScratchFolder scratch;
  ASSERT_EQ(
      run_perseus({"plan", sample_profile(), "-m", "4", "--effort", "low", "--out", scratch.path("plans")}).exit_code,
      0);
  static_cast<void>(scratch.file("profile.toml", small_site("limit_w = 1000\n", "least_rate = 0.5\n")));
  static_cast<void>(
      scratch.file("plans.toml",
                   "[[domain]]\nname = \"hall\"\nlimit_w = 1000\n[[job]]\nname = \"one\"\nplans = \"plans\"\n"
                   "least_rate = 0.5\n"));
  std::vector<json::value> answers;
  for (const char* file : {"profile.toml", "plans.toml"}) {
    const Outcome outcome = run_perseus({"site", "plan", scratch.path(file), "--effort", "low", "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    answers.push_back(json::parse(outcome.out).at("intervals").at(0).at("jobs").at(0));
  }
  EXPECT_NEAR(answers[0].at("rate").to_number<double>(), answers[1].at("rate").to_number<double>(), 1e-3);
}

TEST(SiteCommand, BadInputGetsOneErrorThatNamesIt) {
  struct Case {
    std::string domain, job, message;
  };
  const std::vector<Case> cases = {
      {"limit_w = -1\n", "least_rate = 1\n", "site.toml:3: [[domain]] limit_w: -1"},
      {"", "", "least_rate"},
      {"", "least_rate = 1.5\n", "site.toml:7: [[job]] least_rate: 1.5"},
      {"", "least_rate = 1\ndomain = \"row\"\n", "allowed: the name of a [[domain]] above: hall"},
      {"", "least_rate = 1\ndeadline_s = 5\niterations = 3\n", "nothing, where end_s is missing"},
      {"[[limit]]\ndomain = \"hall\"\nfrom_s = 5\nlimit_w = 3\n", "least_rate = 1\n",
       "less than end_s, which is missing"},
      {"limits = 3\n", "least_rate = 1\n", "limits"},
      {"", "least_rate = 1\npipelines = 1000000\ntensor_parallel = 1024\n", "4096000000 GPUs; allowed: at most"},
  };
  for (const Case& c : cases) {
    const ScratchFolder scratch;
    static_cast<void>(scratch.file("site.toml", small_site(c.domain, c.job)));
    const Outcome outcome = run_perseus({"site", "plan", scratch.path("site.toml")});
    EXPECT_EQ(outcome.exit_code, 65) << c.message;
    EXPECT_THAT(outcome.err, HasSubstr(c.message));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(SiteCommand, RefusesMoreIntervalsThanAMachineHolds) {
  const ScratchFolder scratch;
  const std::string ramp = "limit_w = 300\nramp_down_w_per_s = 1\n";
  const std::string file =
      scratch.file("site.toml", "end_s = 1e9\nramp_step_s = 0.1\n" + small_site(ramp, "least_rate = 1\n"));
  const Outcome steps = run_perseus({"site", "plan", file, "--effort", "low"});
  EXPECT_EQ(steps.exit_code, 65);
  EXPECT_THAT(steps.err, HasSubstr("ramp_step_s: 0.1; allowed: at least 100000, a 10000th of end_s"));
  const std::string many = scratch.file(
      "many.toml", "end_s = 100000\nramp_step_s = 11\n" + small_site(ramp, "least_rate = 1\ncount = 100000\n"));
  const Outcome points = run_perseus({"site", "plan", many, "--effort", "low"});
  EXPECT_EQ(points.exit_code, 65);
  EXPECT_THAT(points.err, HasSubstr("100000 jobs in up to"));
}

TEST(SiteEmulateCommand, TheOptimumKeepsTheSamplesLimits) {
  const ScratchFolder scratch;
  const std::string out = scratch.path("day");
  const Outcome outcome = run_perseus(
      {"site", "emulate", kSampleDay, "--effort", "low", "--methods", "clock-limit", "--json", "--out", out});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value answer = json::parse(outcome.out);
  const json::array& methods = answer.at("methods").as_array();
  ASSERT_EQ(methods.size(), 2U);
  const json::value &optimum = methods[0], &clock_limit = methods[1];
  EXPECT_EQ(optimum.at("name").as_string(), "optimum");
  for (const json::value& domain : optimum.at("domains").as_array()) {
    EXPECT_EQ(domain.at("over_ws").to_number<double>(), 0) << json::serialize(domain);
  }
  EXPECT_LE(optimum.at("reaction_s").to_number<double>(), optimum.at("reaction_guaranteed_s").to_number<double>());
  EXPECT_GT(optimum.at("throughput").to_number<double>(), clock_limit.at("throughput").to_number<double>());
  EXPECT_EQ(optimum.at("proof").as_array().size(), 120U);
  for (const char* name : {"day.html", "day.json", "proof.csv", "power.csv", "power_events.csv", "jobs.csv"}) {
    EXPECT_TRUE(std::filesystem::exists(out + "/" + name)) << name;
  }
  const Outcome again =
      run_perseus({"site", "emulate", kSampleDay, "--effort", "low", "--methods", "clock-limit", "--json"});
  EXPECT_EQ(json::serialize(json::parse(again.out).at("methods")), json::serialize(answer.at("methods")));
}

TEST(SiteCommand, AWindowLeavesAGuard) {
  const Outcome outcome = run_perseus({"site", "plan", kSampleDay, "--effort", "low", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value answer = json::parse(outcome.out);
  double greatest_w = 0;  // where a limit does not bind, nothing is kept back
  for (const json::value& interval : answer.at("intervals").as_array()) {
    const json::value& hall = interval.at("domains").as_array()[0];
    const double guard_w = hall.at("guard_w").to_number<double>();
    greatest_w = std::max(greatest_w, guard_w);
    EXPECT_LE(hall.at("used_w").to_number<double>() + guard_w, hall.at("limit_w").to_number<double>() * (1 + 1e-9));
  }
  EXPECT_GT(greatest_w, 0);
}

TEST(SiteEmulateCommand, OpenLoopExceedsTheLimitWhereAllGpusDrawMore) {
  const Outcome outcome = run_perseus(
      {"site", "emulate", kSampleDay, "--effort", "low", "--methods", "optimum", "--draw-more", "4", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value answer = json::parse(outcome.out);
  EXPECT_GT(answer.at("methods").as_array()[0].at("domains").as_array()[0].at("over_s").to_number<double>(), 1000);
}

TEST(SiteEmulateCommand, ReportsAndMetersBringTheLimitBack) {
  for (const std::string feedback : {"reports", "meter", "both"}) {
    const Outcome outcome = run_perseus({"site", "emulate", kSampleDay, "--effort", "low", "--methods", "optimum",
                                         "--draw-more", "4", "--feedback", feedback, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json::value optimum = json::parse(outcome.out).at("methods").as_array()[0];
    for (const json::value& domain : optimum.at("domains").as_array()) {
      EXPECT_LE(domain.at("over_s").to_number<double>(), 60) << feedback << ": " << json::serialize(domain);
    }
    const auto corrections = optimum.at("corrections").to_number<int>();
    EXPECT_GT(corrections, 0);
    EXPECT_LT(corrections, 30);
  }
}

TEST(SiteEmulateCommand, BadDaysGetOneErrorThatNamesIt) {
  const std::string event = "[[event]]\ndomain = \"hall\"\nat_s = 10\nuntil_s = 30\nlimit_w = 5\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "end_s is missing; required to emulate a site"},
      {"end_s = 0\n" + event, "end_s: 0; allowed: "},
      {"end_s = 5\n" + event, "at_s: 10; allowed: less than end_s"},
      {"end_s = 100\n" + event, "until_s: 30; allowed: more than at_s and within_s, 40"},
      {"end_s = 100\n[emulation]\nbias = 2\n", "[emulation] bias: 2"},
  };
  for (const auto& [day, message] : cases) {
    const ScratchFolder scratch;
    const std::string end = day.starts_with("end_s") ? day.substr(0, day.find('\n') + 1) : "";
    const std::string file =
        scratch.file("site.toml", end + small_site("", "least_rate = 1\n") + day.substr(end.size()));
    const Outcome outcome = run_perseus({"site", "emulate", file});
    EXPECT_EQ(outcome.exit_code, 65) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

TEST(SiteEmulateCommand, TheOptimumBeatsOneClockLimitOnThePublishedProfiles) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const ScratchFolder scratch;
  const std::string file = scratch.path("site.toml");
  const std::string write = std::string(PERSEUS_SOURCE_DIR "/tools/published_site.py ") + PERSEUS_PROGRAM + " " +
                            data.string() + " --jobs 6 --hours 2 > " + file + " 2> /dev/null";
  ASSERT_EQ(std::system(write.c_str()), 0);
  const Outcome outcome =
      run_perseus({"site", "emulate", file, "--effort", "low", "--methods", "clock-limit", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value answer = json::parse(outcome.out);
  const json::array& methods = answer.at("methods").as_array();
  ASSERT_EQ(methods.size(), 2U);
  const double optimum = methods[0].at("throughput").to_number<double>();
  for (std::size_t k = 1; k < methods.size(); ++k) {
    EXPECT_GT(optimum, methods[k].at("throughput").to_number<double>()) << json::serialize(methods[k].at("name"));
  }
}

}  // namespace
}  // namespace perseus::testing
