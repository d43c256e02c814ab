// The files of `perseus plan --out`: all or none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "io/formats/plan_file.h"
#include "planning/planner/lower_bound.h"
#include "program.h"
#include "tests/support/shared_data.h"
#include "tests/support/signal_process.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> plan_words(const std::string& out, std::vector<std::string> more = {}, int microbatches = 4) {
  std::vector<std::string> words{"plan", sample_profile(), "-m", std::to_string(microbatches), "--blocking-power",
                                 "90",   "--out",          out};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The rows of frontier.csv by column name, but for the columns that have a value for each rank.
std::vector<std::map<std::string, double>> read_frontier(const fs::path& path) {
  const auto cells = [](const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> all;
    for (std::string cell; std::getline(stream, cell, ',');) all.push_back(cell);
    return all;
  };
  const std::vector<std::string> lines = lines_of(content_of(path));
  const std::vector<std::string> names = cells(lines.at(0));
  std::vector<std::map<std::string, double>> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> values = cells(lines[i]);
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (k == 0) rows.emplace_back();
      if (!names[k].starts_with("rank_")) rows.back()[names[k]] = std::stod(values.at(k));
    }
  }
  return rows;
}

/// Output is complete: every file is there, as many plans as points, and `perseus verify` reports no error.
void expect_whole(const std::string& folder) {
  for (const char* name : {"frontier.csv", "plans.json", "report.html", "frontier.svg", "timeline.svg", "trace.json"}) {
    EXPECT_TRUE(fs::is_regular_file(fs::path(folder) / name)) << name;
  }
  const auto plans = std::distance(fs::directory_iterator(fs::path(folder) / "plans"), fs::directory_iterator());
  EXPECT_EQ(static_cast<std::size_t>(plans), read_frontier(fs::path(folder) / "frontier.csv").size());
  const Outcome verified = run_perseus({"verify", folder});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

TEST(PlanOutput, NamesThePointsThatMatter) {
  const std::vector<std::string> plan{"plan", sample_profile(), "--blocking-power", "90"};
  std::vector<std::string> as_json = plan;
  as_json.emplace_back("--json");
  const json::value all = json::parse(run_perseus(as_json).out);
  const json::array& points = all.at("points").as_array();
  const auto least = std::ranges::min_element(
      points, {}, [](const json::value& point) { return point.at("energy_j").to_number<double>(); });
  EXPECT_EQ(all.at("least_energy_point").as_int64(), least - points.begin());
  const std::string text = run_perseus(plan).out;
  EXPECT_THAT(text, HasSubstr(fmt::format("\n{:<7}least energy ", least - points.begin())));
  EXPECT_THAT(text, HasSubstr(fmt::format("\n{:<7}fastest, default ", points.size() - 1)));
}

TEST(PlanOutput, IsWholeAndVerifies) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(plan_words(scratch.path("deeper/plans")));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  expect_whole(scratch.path("deeper/plans"));
}

TEST(PlanOutput, FrontierKeepsItsPromises) {
  const ScratchFolder scratch;
  ASSERT_EQ(run_perseus(plan_words(scratch.path("plans"), {}, 12)).exit_code, 0);
  const auto rows = read_frontier(scratch.path("plans/frontier.csv"));
  ASSERT_GT(rows.size(), 100U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    EXPECT_EQ(row.at("point"), static_cast<double>(i));
    // 4 ranks of one accelerator that waits at 90 W: eq. (1) of the paper.
    EXPECT_NEAR(row.at("energy_j"), row.at("effective_energy_j") + 4 * 90 * row.at("time_s"), 1e-7);
    EXPECT_LE(row.at("bound_j"), row.at("energy_j") * (1 + 1e-9));
    EXPECT_NEAR(row.at("average_power_w"), row.at("energy_j") / row.at("time_s"), 1e-6);
    if (i > 0) {
      EXPECT_LT(row.at("time_s"), rows[i - 1].at("time_s"));
      EXPECT_GT(row.at("effective_energy_j"), rows[i - 1].at("effective_energy_j"));
    }
  }
}

