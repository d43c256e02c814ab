#include "io/formats/frequency_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "tests/support/model_samples.h"

namespace perseus::formats {
namespace {

model::ComputationDag sample_dag(int microbatches = 1) {
  auto dag = model::build_dag(testing::two_clock_profile(), *model::make_schedule("1f1b", {2, microbatches, 1}),
                              {Watts(80), {}});
  EXPECT_TRUE(dag);
  return *dag;
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
}

TEST(FrequencyPlan, ARankWithSeveralStagesIsOneList) {
  auto schedule = model::make_schedule("interleaved-1f1b", {2, 2, 2});
  auto dag = model::build_dag(testing::two_clock_profile(4), *schedule, {Watts(80), {}});
  ASSERT_TRUE(dag) << dag.error().message;
  FrequencyPlanWriter writer(*dag);
  const std::string text(writer.write(model::Plan(dag->computations.size(), 0)));
  std::istringstream lines(text.substr(2));
  for (std::string line; std::getline(lines, line) && line != "]";) {
    EXPECT_EQ(std::ranges::count(line, '('), 8) << line;
  }
}

}  // namespace
}  // namespace perseus::formats
