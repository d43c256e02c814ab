// A job that starts without a profile: windows, results, the plan, and ranks that stop reporting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/planner/exact.h"
#include "server/jobs/pipeline_input.h"
#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/training.h"
#include "tests/support/plan_loss.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;
using ::testing::HasSubstr;
using Kind = jobs::StageSchedule::Kind;

constexpr int online_microbatches = 6;

jobs::RegisterJob online_job(jobs::Degrees degrees) {
  jobs::RegisterJob request;
  request.degrees = degrees;
  request.profile_online = true;
  request.facts = {{"model_name", "invented"}};
  request.shape.emplace();
  request.shape->microbatches = online_microbatches;
  request.shape->blocking_power = Watts(83.64);
  return request;
}

struct OnlineProfiling : ::testing::Test {
  std::string begin(const jobs::RegisterJob& request) {
    const auto registered = target.register_job(request);
    EXPECT_TRUE(registered.ok()) << registered.error().message;
    return registered->job;
  }
  jobs::JobView view(const std::string& job) { return target.job(job).value(); }

  InProcess target;
};

TEST_F(OnlineProfiling, EndsWithAPlanAsGoodAsTheTruths) {
  const jobs::Degrees degrees{2, 3, 2};
  const std::string job = begin(online_job(degrees));
  EXPECT_EQ(view(job).header.state, "registered");
  Training training(target, job, degrees, online_microbatches);
  ASSERT_TRUE(training.register_ranks().ok());
  EXPECT_EQ(view(job).header.state, "profiling");
  EXPECT_EQ(view(job).profiling->waiting_for.size(), 6U);

  ASSERT_EQ(training.run_window().value(), 12);
  EXPECT_EQ(training.received(0)->kind, Kind::profiling_window);
  EXPECT_EQ(training.received(11)->window, 0);
  const Status planned = training.run_until_plan(100);
  ASSERT_TRUE(planned.ok()) << planned.error().message;
  EXPECT_EQ(training.received(11)->kind, Kind::plan);

  const jobs::JobView now = view(job);
  EXPECT_EQ(now.header.state, "deployed");
  EXPECT_TRUE(now.profiling->over);
  EXPECT_GT(now.profiling->windows, 2);
  EXPECT_THAT(now.profiling->text, HasSubstr("expected to lose"));
  const model::Frontier best = planner::plan_exact(training.truth());
  EXPECT_NEAR(now.plan->t_min->value(), best.points.back().time.value(), 0.01 * best.points.back().time.value());
}

/// The plan's shortest time, relative to that of the best plan for the actual job.
double later_pct(const jobs::JobView& planned, const Training& training) {
  return 100 * (planned.plan->t_min->value() / planner::plan_exact(training.truth()).points.back().time.value() - 1);
}

SimulationOptions with_slow_link() {
  SimulationOptions options;
  options.transfer_latency = model::TransferLatency(
      std::vector<model::BoundaryLatency>{{Seconds(0.002), Seconds(0.002)}, {Seconds(0.06), Seconds(0.06)}});
  return options;
}

TEST_F(OnlineProfiling, PlansWithTheLinksThatRanksMeasure) {
  const jobs::Degrees degrees{2, 3, 2};
  const std::string job = begin(online_job(degrees));
  Training training(target, job, degrees, online_microbatches, with_slow_link());
  ASSERT_TRUE(training.register_ranks().ok());
  ASSERT_TRUE(training.run_until_plan(100).ok());
  EXPECT_NEAR(later_pct(view(job), training), 0, 1);
  EXPECT_THAT(view(job).profiling->text, HasSubstr("transfers take 0.002 to 0.06 s, slowest: boundary 1"));

  // The savings without profiling.
  jobs::RegisterJob other = online_job(degrees);
  other.facts = {{"model_name", "another"}};
  const std::string blind = begin(other);
  Training silent(target, blind, degrees, online_microbatches, with_slow_link());
  silent.without_begins();
  ASSERT_TRUE(silent.register_ranks().ok());
  ASSERT_TRUE(silent.run_until_plan(100).ok());
  EXPECT_LT(later_pct(view(blind), silent), -5);
}