TEST(PlanOutput, AStragglerThatIsFasterThanAnyPlanIsNamedAsThat) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(plan_words(scratch.path("plans"), {"--straggler", "0.001s"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("no plan is so fast, the fastest one needs "));
}

TEST(PlanOutput, JsonAgreesWithTheTable) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(plan_words(scratch.path("plans"), {"--json", "--straggler", "1.2"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::object all = json::parse(outcome.out).as_object();
  const auto rows = read_frontier(scratch.path("plans/frontier.csv"));
  const json::array& points = all.at("points").as_array();
  ASSERT_EQ(points.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [name, value] : rows[i]) {
      EXPECT_NEAR(points[i].at(name).to_number<double>(), value, 1e-9 * std::abs(value) + 1e-12) << name;
    }
  }
  EXPECT_NEAR(all.at("straggler").at("deadline_s").to_number<double>(), 1.2 * rows.back().at("time_s"), 1e-9);
}

TEST(PlanOutput, OtherCommandsPrintJsonToo) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans)).exit_code, 0);
  const json::value verified = json::parse(run_perseus({"verify", plans, "--json"}).out);
  EXPECT_TRUE(verified.at("ok").as_bool());
  const json::value shown = json::parse(run_perseus({"show", plans, "--json"}).out);
  EXPECT_EQ(shown.at("timeline").as_array().size(), 4U * 4 * 2);
}

TEST(PlanOutput, LookupFindsTheSlowestPlanInTime) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans)).exit_code, 0);
  const auto rows = read_frontier(plans + "/frontier.csv");
  const auto found = [&](double deadline_s) {
    return json::parse(run_perseus({"lookup", plans, "--deadline", std::to_string(deadline_s), "--json"}).out);
  };
  const double fastest = rows.back().at("time_s");
  for (const double ratio : {1.01, 1.1, 1.3}) {
    const json::value answer = found(ratio * fastest);
    const auto point = static_cast<std::size_t>(answer.at("point").as_int64());
    EXPECT_LE(rows[point].at("time_s"), ratio * fastest + 1e-6);
    EXPECT_GT(rows.at(point - 1).at("time_s"), ratio * fastest - 1e-6);
    EXPECT_TRUE(answer.at("feasible").as_bool());
  }
  const json::value early = found(0.5 * fastest);
  EXPECT_FALSE(early.at("feasible").as_bool());
  EXPECT_EQ(early.at("point").as_int64(), static_cast<std::int64_t>(rows.size()) - 1);
  EXPECT_EQ(found(100 * fastest).at("point").as_int64(), 0);
}

TEST(PlanOutput, LookupNamesADeadlineOnlyWhereThereIsOne) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans, {"--slowdown", "2%"}, 12)).exit_code, 0);
  const std::string default_plan = run_perseus({"lookup", plans}).out;
  EXPECT_THAT(default_plan, HasSubstr("default plan: point "));
  EXPECT_THAT(default_plan, HasSubstr("tolerated: a slowdown of 2 %, to "));
  EXPECT_THAT(default_plan, Not(HasSubstr("T' ")));
  EXPECT_THAT(run_perseus({"lookup", plans, "--deadline", "2"}).out, HasSubstr("T' = 2.0000 s is "));
  const std::string too_early = run_perseus({"lookup", plans, "--deadline", "0.5"}).out;
  EXPECT_THAT(too_early, HasSubstr("T' = 500.0 ms is faster than any plan: this is the fastest"));
  EXPECT_THAT(too_early, Not(HasSubstr("wait")));
  const std::size_t printed = too_early.find(": ") + 2;
  const std::string fastest = too_early.substr(printed, too_early.find(" s,") - printed);
  EXPECT_THAT(run_perseus({"lookup", plans, "--deadline", fastest}).out, HasSubstr("T' = " + fastest + " s is on the"));
  // The straggler is faster than the tolerated slowdown.
  EXPECT_THAT(run_perseus({"lookup", plans, "--ratio", "1.001"}).out, HasSubstr("the tolerance and T_max allow "));
}

TEST(PlanOutput, VerifySeesAForgedClockAndAForgedClaim) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans)).exit_code, 0);
  const fs::path clocks = fs::path(plans) / "plans/freqs_pipeline_00005.py";
  std::string text = content_of(clocks);
  const std::size_t digit = text.find("forward', ") + 10;
  text[digit] = text[digit] == '1' ? '2' : '1';
  std::ofstream(clocks) << text;
  const Outcome forged_clock = run_perseus({"verify", plans});
  EXPECT_EQ(forged_clock.exit_code, 1);
  EXPECT_THAT(forged_clock.out, HasSubstr("freqs_pipeline_00005.py"));

  // plans.json alone, with the first energy of a point made smaller.
  json::value file = json::parse(content_of(plans + "/plans.json"));
  json::value& energy = file.at("points").at(7).at("energy_j");
  energy = energy.to_number<double>() * 0.999;
  const Outcome forged_claim = run_perseus({"verify", scratch.file("forged.json", json::serialize(file))});
  EXPECT_EQ(forged_claim.exit_code, 1) << forged_claim.out << forged_claim.err;
  EXPECT_THAT(forged_claim.out, HasSubstr("NOT verified"));
}

