#include "io/formats/run_trace_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/model/make_schedule.h"

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

const std::string ops_header = "plan,stage,op,instruction,microbatch,frequency_mhz,time_s\n";
const std::string iters_header = "plan,kind,stage,iter_time_s,iter_energy_j,load_total_s,n_iters\n";
const std::string ops = ops_header +
                        "7,0,0,forward,0,1410,0.1\n7,0,1,backward,0,1200,0.2\n"
                        "7,1,0,forward,0,1410,0.11\n7,1,1,backward,0,1395,0.21\n";
const std::string iters =
    iters_header + "7,perseus,0,0.7,140,0.05,3\n7,perseus,1,0.71,150,0,3\n7,perseus,-1,0.72,290,,3\n";

std::string error_of(const std::string& ops_text, const std::string& iters_text) {
  const auto trace = parse_run_trace({ops_text, "ops.csv"}, {iters_text, "iters.csv"});
  return trace ? "no error" : trace.error().message;
}

std::string with(std::string text, const std::string& old_part, const std::string& new_part) {
  const auto at = text.find(old_part);
  EXPECT_NE(at, std::string::npos) << old_part;
  return text.replace(at, old_part.size(), new_part);
}

TEST(RunTraceCsv, ReadsPlansAndIterations) {
  const auto trace = parse_run_trace({ops, "ops.csv"}, {iters, "iters.csv"});
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->plans.size(), 1U);
  const model::TracedPlan& plan = trace->plans[0];
  EXPECT_EQ(plan.id, 7);
  EXPECT_EQ(plan.kind, "perseus");
  EXPECT_EQ(plan.iterations, 3);
  EXPECT_EQ(plan.iteration_time, Seconds(0.72));
  EXPECT_EQ(plan.total_energy(), Joules(290));
  EXPECT_EQ(plan.loading[0], Seconds(0.05));
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(plan.stages[0][1].instruction, model::Instruction::backward);
  EXPECT_EQ(plan.stages[0][1].clock, Megahertz(1200));
  EXPECT_EQ(plan.stages[1][1].time, Seconds(0.21));
  EXPECT_EQ(trace->schedule().ranks, model::make_schedule("1f1b", {2, 1, 1})->ranks);
}

TEST(RunTraceCsv, WithoutARowForTheWholeTheLongestStageCounts) {
  const auto trace = parse_run_trace({ops, "ops.csv"}, {iters.substr(0, iters.find("7,perseus,-1")), "iters.csv"});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->plans[0].iteration_time, Seconds(0.71));
}

TEST(RunTraceCsv, ErrorsNameTheLineAndTheProblem) {
  EXPECT_EQ(
      error_of("", iters),
      "ops.csv: empty; needed: a header line with plan, stage, op, instruction, microbatch, frequency_mhz, time_s");
  EXPECT_EQ(error_of(ops_header, iters), "ops.csv: a header but no rows; needed: a row per computation");
  EXPECT_THAT(error_of(iters, iters), HasSubstr("ops.csv:1: missing columns: op, instruction, microbatch"));
  EXPECT_THAT(error_of(ops, ops), HasSubstr("iters.csv:1: missing columns: iter_time_s, iter_energy_j; found: plan"));
  EXPECT_THAT(error_of(with(ops, "microbatch,", "stage,"), iters),
              HasSubstr("ops.csv:1: columns: 'stage' and 'stage'; allowed: one of them"));
  EXPECT_THAT(error_of(with(ops, "1200,0.2", "1200,0,2"), iters), HasSubstr("ops.csv:3: 8 fields; allowed: 7"));
  EXPECT_EQ(error_of(with(ops, "1200,0.2", "1200,-0.2"), iters),
            "ops.csv:3: time_s: '-0.2'; allowed: a number > 0 and <= 1e9 (seconds)");
  EXPECT_EQ(error_of(with(ops, "1200,0.2", "1200,nan"), iters),
            "ops.csv:3: time_s: 'nan'; allowed: a number > 0 and <= 1e9 (seconds)");
  EXPECT_EQ(error_of(with(ops, "1200,0.2", "1200"), iters),
            "ops.csv:3: time_s: is missing; allowed: a number > 0 and <= 1e9 (seconds)");
  EXPECT_EQ(error_of(with(ops, "0,1200", "0,0"), iters),
            "ops.csv:3: frequency_mhz: '0'; allowed: an integer from 1 to 1000000");
  EXPECT_THAT(error_of(with(ops, "backward", "sideways"), iters),
              HasSubstr("ops.csv:3: instruction: 'sideways'; allowed: forward, backward"));
  EXPECT_EQ(error_of(with(ops, "7,0,1,", "7,0,2,"), iters),
            "ops.csv:3: op: '2'; allowed: 1, the next of plan 7, stage 0");
  EXPECT_EQ(error_of(ops, iters + "8,perseus,0,1,1,,1\n"), "iters.csv:5: plan: '8'; allowed: a plan of ops.csv");
  EXPECT_EQ(error_of(ops, iters + "7,perseus,2,1,1,,1\n"), "iters.csv:5: stage: '2'; allowed: an integer from -1 to 1");
  EXPECT_EQ(error_of(ops, iters + "7,perseus,1,1,1,,1\n"),
            "iters.csv:5: stage: '1'; allowed: one row for each stage of plan 7");
  EXPECT_EQ(error_of(ops, with(iters, "140", "0")),
            "iters.csv:2: iter_energy_j: '0'; allowed: a number > 0 and <= 1e18 (joules)");
  EXPECT_EQ(error_of(ops, with(iters, "0.05", "-1")),
            "iters.csv:2: load_total_s: '-1'; allowed: a number >= 0 and <= 1e9 (seconds)");
  EXPECT_EQ(error_of(ops, iters_header + "7,perseus,0,0.7,140,0.05,3\n"),
            "iters.csv: no row for plan 7, stage 1, which ops.csv has");
}

TEST(RunTraceCsv, RefusesPlansThatRanInDifferentOrders) {
  const std::string other =
      "8,0,0,backward,0,1410,0.1\n8,0,1,forward,0,1410,0.1\n8,1,0,forward,0,1410,0.1\n8,1,1,backward,0,1410,0.1\n";
  EXPECT_EQ(
      error_of(ops + other, iters + "8,p,0,1,1,,1\n8,p,1,1,1,,1\n"),
      "ops.csv: plan 8: computation 0 of stage 0 is backward of stage 0, microbatch 0, in plan 7 it is forward of "
      "stage 0, microbatch 0; all plans must run in the same order");
  EXPECT_THAT(error_of(ops + "8,0,0,forward,0,1410,0.1\n", iters + "8,p,0,1,1,,1\n"),
              HasSubstr("plan 8: has 1 stages, 1 energies, 1 loading times; each must be 2, as in plan 7"));
}

TEST(RunTraceCsv, NamesAFileThatIsNotThere) {
  EXPECT_THAT(read_run_trace("no_such.ops.csv", "no_such.iters.csv").error().message, HasSubstr("no_such.ops.csv"));
}

}  // namespace
}  // namespace perseus::formats