TEST_F(OnlineProfiling, PlansALearnedProfileWithTheJobsOwnLinks) {
  const jobs::Degrees degrees{1, 3, 1};
  const std::string first = begin(online_job(degrees));
  Training one_node(target, first, degrees, online_microbatches);
  ASSERT_TRUE(one_node.register_ranks().ok());
  ASSERT_TRUE(one_node.run_until_plan(100).ok());

  const std::string second = begin(online_job(degrees));
  Training two_nodes(target, second, degrees, online_microbatches, with_slow_link());
  ASSERT_TRUE(two_nodes.register_ranks().ok());
  ASSERT_TRUE(two_nodes.run_until_plan(3).ok()) << "a trial takes one window";
  EXPECT_NEAR(later_pct(view(second), two_nodes), 0, 1);
}

/// Of the plan that the first pipeline's ranks have, against the best one for the actual job.
testing::PlanLoss loss_of(const Training& training) {
  const model::ComputationDag& truth = training.truth();
  model::Plan plan(truth.computations.size());
  for (int rank = 0; rank < truth.num_ranks(); ++rank) {
    for (std::size_t a = 0; a < truth.rank_order[rank].size(); ++a) {
      const int c = truth.rank_order[rank][a];
      const auto& options = truth.type_of(c).options;
      const auto option =
          std::ranges::find(options, training.received(rank)->clocks[a].clock, &model::Measurement::clock);
      plan[c] = static_cast<model::Plan::value_type>(option - options.begin());
    }
  }
  const model::Frontier best = planner::plan_exact(truth);
  return testing::plan_loss(truth, best, plan, best.points.back().time);
}

/// A planned job whose stage 1 has become slower, and whose ranks have dropped the plan.
void make_slower(OnlineProfiling& test, Training& training, const std::string& job, bool by_memory) {
  ASSERT_TRUE(training.register_ranks().ok());
  ASSERT_TRUE(training.run_until_plan(100).ok());
  training.slow_down(1, 1.4, by_memory);
  EXPECT_GT(loss_of(training).strict_loss_pct, 1) << "of the plan that the ranks have";
  jobs::DropPlan drop;
  drop.job = job;
  drop.version = training.received(0)->version;
  ASSERT_TRUE(test.target.drop_plan(drop).ok());
  ASSERT_TRUE(training.run_until_plan(100).ok());
  ASSERT_EQ(training.received(0)->kind, Kind::plan);
}

/// A job that was slower from the beginning.
testing::PlanLoss measured_as_a_whole(OnlineProfiling& test, bool by_memory) {
  jobs::RegisterJob request = online_job({1, 3, 1});
  request.facts = {{"model_name", "another"}};
  const std::string job = test.begin(request);
  Training training(test.target, job, {1, 3, 1}, online_microbatches);
  training.slow_down(1, 1.4, by_memory);
  EXPECT_TRUE(training.register_ranks().ok());
  EXPECT_TRUE(training.run_until_plan(100).ok());
  EXPECT_GT(test.view(job).profiling->windows, 8);
  return loss_of(training);
}

TEST_F(OnlineProfiling, AStageThatBecomesSlowerIsPlannedAgainAfterTwoWindows) {
  const std::string job = begin(online_job({1, 3, 1}));
  Training training(target, job, {1, 3, 1}, online_microbatches);
  ASSERT_NO_FATAL_FAILURE(make_slower(*this, training, job, false));
  EXPECT_EQ(view(job).profiling->windows, 2) << view(job).profiling->text;
  EXPECT_THAT(view(job).profiling->text, HasSubstr("2 of 6 computations deviate"));
  const testing::PlanLoss loss = loss_of(training), whole = measured_as_a_whole(*this, false);
  EXPECT_LT(loss.strict_loss_pct, std::max(whole.strict_loss_pct, 0.3));
  EXPECT_LT(loss.late_pct, std::max(whole.late_pct, 0.3));
}