TEST(PlanOutput, VerifySeesAForgedFrontierAForgedReportAndAnotherProfile) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans)).exit_code, 0);
  const Outcome honest = run_perseus({"verify", plans, "--profile", sample_profile()});
  EXPECT_EQ(honest.exit_code, 0) << honest.out;
  EXPECT_THAT(honest.out, HasSubstr("frontier.csv, report.html, trace.json, pictures, all options with the profile"));
  EXPECT_THAT(honest.out, HasSubstr("not checked: what plans.json notes as Perseus, command, method, written\n"));

  const auto forge = [&](const std::string& name, const std::string& from, const std::string& to) {
    const std::string before = content_of(plans + "/" + name);
    std::string after = before;
    const std::size_t at = after.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    after.replace(at, from.size(), to);
    std::ofstream(plans + "/" + name) << after;
    const Outcome forged = run_perseus({"verify", plans, "--certificates", "3", "--profile", sample_profile()});
    std::ofstream(plans + "/" + name) << before;
    EXPECT_EQ(forged.exit_code, 1) << name << ": " << to << "\n" << forged.text();
    if (name != "plans.json") { EXPECT_THAT(forged.out, HasSubstr(name)) << to; }
  };
  const std::string csv = content_of(plans + "/frontier.csv");
  forge("frontier.csv", lines_of(csv)[3] + "\n", "");
  forge("frontier.csv", "\n1,", "\n1,9");
  forge("report.html", "\"points\":{\"time_s\":[", "\"points\":{\"time_s\":[9");
  forge("report.html", "<dt>Saved by the default plan</dt><dd>", "<dt>Saved by the default plan</dt><dd>9");
  forge("report.html", "\"runs\":[[", "\"runs\":[[1,0,");
  forge("report.html", "\"clock_mhz\":[", "\"clock_mhz\":[9");
  forge("report.html", "<h2 id=\"words-title\">In words</h2><p>", "<h2 id=\"words-title\">In words</h2><p>Wrong. ");
  forge("report.html", "<span>blocking power</span> ", "<span>blocking power</span> 1");
  forge("report.html", "<h1>", "<h1>another ");
  forge("frontier.svg", "<path", "<path id=\"x\"");
  forge("timeline.svg", "</text>", " </text>");
  forge("plans/freqs_pipeline_00003.py", "time ", "time 9");
  forge("plans.json", "\"blocking power\":\"90 W\"", "\"blocking power\":\"80 W\"");
  forge("plans.json", "\"schedule\":\"1f1b,", "\"schedule\":\"gpipe,");
  forge("plans.json", "4 stages, 4 microbatches\"", "4 stages, 3 microbatches\"");
  forge("plans.json", "\"switch_latency_s\":\"0\"", "\"switch_latency_s\":\"-1\"");
  forge("plans.json", "\"min_dwell_s\":\"0\"", "\"min_dwell_s\":\"0.5\"");

  // Changes the highest clock, which possibly only the maximum-clock baseline uses: plans.json alone looks valid.
  json::value file = json::parse(content_of(plans + "/plans.json"));
  for (json::value& type : file.at("dag").at("types").as_array()) type.at("options").at(0).at(0) = 1999;
  const std::string honest_plans = content_of(plans + "/plans.json");
  std::ofstream(plans + "/plans.json") << json::serialize(file);
  const Outcome other_clock = run_perseus({"verify", plans});
  std::ofstream(plans + "/plans.json") << honest_plans;
  EXPECT_EQ(other_clock.exit_code, 1);
  EXPECT_THAT(other_clock.out, HasSubstr("trace.json: not what plans.json gives"));

  std::string other = content_of(sample_profile());
  const std::size_t row = other.find('\n') + 1, end = other.find('\n', row);
  other.insert(end, "1");
  const Outcome another = run_perseus({"verify", plans, "--profile", scratch.file("other.csv", other)});
  EXPECT_EQ(another.exit_code, 1);
  EXPECT_THAT(another.out, AllOf(HasSubstr("the profile has "), HasSubstr("SHA-256 of sample_profile.csv '")));
}

