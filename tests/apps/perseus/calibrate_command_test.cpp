// `perseus calibrate` as a user runs it: from a trace to files that `perseus plan` accepts, or one clear error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>
#include <vector>

#include "oracles/dice.h"
#include "program.h"
#include "tests/support/shared_data.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_text.h"

namespace perseus::testing {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TraceText noisy_trace() {
  TrueRun run;
  run.plans = 20;
  run.time_noise = 1e-3;
  run.iteration_noise = 1e-3;
  SeededDice dice(1);
  return trace_text(synthetic_trace(run, dice));
}

TEST(CalibrateCommand, WritesAProfileAndConstantsThatPlanTakes) {
  const ScratchFolder scratch;
  const TraceText text = noisy_trace();
  const std::string ops = scratch.file("run.ops.csv", text.ops);
  const std::string iterations = scratch.file("run.iters.csv", text.iterations);
  const Outcome calibrated = run_perseus({"calibrate", ops, iterations, "--out", scratch.path("fitted")});
  ASSERT_EQ(calibrated.exit_code, 0) << calibrated.err;
  EXPECT_THAT(calibrated.out, HasSubstr("20 plans, 3 stages, 6 microbatches, schedule 1f1b"));
  EXPECT_THAT(calibrated.out, HasSubstr("senders wait"));
  const auto profile = lines_of(content_of(scratch.path("fitted/profile.csv")));
  EXPECT_EQ(profile.at(0), "stage,instruction,frequency,time,energy,time_stddev,energy_stddev,samples");
  EXPECT_EQ(lines_of(content_of(scratch.path("fitted/predictions.csv"))).size(), 21u);

  const std::string page = content_of(scratch.path("fitted/report.html"));
  EXPECT_THAT(page,
              ::testing::ContainsRegex("<h1>predicts new plans within [0-9.]+ % of time and [0-9.]+ % of energy"));
  for (const char* part : {"<h2>Plans left out", "<h2>Link models", "<h2>Doubts", "<h2>Constants",
                           "<span>Perseus</span>", "<span>SHA-256 of run.ops.csv</span>"})
    EXPECT_THAT(page, HasSubstr(part));

  const std::vector<std::string> plan{"plan",        scratch.path("fitted/profile.csv"),
                                      "--constants", scratch.path("fitted/constants.json"),
                                      "--json",      "--no-progress"};
  const Outcome planned = run_perseus(plan);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const json::object all = json::parse(planned.out).as_object();
  EXPECT_NEAR(all.at("blocking_power_w").to_number<double>(), 70, 3);
  const json::object& fastest = all.at("points").as_array().back().as_object();
  const double time_s = fastest.at("time_s").to_number<double>();
  const double energy_j = fastest.at("energy_j").to_number<double>();
  EXPECT_GT(fastest.at("time_stddev_s").to_number<double>(), 0) << "the profile's error bars arrive";
  EXPECT_LT(fastest.at("time_stddev_s").to_number<double>(), 0.01 * time_s);
  EXPECT_GT(fastest.at("energy_stddev_j").to_number<double>(), 0);
  EXPECT_LT(fastest.at("energy_stddev_j").to_number<double>(), 0.02 * energy_j);
  const Outcome in_words =
      run_perseus({"plan", scratch.path("fitted/profile.csv"), "--constants", scratch.path("fitted/constants.json")});
  EXPECT_THAT(in_words.out, HasSubstr("the default plan is known to +- "));
}

TEST(CalibrateCommand, PlansKeepTheirTimesWithTheOtherLinksOfConstants) {
  const ScratchFolder scratch;
  const std::string profile = sample_profile();
  const auto constants = [&](const std::string& name, const std::string& others) {
    return scratch.file(name, R"({"schedule": "1f1b", "microbatches": 8, "blocking_power_w": 70, )"
                              R"("transfer_latency_s": 0.001, "other_links": )" +
                                  others + "}");
  };
  const std::string slow =
      constants("slow.json", R"([{"transfer_latency_s": [0.001, 0.02, 0.001], "blocking_transfers": false}])");
  const auto planned = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"plan", profile, "--constants", slow, "--no-progress"};
    all.insert(all.end(), more.begin(), more.end());
    return run_perseus(all);
  };
  const Outcome outcome = planned({"--json", "--out", scratch.path("plans")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::object links = json::parse(outcome.out).as_object().at("other_links").as_object();
  EXPECT_EQ(links.at("sets"), 1);
  EXPECT_GT(links.at("late_pct").to_number<double>(), 0.1);
  EXPECT_LE(links.at("may_be_late_pct").to_number<double>(), 0.051);
  EXPECT_THAT(planned({}).out, HasSubstr("1 other set of links explains the calibrated runs too: the default plan is "
                                         "at most 0."));
  EXPECT_THAT(planned({"--switch-latency", "0.001"}).out, HasSubstr("with them, the default plan may be "));
  const Outcome verified = run_perseus({"verify", scratch.path("plans")});
  EXPECT_EQ(verified.exit_code, 0) << verified.out;
  EXPECT_THAT(verified.out, HasSubstr("not checked: the other links"));

  const std::string together = scratch.path("together");
  const Outcome compared = run_perseus({"compare", profile, "--constants", slow, "--methods", "exact,zeus-per-stage",
                                        "--effort", "low", "--no-progress", "--json", "--out", together});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  const json::value methods = json::parse(compared.out).at("methods");
  EXPECT_LE(methods.at(0).at("other_links").at("may_be_late_pct").to_number<double>(), 0.051);
  EXPECT_EQ(methods.at(1).at("other_links").at("sets"), 1);
  EXPECT_THAT(std::string(methods.at(1).at("note").as_string()), HasSubstr("with them, the default plan may be "));
  const Outcome kept = run_perseus({"verify", together + "/exact"});
  EXPECT_EQ(kept.exit_code, 0) << kept.out;
  EXPECT_THAT(kept.out, HasSubstr("not checked: the other links"));
  EXPECT_THAT(run_perseus({"advise", profile, "--constants", slow, "--effort", "low", "--no-progress"}).out,
              HasSubstr("- 1 other set of links explains the calibrated runs too: the default plan is at most 0."));

  // A pipe can be read once.
  for (const char* schedule : {"", " --recompute best --measured-with recomputation"}) {
    const std::string from_pipe = scratch.path("from_pipe");
    const std::string command = std::string(PERSEUS_PROGRAM " plan ") + profile + schedule +
                                " --constants /dev/stdin --deadlines 20 --out " + from_pipe + " --no-progress";
    EXPECT_EQ(std::system(("cat " + slow + " | " + command + " > /dev/null").c_str()), 0) << command;
  }

  const std::string wrong =
      constants("wrong.json", R"([{"transfer_latency_s": [0.001], "blocking_transfers": false}])");
  const Outcome refused = run_perseus({"plan", profile, "--constants", wrong});
  EXPECT_EQ(refused.exit_code, 65) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("wrong.json: $.other_links[0]: "));
}