TEST_F(OnlineProfiling, AStageWhoseMemoryBecomesSlowerGetsAsGoodAPlan) {
  const std::string job = begin(online_job({1, 3, 1}));
  Training training(target, job, {1, 3, 1}, online_microbatches);
  ASSERT_NO_FATAL_FAILURE(make_slower(*this, training, job, true));
  EXPECT_GT(view(job).profiling->windows, 4);
  const testing::PlanLoss loss = loss_of(training), whole = measured_as_a_whole(*this, true);
  EXPECT_LT(loss.strict_loss_pct, std::max(whole.strict_loss_pct, 0.5));
  EXPECT_LT(loss.late_pct, std::max(whole.late_pct, 0.5));
}

TEST_F(OnlineProfiling, AcceptsTheLinksThatAJobNames) {
  const jobs::Degrees degrees{1, 3, 1};
  jobs::RegisterJob request = online_job(degrees);
  request.shape->transfer_latency = Seconds(0);
  const std::string job = begin(request);
  Training training(target, job, degrees, online_microbatches, with_slow_link());
  ASSERT_TRUE(training.register_ranks().ok());
  ASSERT_TRUE(training.run_until_plan(100).ok());
  EXPECT_LT(later_pct(view(job), training), -5);
}

TEST_F(OnlineProfiling, ReportsExcludedSamplesAndRefusesMismatches) {
  const jobs::Degrees degrees{1, 2, 1};
  const std::string job = begin(online_job(degrees));
  Training training(target, job, degrees, online_microbatches);
  ASSERT_TRUE(training.register_ranks().ok());
  ASSERT_EQ(training.run_window({0, 1}).value(), 0);
  const auto report = [&](jobs::ReportIterations result) {
    std::optional<Result<jobs::ReportedIterations>> answer;
    target.service().reports.report(std::move(result), [&](const auto& reported) { answer = reported; });
    target.settle();
    return *answer;
  };
  jobs::ReportIterations good = training.report_of(0).value();

  jobs::ReportIterations odd = good;
  odd.time_s["forward"].front().pop_back();
  EXPECT_THAT(report(odd).error().message, HasSubstr("5 values; the rank runs it 6 times"));
  odd = good;
  odd.window = 1;
  EXPECT_THAT(report(odd).error().message, HasSubstr("window: 1; 1 were handed out"));
  EXPECT_EQ(view(job).profiling->waiting_for.size(), 2U);

  good.throttled = {true};
  const auto reported = report(good);
  ASSERT_TRUE(reported.ok()) << reported.error().message;
  EXPECT_THAT(reported->rejected, ::testing::ElementsAre(HasSubstr("rank 0, window 0, iteration 0: throttled")));
  EXPECT_EQ(report(good)->rejected, reported->rejected) << "a retry";
  const jobs::JobView now = view(job);
  EXPECT_EQ(now.profiling->rejected, 1);
  EXPECT_EQ(now.profiling->rejections, reported->rejected);
  EXPECT_EQ(now.profiling->waiting_for, std::vector<int>{1});

  // The server uses no result of a completed window.
  ASSERT_EQ(training.run_window({0}).value(), 1);
  ASSERT_EQ(view(job).profiling->windows, 2);
  EXPECT_THAT(report(good)->rejected, ::testing::ElementsAre(HasSubstr("window 0 is over: window 1 runs now")));
}