TEST(PlanOutput, PlansWithClockLimitsVerify) {
  const ScratchFolder scratch;
  const std::string noisy = noisy_sample(scratch), plans = scratch.path("plans");
  const std::vector<std::vector<std::string>> limits{{"--switch-latency", "0.01"}, {"--min-dwell", "0.05"}};
  for (const std::string& profile : {sample_profile(), noisy}) {
    for (const std::vector<std::string>& limit : limits) {
      std::vector<std::string> words{"plan", profile,       "-m", "4",     "--blocking-power",
                                     "90",   "--deadlines", "10", "--out", plans};
      words.insert(words.end(), limit.begin(), limit.end());
      ASSERT_EQ(run_perseus(words).exit_code, 0);
      const auto rows = read_frontier(plans + "/frontier.csv");
      EXPECT_TRUE(std::ranges::any_of(rows, [](const auto& row) { return row.at("clock_limit_cost_j") > 0; }));
      const Outcome verified = run_perseus({"verify", plans, "--profile", profile});
      EXPECT_EQ(verified.exit_code, 0) << limit[0] << "\n" << verified.text();
      EXPECT_THAT(verified.out, HasSubstr("not recomputed: clock_limit_cost_j"));
    }
  }
  const json::value as_json = json::parse(run_perseus({"verify", plans, "--json"}).out);
  EXPECT_EQ(as_json.at("not_recomputed"), json::value(json::array{"clock_limit_cost_j"}));

  json::value file = json::parse(content_of(plans + "/plans.json"));
  for (json::value& point : file.at("points").as_array()) {
    if (json::value* cost = point.as_object().if_contains("clock_limit_cost_j")) *cost = 1e6;
  }
  const std::string alone = scratch.path("alone");
  fs::create_directory(alone);
  std::ofstream(alone + "/plans.json") << json::serialize(file);
  const Outcome forged = run_perseus({"verify", alone});
  EXPECT_EQ(forged.exit_code, 1);
  EXPECT_THAT(forged.out, HasSubstr("clock_limit_cost_j is 1000000, above the distance to the lower bound"));
}

