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
  JobViewTest() {
    jobs::JobRegistered job;
    job.name = "a job";
    job.facts = {{"accelerator", "H100"}, {std::string(kOwnerFact), "a token"}};
    job.labels = {{"team", "vision"}};
    base.create("job", 2, job);
  }
  jobs::JobView view() { return view_of(live(), now_s()); }
  /// Iterations under the first plan, as both ranks reported them; the log does not have them yet.
  void report(std::int64_t last, std::int64_t count, double energy_j = 100) {
    for (const int rank : {0, 1}) {
      live().reports.followed.report({.rank = rank,
                                      .ranks = 2,
                                      .version = 1,
                                      .last = last,
                                      .count = count,
                                      .energies = std::vector(count, Joules(energy_j))});
    }
  }
};

TEST_F(JobViewTest, AJobWithoutAProfileHasNoPlanAndNoSavings) {
  const jobs::JobView shown = view();
  EXPECT_EQ(shown.header.job, "job");
  EXPECT_EQ(shown.header.name, "a job");
  EXPECT_EQ(shown.header.state, "registered");
  EXPECT_EQ(shown.sequence, 3);
  EXPECT_EQ(shown.ranks_registered, 2);
  EXPECT_EQ(shown.facts.at("accelerator"), "H100");
  EXPECT_EQ(shown.labels.at("team"), "vision");
  EXPECT_FALSE(shown.plan);
  EXPECT_FALSE(shown.per_iteration);
  EXPECT_FALSE(shown.total);
  EXPECT_EQ(shown.no_total, "");
  ASSERT_EQ(shown.pipelines.size(), 1U);
  EXPECT_EQ(shown.pipelines[0].point, std::nullopt);
}

TEST_F(JobViewTest, APlanIsShownWithItsFrontiersTimesAndEachPipelinesPoint) {
  plan();
  deploy(1);
  const jobs::JobView shown = view();
  const auto frontier = live().frontiers.find(job().input_of[0]);
  ASSERT_TRUE(shown.plan && frontier);
  const auto& points = frontier->frontier.points;
  EXPECT_EQ(shown.plan->version, 1);
  EXPECT_EQ(shown.plan->t_min, points.back().time);
  EXPECT_EQ(shown.plan->t_star, points.front().time);
  EXPECT_EQ(shown.plan->t_max, frontier->all_max_time);
  EXPECT_EQ(shown.plan->reason, "a test");
  ASSERT_EQ(shown.pipelines.size(), 1U);
  EXPECT_EQ(shown.pipelines[0].point, 1);
  EXPECT_EQ(shown.pipelines[0].points, static_cast<int>(points.size()));
  EXPECT_EQ(shown.pipelines[0].time, points[1].time);
  EXPECT_EQ(shown.facts.at("profile"), "two stages");
  EXPECT_EQ(shown.microbatches, 2);
  ASSERT_TRUE(shown.per_iteration);
  EXPECT_GT(shown.per_iteration->saved_pct(), 0);
}

TEST_F(JobViewTest, WhileItsFrontierIsReadAPlanHasNoTimes) {
  plan();
  deploy(1);
  live().frontiers = {};
  const jobs::JobView shown = view();
  ASSERT_TRUE(shown.plan);
  EXPECT_EQ(shown.plan->t_min, std::nullopt);
  EXPECT_EQ(shown.pipelines[0].point, 1);
  EXPECT_EQ(shown.per_iteration, std::nullopt);
}

TEST_F(JobViewTest, TheReasonNamesWhatHoldsThePlanBack) {
  plan();
  deploy(0);
  EXPECT_EQ(view().reason, "");
  live().job.characterizing.insert("input");
  live().job.characterized[jobs::quick_frontier_key("input")] = {};
  EXPECT_THAT(view().reason, HasSubstr("quick frontier"));
  live().replan.plan_held_back = true;
  EXPECT_THAT(view().reason, HasSubstr("until their switch latency is known"));
  live().job.unknown_events = 1;
  EXPECT_THAT(view().reason, HasSubstr("a later version of Perseus"));
  live().job.unknown_events = 0;
  base.append("job", {jobs::JobFinished{}});
  EXPECT_EQ(view().reason, "") << "the job is over";
}

TEST_F(JobViewTest, StragglersPoliciesAndWaitingRanksAreListed) {
  plan();
  deploy(0);
  jobs::MaxSlowdown policy;
  policy.slowdown = 1.05;
  base.append("job", {jobs::StragglerNoticed{"s1", {}, 0, 1.5, now_s()}, jobs::StragglerTookEffect{"s1"},
                      jobs::PolicySet{policy}});
  live().calls.waiters.emplace(1, Waiter{});
  const jobs::JobView shown = view();
  ASSERT_EQ(shown.stragglers.size(), 1U);
  EXPECT_EQ(shown.stragglers[0].id, "s1");
  EXPECT_TRUE(shown.stragglers[0].in_force);
  EXPECT_TRUE(shown.pipelines[0].straggler);
  EXPECT_EQ(shown.policies.size(), 1U);
  EXPECT_THAT(shown.policy_texts, ElementsAre(HasSubstr("5")));
  EXPECT_EQ(shown.ranks_waiting, 1);
  EXPECT_EQ(summary_of(live()).stragglers, 1);
}

TEST_F(JobViewTest, TheTotalHasReportsThatTheLogDoesNotHaveYet) {
  plan();
  deploy(1);
  EXPECT_EQ(view().total, std::nullopt);
  EXPECT_EQ(view().no_total, "no reports of iterations");
  EXPECT_THAT(counts_since(live()), IsEmpty());
  base.append("job", {jobs::EnergyMeasured{0, 8, 300, 1}, jobs::ReportsKept{}});
  report(4, 5);
  const auto counts = counts_since(live());
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].iterations, 5);
  EXPECT_TRUE(counts[0].measured);
  const auto total = view().total;
  ASSERT_TRUE(total);
  EXPECT_EQ(total->iterations, 5);
  EXPECT_NEAR(total->saved.value(), 5 * (300 - 200), 1e-9);
  EXPECT_TRUE(total->measured);
  base.append("job", {counts[0]});
  live().reports.counted_to(4);
  EXPECT_EQ(view().total->iterations, 5) << "once, also when the log has them";
  EXPECT_THAT(counts_since(live()), IsEmpty());
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

TEST_F(JobViewTest, ASummaryNamesOwnerAcceleratorAndLabels) {
  const jobs::JobSummary summary = summary_of(live());
  EXPECT_EQ(summary.ranks, 2);
  EXPECT_EQ(summary.ranks_registered, 2);
  EXPECT_EQ(summary.pipelines, 1);
  EXPECT_EQ(summary.accelerator, "H100");
  EXPECT_EQ(summary.owner, "a token");
  EXPECT_EQ(summary.labels.at("team"), "vision");
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
