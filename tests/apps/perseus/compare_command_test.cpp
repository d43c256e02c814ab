// `perseus compare` as a user runs it: its output, its files, and that each method's plans verify.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "program.h"

namespace perseus {
namespace {

using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_perseus_line;
using ::testing::StartsWith;

class CompareCommand : public ::testing::Test {
 protected:
  CompareCommand() { std::filesystem::create_directories(folder); }
  ~CompareCommand() override { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::string content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder / name).rdbuf();
    return text.str();
  }

  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("perseus_compare_" + std::to_string(::getpid()) + "_" +
                                                     ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string compare = "compare '" PERSEUS_SOURCE_DIR "/data/sample_profile.csv' -m 6 --blocking-power 80 ";
};

TEST_F(CompareCommand, WritesFrontiersPairsAPageAndPlansThatVerify) {
  const std::string out = (folder / "out").string();
  const Outcome outcome = run_perseus_line(compare + "--out '" + out + "'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text();
  EXPECT_THAT(outcome.text(), HasSubstr("zeus-per-stage"));
  EXPECT_THAT(outcome.text(), HasSubstr("first dominates"));
  EXPECT_THAT(content("out/frontiers.csv"),
              StartsWith("method,point,time_s,energy_j,effective_energy_j,bound_j,gap_pct\nexact,0,"));
  EXPECT_THAT(content("out/pairs.csv"), HasSubstr("\nexact,envpipe,exact,"));
  EXPECT_THAT(content("out/comparison.html"), HasSubstr(content("out/comparison.svg")));
  for (const char* method : {"exact", "perseus", "envpipe", "zeus-global", "zeus-per-stage", "all-max", "min-energy"}) {
    const Outcome verified = run_perseus_line("verify '" + out + "/" + method + "'");
    EXPECT_EQ(verified.exit_code, 0) << method << ": " << verified.text();
  }
  EXPECT_EQ(run_perseus_line(compare + "--out '" + out + "'").exit_code, 0) << "an earlier comparison is replaced";
}

TEST_F(CompareCommand, JudgesEveryMethodOfANoisyProfileByExpectedValues) {
  const testing::ScratchFolder scratch;
  const std::string noisy = "'" + testing::noisy_sample(scratch) + "' -m 6 --blocking-power 90 --json ";
  const boost::json::value planned = boost::json::parse(run_perseus_line("plan " + noisy).out);
  const Outcome outcome =
      run_perseus_line("compare " + noisy + "--methods exact,all-max --out '" + scratch.path("out") + "'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text();
  const boost::json::value compared = boost::json::parse(outcome.out);
  const boost::json::array& methods = compared.at("methods").as_array();
  EXPECT_EQ(methods.at(0).at("points").as_array().back().at("time_s"), planned.at("fastest_plan").at("time_s"));
  EXPECT_EQ(methods.at(0).at("points").as_array().back().at("energy_j"), planned.at("fastest_plan").at("energy_j"));
  EXPECT_EQ(methods.at(1).at("points").at(0).at("time_s"), planned.at("t_max_s"));
  EXPECT_EQ(methods.at(1).at("points").at(0).at("energy_j"), planned.at("all_maximum_clock").at("energy_j"));
  for (const char* method : {"/exact'", "/all-max'"}) {
    EXPECT_EQ(run_perseus_line("verify '" + scratch.path("out") + method).exit_code, 0) << method;
  }
}

TEST_F(CompareCommand, PrintsJson) {
  const Outcome outcome = run_perseus_line(compare + "--json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text();
  EXPECT_THAT(outcome.text(), StartsWith("{"));
  EXPECT_THAT(outcome.text(), HasSubstr("\"first\":\"exact\",\"second\":\"envpipe\",\"dominating\":\"exact\""));
}

TEST_F(CompareCommand, LeavesForeignFilesAlone) {
  std::ofstream(folder / "mine.txt") << "mine";
  const Outcome outcome = run_perseus_line(compare + "--out '" + folder.string() + "'");
  EXPECT_EQ(outcome.exit_code, 73);
  EXPECT_THAT(outcome.text(), HasSubstr("mine.txt"));
  EXPECT_EQ(content("mine.txt"), "mine");
}

TEST_F(CompareCommand, RunsOnlyTheMethodsThatAreNamed) {
  const std::string out = (folder / "out").string();
  const Outcome outcome = run_perseus_line(compare + "--methods all-max,zeus-global --json --out '" + out + "'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text();
  EXPECT_THAT(outcome.text(), HasSubstr("exact is skipped: --methods does not name it"));
  EXPECT_THAT(outcome.text(), HasSubstr("envpipe is skipped"));
  EXPECT_THAT(outcome.text(), HasSubstr("\"name\":\"zeus-global\""));
  EXPECT_EQ(outcome.text().find("\"name\":\"exact\""), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder / "out/all-max/plans.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/exact"));
  // The bound is independent of the compared methods.
  const Outcome with_exact = run_perseus_line(compare + "--methods exact --effort low --json");
  const auto t_star = [](const std::string& text) { return text.substr(text.find("\"t_star_s\""), 24); };
  EXPECT_EQ(t_star(outcome.text()), t_star(with_exact.text()));
}

TEST_F(CompareCommand, RefusesMethodsAndEffortsThatItDoesNotKnow) {
  const Outcome method = run_perseus_line(compare + "--methods exact,zeus");
  EXPECT_EQ(method.exit_code, 64);
  EXPECT_THAT(method.text(), HasSubstr("zeus not in {exact,perseus,envpipe,"));
  const Outcome effort = run_perseus_line(compare + "--effort most");
  EXPECT_EQ(effort.exit_code, 64);
  EXPECT_THAT(effort.text(), HasSubstr("most"));
}

}  // namespace
}  // namespace perseus