/// Where a clock takes most of a computation to arrive, a descent by single moves found 0.5 % here.
TEST(PlanOutput, PlansSaveAlthoughClocksArriveLate) {
  const ScratchFolder scratch;
  // PyTorch's InterleavedZeroBubble, 2 ranks with 2 stages each, as its step by step execution waits.
  const std::string table = scratch.file(
      "table.csv",
      "0F0,0F1,1WAIT_F0,2F0,1WAIT_F1,2F1,3WAIT_B0,2I0,2W0,3WAIT_B1,0F2,2I1,1WAIT_F2,2W1,1WAIT_B0,0F3,1WAIT_F3,0B0,"
      "1WAIT_B1,2F2,0B1,3WAIT_B2,2F3,2I2,2W2,3WAIT_B3,2I3,2W3,1WAIT_B2,0B2,1WAIT_B3,0B3\n"
      "0WAIT_F0,1F0,0WAIT_F1,1F1,2WAIT_F0,3F0,3I0,2WAIT_F1,3F1,2WAIT_B0,3I1,3W0,0WAIT_F2,1F2,2WAIT_B1,1I0,3W1,0WAIT_F3,"
      "1F3,1I1,1W0,2WAIT_F2,3F2,3I2,1W1,2WAIT_F3,3F3,2WAIT_B2,3I3,3W2,2WAIT_B3,1I2,3W3,1I3,1W2,1W3\n");
  const Outcome planned = run_perseus({"plan", sample_profile(), "--action-table", table, "--split-backward", "0.5",
                                       "--blocking-power", "93.3", "--switch-latency", "0.032", "--json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.text();
  const json::value plan = json::parse(planned.out).at("default_plan");
  EXPECT_GE(plan.at("saving_pct").to_number<double>(), 4);
  EXPECT_LE(plan.at("slowdown_pct").to_number<double>(), 1e-6);
}

TEST(PlanOutput, VerifyMissesNoFile) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans"), aside = scratch.path("aside");
  ASSERT_EQ(run_perseus(plan_words(plans)).exit_code, 0);
  for (const std::string name :
       {"frontier.csv", "report.html", "trace.json", "plans", "frontier.svg", "timeline.svg"}) {
    fs::rename(plans + "/" + name, aside);
    const Outcome missing = run_perseus({"verify", plans});
    EXPECT_EQ(missing.exit_code, 1) << name;
    EXPECT_THAT(missing.out, HasSubstr("/" + name + " is missing"));
    EXPECT_EQ(run_perseus({"verify", plans + "/plans.json"}).exit_code, 0) << "the file by itself, and what is there";
    fs::rename(aside, plans + "/" + name);
  }
  EXPECT_EQ(run_perseus({"verify", plans}).exit_code, 0);
  for (const std::string extra : {"freqs_pipeline_99999.py", "freqs_pipeline_1.py", "notes"}) {
    std::ofstream(plans + "/plans/" + extra) << "x";
    const Outcome more = run_perseus({"verify", plans});
    EXPECT_EQ(more.exit_code, 1) << extra;
    EXPECT_THAT(more.out, HasSubstr(extra + ": no point of plans.json has this file"));
    fs::remove(plans + "/plans/" + extra);
  }
  std::ofstream(plans + "/notes.txt") << "x";
  const Outcome foreign = run_perseus({"verify", plans});
  EXPECT_EQ(foreign.exit_code, 0);
  EXPECT_THAT(foreign.out, HasSubstr("not checked: " + plans + "/notes.txt, which is no file of 'perseus plan'\n"));
  fs::remove(plans + "/notes.txt");
  const Outcome without_profile = run_perseus({"verify", plans});
  EXPECT_THAT(without_profile.out, AllOf(HasSubstr("not checked: whether times, energies"),
                                         HasSubstr("not checked: what plans.json notes as Perseus, SHA-256 of ")));
  const json::value as_json = json::parse(run_perseus({"verify", plans, "--certificates", "3", "--json"}).out);
  ASSERT_EQ(as_json.at("not_checked").as_array().size(), 3U);
  EXPECT_THAT(std::string(as_json.at("not_checked").at(0).as_string()), HasSubstr("pieces of the lower bound"));
}

/// The steps of prices of large pipelines are those of a version: a bound with finer ones is no lie, one above all is.
TEST(PlanOutput, VerifyAcceptsTheBoundOfAnotherVersion) {
  const ScratchFolder scratch;
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 64; ++stage) {
    for (const char* instruction : {"forward", "backward"}) {
      csv += fmt::format("{0},{1},1400,{2},{3}\n{0},{1},1000,{4},{5}\n", stage, instruction, 1 + 0.001 * stage,
                         300 + stage % 7, 1.2 + 0.001 * stage, 250 + stage % 5);
    }
  }
  const std::string plans = scratch.path("made");
  const Outcome planned = run_perseus({"plan", scratch.file("profile.csv", csv), "-m", "32", "--blocking-power", "60",
                                       "--deadlines", "4", "--effort", "low", "--out", plans});
  ASSERT_EQ(planned.exit_code, 0) << planned.text();
  const auto file = formats::read_plan_file(plans + "/plans.json");
  ASSERT_TRUE(file.ok());
  const std::string own = run_perseus({"verify", plans + "/plans.json", "--certificates", "9"}).out;
  EXPECT_THAT(own, AllOf(HasSubstr("verified: all claims hold"), Not(HasSubstr("other steps"))));
  const auto verified_with = [&](model::LowerBound bound) {
    model::Frontier frontier = file->frontier;
    frontier.bound = std::move(bound);
    for (model::FrontierPoint& point : frontier.points) {
      point.bound = frontier.bound.at(point.time) + file->dag.total_blocking_power() * point.time;
    }
    const std::string text = formats::format_plan_file(file->dag, frontier, file->metadata);
    return run_perseus({"verify", scratch.file("other.json", text), "--certificates", "9"});
  };
  model::LowerBound exact = planner::compute_lower_bound(file->dag, {}, {}, true).bound;
  const Outcome other = verified_with(exact);
  EXPECT_EQ(other.exit_code, 0) << other.text();
  EXPECT_THAT(other.out, HasSubstr("not checked: how close the lower bound is to the best one"));
  model::LowerBound raised = exact;
  for (model::BoundVertex& vertex : raised.vertices)
    vertex.effective_energy += Watts(10) * (exact.t_star() - vertex.time);
  const Outcome forged = verified_with(raised);
  EXPECT_EQ(forged.exit_code, 1);
  EXPECT_THAT(forged.out, HasSubstr("; its certificate proves "));
  // One line through the middle of the curve's first half, so that the certificate of its middle agrees.
  const auto middle = exact.vertices.begin() + std::ssize(exact.vertices) / 2;
  const Seconds at = 0.5 * (exact.t_min() + middle->time);
  const Joules tilt = 1e-3 * exact.at(at), through = exact.at(at) - 1e-9 * exact.at(at);
  model::LowerBound tilted{{{exact.t_min(), through + tilt}, {middle->time, through - tilt}}};
  const Outcome forged_line = verified_with(tilted);
  EXPECT_EQ(forged_line.exit_code, 1);
  EXPECT_THAT(forged_line.out, HasSubstr("; the exact bound is "));
}

