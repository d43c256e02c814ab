#include "io/formats/frequency_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "tests/support/model_samples.h"

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

model::ComputationDag sample_dag(int microbatches = 1) {
  auto dag = model::build_dag(testing::two_clock_profile(), *model::make_schedule("1f1b", {2, microbatches, 1}),
                              {Watts(80), {}});
  EXPECT_TRUE(dag);
  return *dag;
}

std::string error_of(const std::string& text) {
  const auto plan = parse_frequency_plan(text, "p.py");
  return plan ? "no error" : plan.error().message;
}

std::string mismatch_of(const FrequencyPlan& frequencies) {
  const auto plan = to_plan(frequencies, sample_dag());
  return plan ? "no error" : plan.error().message;
}

TEST(FrequencyPlan, IsWrittenAsAPythonLiteral) {
  const model::ComputationDag dag = sample_dag();
  model::Plan plan(dag.computations.size(), 0);
  plan[dag.rank_order[1][1]] = 2;
  FrequencyPlanWriter writer(dag);
  EXPECT_EQ(writer.write(plan, "point 0\ntime_s 1"),
            "[\n"
            "[('forward', 1410), ('backward', 1410)],\n"
            "[('forward', 1410), ('backward', 1005)],\n"
            "]\n"
            "# point 0 time_s 1\n");
  EXPECT_EQ(frequency_plan_file_name(42), "freqs_pipeline_00042.py");
}

TEST(FrequencyPlan, ReadsBackAsTheSamePlan) {
  const model::ComputationDag dag = sample_dag(5);
  FrequencyPlanWriter writer(dag);
  for (int variant = 0; variant < 20; ++variant) {
    model::Plan plan;
    for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
      plan.push_back(static_cast<std::uint16_t>((i * 7 + variant) % dag.type_of(i).options.size()));
    }
    auto frequencies = parse_frequency_plan(writer.write(plan), "p");
    ASSERT_TRUE(frequencies) << frequencies.error().message;
    EXPECT_EQ(*frequencies, frequency_plan_of(dag, plan));
    auto back = to_plan(*frequencies, dag);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, plan);
  }
}

TEST(FrequencyPlan, LeavesConstantTimeInstructionsOut) {
  model::Profile profile = testing::two_clock_profile();
  profile.entries.insert(profile.entries.begin() + 2,
                         {0, "load", {{Megahertz(0), Seconds(0.1), Joules(1), {}, {}, 1}}});
  auto dag = model::build_dag(profile, *model::make_schedule("1f1b", {2, 1, 1}), {Watts(80), {}});
  ASSERT_TRUE(dag) << dag.error().message;
  const model::Plan plan(dag->computations.size(), 0);
  FrequencyPlanWriter writer(*dag);
  EXPECT_EQ(writer.write(plan),
            "[\n[('forward', 1410), ('backward', 1410)],\n[('forward', 1410), ('backward', 1410)],\n]\n");
  auto back = to_plan(frequency_plan_of(*dag, plan), *dag);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, plan);
}

TEST(FrequencyPlan, ARankWithSeveralStagesIsOneList) {
  auto schedule = model::make_schedule("interleaved-1f1b", {2, 2, 2});
  auto dag = model::build_dag(testing::two_clock_profile(4), *schedule, {Watts(80), {}});
  ASSERT_TRUE(dag) << dag.error().message;
  const FrequencyPlan frequencies = frequency_plan_of(*dag, model::Plan(dag->computations.size(), 0));
  ASSERT_EQ(frequencies.size(), 2u);
  EXPECT_EQ(frequencies[0].size(), 8u);
}

TEST(FrequencyPlan, TakesAnyLiteralOfThisShape) {
  const FrequencyPlan expected = {{{"forward", Megahertz(1410)}, {"backward", Megahertz(0)}}, {}};
  for (const char* text :
       {"[[('forward',1410),('backward',0)],[]]", "[\n[(\"forward\", 1410), ('backward', 0,),],\n[],\n]\n",
        "\xef\xbb\xbf# c [\n[ # (\n[('forward'\t,1410 ) , ('backward',0)]\r\n,[]] # Iteration 3 cost change: 0.5\n#"}) {
    auto plan = parse_frequency_plan(text, "p");
    ASSERT_TRUE(plan) << text << ": " << plan.error().message;
    EXPECT_EQ(*plan, expected) << text;
  }
}

