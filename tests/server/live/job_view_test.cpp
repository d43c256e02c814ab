// The view of a job for clients: what is known, why it is so, and what is saved.
#include "server/live/job_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/jobs/pipeline_input.h"
#include "tests/server/service/service_parts.h"

namespace perseus::live {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobViewTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  JobViewTest() { base.create("job"); }
  jobs::JobView view() { return view_of(live(), now_s()); }
};

TEST_F(JobViewTest, TheReasonNamesWhatHoldsThePlanBack) {
  plan();
  deploy(0);
  EXPECT_EQ(view().reason, "");
  live().job.characterizing.insert("input");
  live().job.characterized[jobs::quick_frontier_key("input")] = {};
  EXPECT_THAT(view().reason, HasSubstr("quick frontier"));
  live().replan.plan_held_back = true;
  EXPECT_THAT(view().reason, HasSubstr("until their switch latency is known"));
  const jobs::JobSummary before = summary_of(live());
  EXPECT_EQ(before.saved_pct, std::nullopt) << "the ranks still run at their highest clock";
  live().replan.plan_held_back = false;
  const jobs::JobSummary followed = summary_of(live());
  EXPECT_EQ(before.possible_saving_pct, followed.saved_pct);
  EXPECT_GT(followed.saved_pct, 0.0);
  EXPECT_LT(before.iteration_time, followed.iteration_time);
  live().job.unknown_events = 1;
  EXPECT_THAT(view().reason, HasSubstr("a later version of Perseus"));
  live().job.unknown_events = 0;
  base.append("job", {jobs::JobFinished{}});
  EXPECT_EQ(view().reason, "") << "the job is over";
}

TEST_F(JobViewTest, ReportsThatNameNoPlanCountFromTheProgress) {
  plan();
  deploy(1);
  live().reports.without_plan = true;
  live().job.counted_to = 10;
  live().reports.note_progress(job(), live().frontiers.all(), 0, 14, 14, now_s());
  const auto counts = counts_since(live());
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].iterations, 4);
  EXPECT_FALSE(counts[0].measured);
  EXPECT_EQ(view().total->estimated_iterations, 4);
  live().job.names_processes = true;
  live().reports.without_plan = false;
  EXPECT_THAT(counts_since(live()), IsEmpty()) << "its first report will name the plan";
}

TEST(JobViewOfProfiling, NamesTheRanksThatItWaitsForAndTheCost) {
  testing::ServiceParts parts;
  jobs::JobRegistered online;
  online.profile_online = true;
  online.shape = jobs::PipelineShape{};
  online.shape->microbatches = 2;
  parts.base.create("job", 2, online);
  parts.base.append("job", {jobs::ProfilingStarted{{0}, {{1400, 700}, {1400, 700}}}});
  parts.windows->go_on(parts.live());
  parts.base.settle();
  const auto profiling = [&] { return view_of(parts.live(), parts.now_s()).profiling; };
  ASSERT_TRUE(profiling());
  EXPECT_FALSE(profiling()->over);
  EXPECT_EQ(profiling()->windows, 1);
  EXPECT_THAT(profiling()->waiting_for, ElementsAre(0, 1));
  EXPECT_EQ(profiling()->cost, std::nullopt);
  LiveJob& live = parts.live();
  live.job.reported = {0};
  EXPECT_THAT(profiling()->waiting_for, ElementsAre(1));
  live.job.profiled.highest_s = 2;
  live.job.profiled.iterations = 10;
  live.job.profiled.extra_s = 1;
  live.job.profiled.extra_j = 100;
  live.job.measured_plan[live.job.prevailing()] = jobs::EnergyMeasured{1, 8, 360, 2};
  live.job.measured_highest[live.job.prevailing()] = jobs::EnergyMeasured{0, 8, 400, 2};
  ASSERT_TRUE(profiling()->cost);
  EXPECT_EQ(profiling()->cost->iterations, 10);
  EXPECT_DOUBLE_EQ(profiling()->cost->mean_slowdown_pct, 100 * 1 / 2.0 / 10);
  EXPECT_EQ(profiling()->cost->earned_back_after, 3) << "100 J at 40 J an iteration";
  live.job.measured_plan.begin()->second.energy_j = 400;
  EXPECT_EQ(profiling()->cost->earned_back_after, std::nullopt) << "the plan saves nothing";
}

}  // namespace
}  // namespace perseus::live