TEST(PlanOutput, ANoisyProfileIsPooledAndVerifiedSo) {
  const ScratchFolder scratch;
  const std::string noisy = noisy_sample(scratch), plans = scratch.path("plans");
  const Outcome planned = run_perseus({"plan", noisy, "-m", "6", "--blocking-power", "90", "--out", plans});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("noise of a sample"));
  EXPECT_THAT(planned.out, HasSubstr("its time is the expected one"));
  EXPECT_EQ(run_perseus({"verify", plans, "--profile", noisy}).exit_code, 0);
  EXPECT_EQ(run_perseus({"verify", plans, "--profile", noisy, "--noise", "0"}).exit_code, 1) << "not pooled";

  // Half the error bars, of each point in turn and of a measurement.
  const std::string honest = content_of(plans + "/plans.json");
  const std::string alone = scratch.path("alone");
  fs::create_directory(alone);
  const auto verify_forged = [&](const std::function<void(json::value & file)>& forge) {
    json::value file = json::parse(honest);
    forge(file);
    std::ofstream(alone + "/plans.json") << json::serialize(file);
    const Outcome forged = run_perseus({"verify", alone, "--profile", noisy});
    EXPECT_EQ(forged.exit_code, 1) << forged.text();
    return forged.out;
  };
  const auto halve = [](json::value& number) { number = 0.5 * number.to_number<double>(); };
  const std::size_t count = json::parse(honest).at("points").as_array().size();
  for (std::size_t point = 1; point < count; point += count / 5) {
    EXPECT_THAT(verify_forged([&](json::value& file) { halve(file.at("points").at(point).at("noise").at(1)); }),
                HasSubstr(fmt::format("point {}: time_stddev_s", point)));
  }
  EXPECT_THAT(verify_forged([&](json::value& file) {
                halve(file.at("dag").at("types").at(1).at("options").at(2).at(3));
                file.at("dag").at("types").at(1).at("options").at(2).at(5) = 4;
              }),
              HasSubstr("MHz: spreads"));

  // Expected times are not below those of the means; both sides of each comparison use expected values.
  const Outcome said = run_perseus({"plan", noisy, "-m", "6", "--blocking-power", "90", "--json"});
  const json::value claimed = json::parse(said.out);
  const json::value& chosen = claimed.at("default_plan");
  const double time_s = chosen.at("time_s").to_number<double>();
  EXPECT_GT(time_s, chosen.at("time_of_means_s").to_number<double>());
  EXPECT_GT(chosen.at("time_stddev_s").to_number<double>(), 0);
  const json::array& points = claimed.at("points").as_array();
  EXPECT_TRUE(time_s <= claimed.at("t_max_s").to_number<double>() ||
              time_s == points.back().at("time_s").to_number<double>())
      << "in time, or the fastest plan";
  const Outcome looked_up = run_perseus({"lookup", plans, "--json"});
  EXPECT_EQ(json::parse(looked_up.out).at("time_s").to_number<double>(), time_s);
  EXPECT_EQ(run_perseus({"show", plans}).exit_code, 0);

  const std::string believed = scratch.path("believed");
  const Outcome as_it_is =
      run_perseus({"plan", noisy, "-m", "6", "--blocking-power", "90", "--noise", "0", "--out", believed});
  ASSERT_EQ(as_it_is.exit_code, 0) << as_it_is.err;
  EXPECT_THAT(as_it_is.out, Not(HasSubstr("noise of a sample")));
  EXPECT_EQ(run_perseus({"verify", believed, "--profile", noisy, "--noise", "0"}).exit_code, 0);
  EXPECT_EQ(run_perseus({"plan", noisy, "--noise", "60"}).exit_code, 64);
}