TEST(CalibrateCommand, WritesConstantsOfLinksThatCarryOneTransferAtATime) {
  const ScratchFolder scratch;
  TrueRun run;
  run.plans = 20;
  run.microbatches = 8;
  run.tail = Seconds(0);
  run.transfer_latency = Seconds(0.5);
  run.queues = true;
  SeededDice dice(2);
  const TraceText text = trace_text(synthetic_trace(run, dice));
  const Outcome calibrated = run_perseus({"calibrate", scratch.file("ops.csv", text.ops),
                                          scratch.file("iters.csv", text.iterations), "--out", scratch.path("fitted")});
  ASSERT_EQ(calibrated.exit_code, 0) << calibrated.err;
  EXPECT_THAT(calibrated.out, HasSubstr("senders compute meanwhile, transfers queue"));
  EXPECT_THAT(calibrated.out, HasSubstr("computations alone is not to be trusted"));
  EXPECT_THAT(content_of(scratch.path("fitted/constants.json")), HasSubstr("\"serial_transfers\": true"));
  // Options and constants give the same plans, which wait for queues.
  const auto fastest_s = [&](const std::vector<std::string>& links) {
    std::vector<std::string> plan{"plan", scratch.path("fitted/profile.csv"), "--json", "--no-progress"};
    plan.insert(plan.end(), links.begin(), links.end());
    const Outcome planned = run_perseus(plan);
    EXPECT_EQ(planned.exit_code, 0) << planned.err;
    return json::parse(planned.out).at("points").as_array().back().at("time_s").to_number<double>();
  };
  std::vector<std::string> options{"--microbatches", "8", "--transfer-latency", "0.5", "--blocking-power", "70"};
  const double free_s = fastest_s(options);
  options.emplace_back("--serial-transfers");
  const double serial_s = fastest_s(options);
  EXPECT_GT(serial_s, free_s + 0.3);
  EXPECT_NEAR(fastest_s({"--constants", scratch.path("fitted/constants.json")}) / serial_s, 1, 1e-2);
  options.emplace_back("--blocking-transfers");
  std::vector<std::string> both{"plan", scratch.path("fitted/profile.csv")};
  both.insert(both.end(), options.begin(), options.end());
  EXPECT_EQ(run_perseus(both).exit_code, 64);
}