TEST_F(OnlineProfiling, CountsNoIterationOfAWindowAsOneOfThePlan) {
  const jobs::Degrees degrees{1, 2, 1};
  const std::string job = begin(online_job(degrees));
  Training training(target, job, degrees, online_microbatches);
  ASSERT_TRUE(training.register_ranks().ok());
  ASSERT_TRUE(training.run_until_plan(100).ok());
  ASSERT_EQ(view(job).header.state, "deployed");
  const jobs::JobView before = view(job);
  // A late report of the last window, which is incomplete too.
  jobs::ReportIterations late;
  late.job = job;
  late.window = before.profiling->windows - 1;
  late.last_iteration = before.plan->from_iteration + 5;
  late.iteration_time = {Seconds(1)};
  late.time_s = {{"forward", {{0.1}}}};
  ASSERT_TRUE(target.report_iterations(late).ok());
  EXPECT_EQ(view(job).sequence, before.sequence);
}

TEST_F(OnlineProfiling, AClientThatReportsNoWindowGetsEachWindowOnce) {
  const jobs::Degrees degrees{2, 2, 1};
  const std::string job = begin(online_job(degrees));
  Training training(target, job, degrees, online_microbatches);
  ASSERT_TRUE(training.register_ranks().ok());
  ASSERT_EQ(training.run_window({0, 1, 2, 3}).value(), 0);
  const auto ask = [&](int rank) { return target.wait_for_plan({job, rank, 0, std::nullopt, std::nullopt}); };
  const auto window_of = [&](int wait) {
    const auto answer = target.answer_of(wait);
    return answer ? (*answer)->schedule->window : -1;
  };
  for (const int rank : {1, 3, 0}) {
    EXPECT_EQ(window_of(ask(rank)), 0);
    EXPECT_EQ(window_of(ask(rank)), 0) << "it was lost on its way";
    jobs::ReportIterations result = training.report_of(rank).value();
    result.window.reset();
    const int before = rank == 0 ? -1 : ask(rank);
    ASSERT_TRUE(target.report_iterations(result).ok());
    if (rank == 0) break;  // the last rank of the pipeline that measures
    EXPECT_EQ(window_of(before), 0);
    EXPECT_EQ(window_of(ask(rank)), -1) << "it has run that one";
  }
  for (const int rank : {0, 1, 2, 3}) EXPECT_EQ(window_of(ask(rank)), 1);
}

TEST(OnlineProfilingBudget, ASearchOverItsBudgetEndsProfilingWithTheKnownClocks) {
  service::ServiceOptions options;
  options.planning_budget_s = 1e-9;
  InProcess target(options);
  const jobs::Degrees degrees{1, 2, 1};
  const std::string job = target.register_job(online_job(degrees)).value().job;
  Training training(target, job, degrees, online_microbatches);
  ASSERT_TRUE(training.register_ranks().ok());
  ASSERT_TRUE(training.run_until_plan(10).ok());
  const jobs::JobView now = target.job(job).value();
  EXPECT_EQ(now.header.state, "deployed");
  EXPECT_THAT(now.profiling->text,
              HasSubstr("the search for clocks to measure took longer than its budget of 1e-09 s (planning_budget_s)"));
}

TEST_F(OnlineProfiling, ASearchIsPlannersWorkAndEndsWithItsJob) {
  const jobs::Degrees degrees{1, 2, 1};
  const std::string job = begin(online_job(degrees));
  Training training(target, job, degrees, online_microbatches);
  ASSERT_TRUE(training.register_ranks().ok());
  ASSERT_TRUE(training.run_window().ok());
  const double before_s = target.service().counts().planner_s;
  EXPECT_GT(before_s, 0);
  target.hold_work(true);
  ASSERT_TRUE(training.run_window().ok());
  EXPECT_EQ(target.service().counts().planning.front().running, 1);
  ASSERT_TRUE(target.finish_job(job).ok());
  target.hold_work(false);
  EXPECT_EQ(target.service().counts().planning.front().running, 0);
  EXPECT_EQ(view(job).header.state, "finished");
}

}  // namespace
}  // namespace perseus::testing