TEST(PlanOutput, TheDefaultPlanIsNotSlowerThanMaximumClockAndTheToleranceIsTheOperators) {
  // A GPU that throttles: maximum clock is neither the fastest nor the one of least energy.
  const ScratchFolder scratch;
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (const char* instruction : {"forward", "backward"}) {
    csv += std::string("0,") + instruction + ",1000,1.00,200\n0," + instruction + ",900,0.99,195\n0," + instruction +
           ",800,0.998,150\n0," + instruction + ",700,1.01,140\n";
  }
  const std::string profile = scratch.file("throttling.csv", csv), plans = scratch.path("plans");
  const auto planned = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"plan", profile, "-m", "2", "--blocking-power", "50", "--json", "--out", plans};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(run_perseus(words).out);
  };
  const auto time_of = [](const json::value& plan, const char* name) {
    return plan.at(name).at("time_s").to_number<double>();
  };
  const json::value plain = planned({});
  EXPECT_NEAR(plain.at("t_max_s").to_number<double>(), 4, 1e-9);
  EXPECT_NEAR(time_of(plain, "fastest_plan"), 3.96, 1e-9);
  EXPECT_NEAR(time_of(plain, "default_plan"), 3.992, 1e-9);
  EXPECT_GT(plain.at("saving_pct").to_number<double>(),
            plain.at("fastest_plan").at("saving_pct").to_number<double>() + 10);
  EXPECT_NEAR(plain.at("tolerances").at(0).at("slowdown_pct").to_number<double>(), 0.1, 1e-9);
  EXPECT_GT(plain.at("tolerances").at(0).at("more_pct").to_number<double>(), 0);
  const json::value found = json::parse(run_perseus({"lookup", plans, "--json"}).out);
  EXPECT_EQ(found.at("point"), plain.at("default_plan").at("point"));
  EXPECT_EQ(json::parse(run_perseus({"show", plans, "--json"}).out).at("point"), found.at("point"));

  const json::value tolerant = planned({"--slowdown", "1%"});
  EXPECT_NEAR(time_of(tolerant, "default_plan"), 4.04, 1e-9);
  EXPECT_EQ(json::parse(run_perseus({"lookup", plans, "--json"}).out).at("point"),
            tolerant.at("default_plan").at("point"));
  ASSERT_EQ(run_perseus({"show", plans, "--out", scratch.path("shown.html")}).exit_code, 0);
  EXPECT_THAT(content_of(scratch.path("shown.html")), HasSubstr("at most 1 % slower than everything at maximum clock"));
  const json::value published = planned({"--method", "perseus"});
  EXPECT_EQ(time_of(published, "default_plan"), time_of(published, "fastest_plan"));
  for (const char* wrong : {"0.3", "-1%", "x%", "1001%"}) {
    const Outcome refused = run_perseus({"plan", profile, std::string("--slowdown=") + wrong});
    EXPECT_EQ(refused.exit_code, 64) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("is not a percentage from 0% to 1000%, like 0.3%")) << wrong;
  }
}

TEST(PlanOutput, ShowDrawsAPointAsAFile) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans, {}, 12)).exit_code, 0);
  EXPECT_EQ(json::parse(run_perseus({"show", plans, "--point", "3", "--json"}).out).at("point"), 3);
  for (const char* picture : {"t.svg", "t.html", "t.json"}) {
    EXPECT_EQ(run_perseus({"show", plans, "--out", scratch.path(picture)}).exit_code, 0);
    EXPECT_GT(fs::file_size(scratch.path(picture)), 1000U);
  }
  EXPECT_EQ(run_perseus({"show", plans, "--out", scratch.path("t.bmp")}).exit_code, 64);
  EXPECT_EQ(run_perseus({"show", plans, "--point", "99999"}).exit_code, 64);
}

/// Times and energies of plans with a switch latency include it wherever they are drawn.
TEST(PlanOutput, DrawsPlansAsTheirClocksArrive) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans, {"--switch-latency", "0.01", "--deadlines", "20"})).exit_code, 0);
  const auto rows = read_frontier(plans + "/frontier.csv");
  const std::size_t point = rows.size() / 2;
  ASSERT_GT(rows[point].at("clock_changes"), 0);
  const json::value shown = json::parse(run_perseus({"show", plans, "--point", std::to_string(point), "--json"}).out);
  EXPECT_NEAR(shown.at("time_s").to_number<double>(), rows[point].at("time_s"), 1e-9);
  EXPECT_NEAR(shown.at("energy_j").to_number<double>(), rows[point].at("energy_j"), 1e-6);
  double last_s = 0;
  for (const json::value& bar : shown.at("timeline").as_array()) {
    last_s = std::max(last_s, bar.at("end_s").to_number<double>());
    const json::value& clock = bar.at("frequency_mhz");
    EXPECT_TRUE(clock.to_number<double>() >= 600 && clock.to_number<double>() <= 1500);
  }
  EXPECT_NEAR(last_s, rows[point].at("time_s"), 1e-9);

  const double default_s = json::parse(run_perseus({"lookup", plans, "--json"}).out).at("time_s").to_number<double>();
  double traced_us = 0;
  const json::value trace = json::parse(content_of(plans + "/trace.json"));
  for (const json::value& event : trace.at("traceEvents").as_array()) {
    if (event.at("ph") != "X" || event.at("pid") != 1) continue;
    traced_us = std::max(traced_us, event.at("ts").to_number<double>() + event.at("dur").to_number<double>());
  }
  EXPECT_NEAR(1e-6 * traced_us, default_s, 1e-8);
}