TEST(CalibrateCommand, JsonAgreesWithTheText) {
  const ScratchFolder scratch;
  const TraceText text = noisy_trace();
  const Outcome outcome = run_perseus(
      {"calibrate", scratch.file("ops.csv", text.ops), scratch.file("iters.csv", text.iterations), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::object all = json::parse(outcome.out).as_object();
  EXPECT_EQ(all.at("folds"), 5);
  EXPECT_EQ(all.at("plans").as_array().size(), 20u);
  EXPECT_LT(all.at("errors").at("time_mean_pct").to_number<double>(), 1);
  EXPECT_EQ(all.at("constants").at("schedule"), "1f1b");
  EXPECT_THAT(scratch.names(), ElementsAre("iters.csv", "ops.csv"));
}

TEST(CalibrateCommand, ErrorsNameFileLineFieldAndAllowedValues) {
  const ScratchFolder scratch;
  const TraceText good = noisy_trace();
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const struct {
    std::string ops, iterations;
    int exit_code;
    std::string says;
  } bad[] = {
      {"", good.iterations, 65, "ops.csv: empty; needed: a header line with plan, stage, op"},
      {good.iterations, good.iterations, 65, "ops.csv:1: missing columns: op, instruction"},
      {with(good.ops, "0,0,0,forward", "0,0,0,forwards"), good.iterations, 65,
       "ops.csv:2: instruction: 'forwards'; allowed: forward, backward"},
      {with(good.ops, "0,0,0,forward", "0,-1,0,forward"), good.iterations, 65,
       "ops.csv:2: stage: '-1'; allowed: an integer from 0"},
      {with(good.ops, "0,0,1,", "0,0,7,"), good.iterations, 65, "ops.csv:3: op: '7'; allowed: 1, the next of plan 0"},
      {good.ops, with(good.iterations, "0,synthetic,0,", "0,synthetic,0,-"), 65, "iters.csv:2: iter_time_s: '-"},
      {good.ops, with(good.iterations, "0,synthetic,0,", "99,synthetic,0,"), 65,
       "iters.csv:2: plan: '99'; allowed: a plan of"},
      {good.ops, "\x1f\x8b\x08", 65, "iters.csv: broken gzip file"},
  };
  for (const auto& [ops, iterations, exit_code, says] : bad) {
    const Outcome outcome = run_perseus({"calibrate", scratch.file("ops.csv", ops),
                                         scratch.file("iters.csv", iterations), "--out", scratch.path("fitted")});
    EXPECT_EQ(outcome.exit_code, exit_code) << says << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(lines_of(outcome.err).size(), 1u) << outcome.err;
    EXPECT_THAT(scratch.names(), ElementsAre("iters.csv", "ops.csv")) << "nothing is written";
  }
}

TEST(CalibrateCommand, NamesOptionsThatAreWrong) {
  const ScratchFolder scratch;
  const TraceText text = noisy_trace();
  const std::string ops = scratch.file("ops.csv", text.ops);
  const std::string iterations = scratch.file("iters.csv", text.iterations);
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    std::string says;
  } bad[] = {
      {{"calibrate", ops}, 64, "ITERS"},
      {{"calibrate", scratch.path("nothing.csv"), iterations}, 66, "nothing.csv: cannot be read: No such file"},
      {{"calibrate", ops, iterations, "--blocking-power", "-1"}, 64, "'-1' is not a number from 0 to 1e+06 W"},
      {{"calibrate", scratch.path("nothing.csv"), iterations, "--out", scratch.path()},
       73,
       "which this command does not write"},
  };
  for (const auto& [arguments, exit_code, says] : bad) {
    const Outcome outcome = run_perseus(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_THAT(scratch.names(), ElementsAre("iters.csv", "ops.csv"));
  }
}

// The smallest of the published runs; the golden test of calibration has all of them, with the same bounds.
TEST(CalibrateCommand, PredictsThePublishedRuns) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const std::string base = (data / "measured" / "A100_bert-huge-uncased_pp4").string();
  const Outcome outcome = run_perseus({"calibrate", base + ".ops.csv.gz", base + ".iters.csv", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value errors = json::parse(outcome.out).at("errors");
  EXPECT_LT(errors.at("time_mean_pct").to_number<double>(), 0.12);
  EXPECT_LT(errors.at("energy_rms_pct").to_number<double>(), 0.5);
}

}  // namespace
}  // namespace perseus::testing