TEST(FrequencyPlan, ErrorsNameLineFoundAndExpected) {
  EXPECT_EQ(error_of(""), "p.py:1: found the end of the file; expected [ that opens the list of ranks");
  EXPECT_EQ(error_of("[\n[('forward', 1410]]"), "p.py:2: found ']]'; expected ) after the MHz");
  EXPECT_THAT(error_of("[[('forward', -1)]]"), HasSubstr("expected an integer from 0 to 1000000 (MHz)"));
  EXPECT_THAT(error_of("[[('forward', 1000001)]]"), HasSubstr("expected an integer from 0"));
  EXPECT_THAT(error_of("[[('forward', 99999999999999999999)]]"), HasSubstr("expected an integer from 0"));
  EXPECT_THAT(error_of("[[('forward', 1410.5)]]"), HasSubstr("found '.5)]]'"));
  EXPECT_THAT(error_of("[[('forward' 1410)]]"), HasSubstr("expected a comma between instruction and MHz"));
  EXPECT_THAT(error_of("[[('for ward', 1410)]]"), HasSubstr("expected an instruction's name of 1..64"));
  EXPECT_THAT(error_of("[[('', 1410)]]"), HasSubstr("expected an instruction's name of 1..64"));
  EXPECT_THAT(error_of("[[(forward, 1410)]]"), HasSubstr("expected an instruction's name in quotes"));
  EXPECT_THAT(error_of("[[('forward\", 1410)]]"), HasSubstr("expected an instruction's name of"));
  EXPECT_THAT(error_of("[[] []]"), HasSubstr("expected a comma or ]"));
  EXPECT_THAT(error_of("[[,]]"), HasSubstr("expected ( that opens"));
  EXPECT_THAT(error_of("[]"), HasSubstr("expected at least one rank's list"));
  EXPECT_THAT(error_of("[[]] + [[]]"), HasSubstr("expected the end of the file"));
  EXPECT_THAT(error_of(std::string("[[]]\0x", 6)), HasSubstr("expected the end of the file"));
  EXPECT_THAT(error_of("__import__('os')"), HasSubstr("expected [ that opens"));
}

TEST(FrequencyPlan, MismatchesWithThePipelineAreNamed) {
  const auto f = [](int clock) { return ClockedInstruction{"forward", Megahertz(clock)}; };
  const auto b = [](int clock) { return ClockedInstruction{"backward", Megahertz(clock)}; };
  EXPECT_EQ(mismatch_of({{f(1410), b(1410)}}), "frequency plan: 1 lists, but the pipeline has 2 ranks");
  EXPECT_EQ(mismatch_of({{f(1410), b(1410)}, {f(1410)}}),
            "frequency plan: rank 1: 1 instructions, but the schedule runs 2 there");
  EXPECT_EQ(mismatch_of({{f(1410), b(1410), b(1410)}, {f(1410), b(1410)}}),
            "frequency plan: rank 0: 3 instructions, but the schedule runs 2 there");
  EXPECT_EQ(mismatch_of({{b(1410), f(1410)}, {f(1410), b(1410)}}),
            "frequency plan: rank 0, position 0: 'backward', but the schedule runs 'forward' there");
  EXPECT_EQ(
      mismatch_of({{f(1410), b(1200)}, {f(1410), b(1410)}}),
      "frequency plan: rank 0, position 1: backward at 1200 MHz, which was not measured; nearest: 1215 and 1005 MHz");
  EXPECT_THAT(mismatch_of({{f(1500), b(1410)}, {f(1410), b(1410)}}), HasSubstr("nearest: 1410 MHz"));
}

}  // namespace
}  // namespace perseus::formats