TEST(PlanOutput, ReplacesAnEarlierPlanOnly) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans)).exit_code, 0);
  ASSERT_EQ(run_perseus(plan_words(plans, {}, 2)).exit_code, 0);  // fewer points: no old files may stay
  expect_whole(plans);
  EXPECT_THAT(scratch.names(), ElementsAre("plans"));

  std::ofstream(plans + "/notes.txt") << "mine";
  const std::string before = content_of(plans + "/frontier.csv");
  const Outcome refused = run_perseus(plan_words(plans));
  EXPECT_EQ(refused.exit_code, 73);
  EXPECT_THAT(refused.err, HasSubstr("'notes.txt'"));
  EXPECT_EQ(content_of(plans + "/frontier.csv"), before);
  EXPECT_THAT(scratch.names(), ElementsAre("plans"));
}

TEST(PlanOutput, FullDiskLeavesNothing) {
  const ScratchFolder scratch;
  RunOptions small_files;
  small_files.prepare = [] {  // acts as a full disk: writes fail after 4 kB
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
  };
  const Outcome outcome = run_perseus(plan_words(scratch.path("plans")), small_files);
  EXPECT_EQ(outcome.exit_code, 73) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(scratch.path("plans/")));
  EXPECT_THAT(scratch.names(), IsEmpty());
}

/// Kills the program as soon as it has begun to write plans.
RunOptions kill_while_writing(const ScratchFolder& scratch, int signal) {
  RunOptions options;
  options.meanwhile = [&scratch, signal](pid_t program) {
    for (;;) {
      if (testing::signal_process(program, 0) != 0) return;
      siginfo_t ended{};
      if (::waitid(P_PID, static_cast<id_t>(program), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
        return;
      for (const std::string& name : scratch.names()) {
        const fs::path third = fs::path(scratch.path(name)) / "plans/freqs_pipeline_00002.py";
        if (name.starts_with(".plans.perseus-") && fs::exists(third)) {
          testing::signal_process(program, signal);
          return;
        }
      }
      ::sched_yield();
    }
  };
  return options;
}

TEST(PlanOutput, KilledInTheMiddleLeavesNoHalfPlan) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  const Outcome outcome = run_perseus(plan_words(plans, {}, 200), kill_while_writing(scratch, SIGKILL));
  if (outcome.signal == SIGKILL) {
    EXPECT_FALSE(fs::exists(plans));
  } else {  // the program ended before the kill
    expect_whole(plans);
  }
  // The remaining files do not disturb later runs.
  ASSERT_EQ(run_perseus(plan_words(plans)).exit_code, 0);
  expect_whole(plans);
}

TEST(PlanOutput, KilledInTheMiddleKeepsTheEarlierPlan) {
  const ScratchFolder scratch;
  const std::string plans = scratch.path("plans");
  ASSERT_EQ(run_perseus(plan_words(plans)).exit_code, 0);
  (void)run_perseus(plan_words(plans, {}, 200), kill_while_writing(scratch, SIGKILL));
  expect_whole(plans);
}

TEST(PlanOutput, InterruptedTidiesUp) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus(plan_words(scratch.path("plans"), {}, 200), kill_while_writing(scratch, SIGINT));
  if (outcome.signal == SIGINT) {
    EXPECT_THAT(scratch.names(), ::testing::AnyOf(IsEmpty(), ElementsAre("plans")));
  } else {
    EXPECT_EQ(outcome.exit_code, 0);
  }
  if (fs::exists(scratch.path("plans"))) expect_whole(scratch.path("plans"));
}

TEST(PlanOutput, EveryPublishedProfile) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  int profiles = 0;
  for (const auto& entry : fs::recursive_directory_iterator(data)) {
    const fs::path& path = entry.path();
    const bool is_profile = path.filename().string().find("profile") != std::string::npos ||
                            path.parent_path().filename() == "stage_profile";
    if (!entry.is_regular_file() || !is_profile) continue;
    const ScratchFolder scratch;
    const Outcome outcome = run_perseus({"plan", path.string(), "--deadlines", "50", "--out", scratch.path("plans")});
    if (path.filename() == "A100_bert-huge-uncased_pp4.profile_grid.csv") {  // published without stage 1's forward
      EXPECT_EQ(outcome.exit_code, 65);
      EXPECT_THAT(outcome.err, HasSubstr("stage 1 has backward but no forward"));
      EXPECT_THAT(scratch.names(), IsEmpty());
      continue;
    }
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_whole(scratch.path("plans"));
    ++profiles;
  }
  EXPECT_GE(profiles, 9);
}

}  // namespace
}  // namespace perseus::testing
