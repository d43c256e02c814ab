// Pipelines with long planning: quick first plans, turns between owners, refinement, and cancellation when no job
// needs the plan any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/jobs/pipeline_input.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

service::ServiceOptions all_are_long() {
  service::ServiceOptions options;
  options.quick_above_s = 0;
  return options;
}

/// The service treats every pipeline here as one with long planning.
class PlanningTurns : public ::testing::Test {
 protected:
  /// Number of microbatches: a different number is a different pipeline.
  static jobs::NamedProfile profile(int microbatches) {
    return small_profile("p" + std::to_string(microbatches), microbatches);
  }
  std::string job(int microbatches, const std::string& team = "") {
    jobs::RegisterJob request;
    request.degrees.pp = 2;
    request.name = team + std::to_string(microbatches);
    if (!team.empty()) request.facts["team"] = team;
    const std::string id = target.register_job(request).value().job;
    EXPECT_TRUE(target.upload_profile(id, profile(microbatches)).ok());
    return id;
  }
  void register_ranks(const std::string& id, const std::string& control = "") {
    for (int rank = 0; rank < 2; ++rank) {
      jobs::RegisterRank request = rank_of(id, {1, 2, 1}, rank);
      request.clocks_mhz = {1410, 810};
      request.control = control;
      EXPECT_TRUE(target.register_rank(request).ok());
    }
  }
  void drop(const std::string& id) {
    jobs::DropPlan drop;
    drop.job = id;
    drop.rank = 1;
    drop.version = 1;
    ASSERT_TRUE(target.drop_plan(drop).ok());
  }
  jobs::JobView view(const std::string& id) { return target.job(id).value(); }
  std::string frontier_of(const std::string& id) { return view(id).pipelines[0].frontier; }
  std::vector<std::string> stored_frontiers() {
    std::vector<std::string> keys;
    for (const auto& [key, bytes] : target.database().blobs()) {
      if (key.starts_with("frontier/")) keys.push_back(key);
    }
    return keys;
  }

  InProcess target{all_are_long()};
};

TEST_F(PlanningTurns, AQuickPlanIsDeployedAndThenRefined) {
  target.hold_refining(true);
  const std::string a = job(4);
  jobs::JobView now = view(a);
  EXPECT_EQ(now.header.state, "deployed");
  EXPECT_THAT(now.reason, HasSubstr("quick frontier"));
  ASSERT_TRUE(now.plan);
  EXPECT_EQ(now.plan->version, 1);
  EXPECT_TRUE(jobs::is_quick_frontier_key(frontier_of(a)));
  const auto quick_energy = now.pipelines[0].energy;

  target.hold_refining(false);
  now = view(a);
  EXPECT_EQ(now.header.state, "deployed");
  EXPECT_EQ(now.reason, "");
  EXPECT_EQ(now.plan->version, 2);
  EXPECT_FALSE(jobs::is_quick_frontier_key(frontier_of(a)));
  EXPECT_LE(now.pipelines[0].energy, quick_energy * (1 + 1e-9));
  EXPECT_GT(quick_energy, Joules(0));
  EXPECT_EQ(target.service().counts().characterizing, 0);
}

TEST_F(PlanningTurns, ARestartGoesOnWithTheRefinement) {
  target.hold_refining(true);
  const std::string a = job(4);
  target.restart();
  EXPECT_EQ(view(a).plan->version, 1);
  EXPECT_TRUE(jobs::is_quick_frontier_key(frontier_of(a)));
  target.hold_refining(false);
  EXPECT_EQ(view(a).plan->version, 2);
  EXPECT_FALSE(jobs::is_quick_frontier_key(frontier_of(a)));
}

TEST_F(PlanningTurns, QuickPlansPrecedeRefinementsAndOwnersTakeTurns) {
  std::map<std::string, std::string> names;
  std::vector<std::string> order;
  target.service().subscriptions.subscribe_all([&](const jobs::JobEvent& event) {
    if (event.kind == "characterized")
      order.push_back((event.text.starts_with("quick") ? "quick " : "") + names[event.job]);
  });
  target.hold_work(true);
  for (const int microbatches : {3, 4, 5}) names[job(microbatches, "a")] = "a" + std::to_string(microbatches);
  names[job(6, "b")] = "b6";
  EXPECT_EQ(target.service().counts().planning.front().waiting, 3);  // one is being planned
  target.hold_work(false);
  EXPECT_THAT(order, ElementsAre("quick a3", "quick b6", ::testing::_, ::testing::_, ::testing::_, ::testing::_,
                                 ::testing::_, ::testing::_));
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i].starts_with("quick"), i < 4) << order[i];
}

TEST_F(PlanningTurns, AnEndedJobIsPlannedNoMore) {
  target.hold_refining(true);
  const std::string a = job(4);
  ASSERT_TRUE(target.finish_job(a).ok());
  target.hold_refining(false);
  EXPECT_EQ(target.service().counts().plannings_stopped, 1);
  EXPECT_EQ(target.service().counts().characterizing, 0);
  ASSERT_EQ(stored_frontiers().size(), 1U);
  EXPECT_TRUE(jobs::is_quick_frontier_key(stored_frontiers()[0]));
  (void)target.job(a);  // reading the job does not start planning
  EXPECT_EQ(target.service().counts().characterizing, 0);
}

TEST_F(PlanningTurns, AJobThatEndsWhileItWaitsIsNeverPlanned) {
  target.hold_work(true);
  const std::string a = job(4), b = job(5);
  ASSERT_TRUE(target.finish_job(b).ok());
  EXPECT_EQ(target.service().counts().planning.front().waiting, 0);
  target.hold_work(false);
  EXPECT_EQ(stored_frontiers().size(), 2U);  // those of job a
  EXPECT_EQ(view(a).header.state, "deployed");
}

TEST_F(PlanningTurns, ANewerProfileStopsPlanningTheOlderOne) {
  target.hold_refining(true);
  const std::string a = job(4);
  ASSERT_TRUE(target.upload_profile(a, profile(5)).ok());
  target.hold_refining(false);
  EXPECT_EQ(target.service().counts().plannings_stopped, 1);
  EXPECT_EQ(stored_frontiers().size(), 3U);  // two quick ones, one refined
  EXPECT_FALSE(jobs::is_quick_frontier_key(frontier_of(a)));
  EXPECT_EQ(view(a).reason, "");
}

TEST_F(PlanningTurns, AnotherJobThatWantsItKeepsItGoing) {
  target.hold_refining(true);
  const std::string a = job(4), b = job(4);
  ASSERT_TRUE(target.finish_job(a).ok());
  EXPECT_TRUE(jobs::is_quick_frontier_key(frontier_of(b)));
  target.hold_refining(false);
  EXPECT_EQ(target.service().counts().plannings_stopped, 0);
  EXPECT_FALSE(jobs::is_quick_frontier_key(frontier_of(b)));
}

TEST_F(PlanningTurns, WantedAgainAfterItWasStopped) {
  target.hold_refining(true);
  const std::string a = job(4);
  ASSERT_TRUE(target.finish_job(a).ok());
  const std::string b = job(4);
  EXPECT_EQ(view(b).header.state, "deployed");
  target.hold_refining(false);
  EXPECT_FALSE(jobs::is_quick_frontier_key(frontier_of(b)));
}

TEST_F(PlanningTurns, AServerThatStopsDoesNotWaitForPlanning) {
  target.hold_refining(true);
  (void)job(4);
  bool kept = false;
  target.service().drain(2, [&](const Result<Ok>&) { kept = true; });
  target.settle();
  EXPECT_TRUE(kept);
}

TEST_F(PlanningTurns, ADroppedQuickPlanDoesNotComeBackRefined) {
  target.hold_refining(true);
  const std::string a = job(4);
  register_ranks(a, "none");  // so it is not measured again
  drop(a);
  EXPECT_THAT(view(a).plan->reason, HasSubstr("maximum clock"));
  target.hold_refining(false);
  EXPECT_THAT(view(a).plan->reason, HasSubstr("maximum clock"));
}

TEST_F(PlanningTurns, ADroppedQuickPlanDoesNotComeBackRefinedWhileItsProfileIsMeasuredAgain) {
  target.hold_refining(true);
  const std::string a = job(4);
  register_ranks(a);
  drop(a);
  EXPECT_EQ(view(a).header.state, "profiling");
  target.hold_refining(false);
  EXPECT_EQ(view(a).header.state, "profiling");
  for (const int rank : {0, 1}) {
    const auto answer = target.answer_of(target.wait_for_plan({a, rank, 1, std::nullopt, std::nullopt}));
    ASSERT_TRUE(answer && answer->ok());
    EXPECT_EQ((*answer)->schedule->kind, jobs::StageSchedule::Kind::profiling_window);
  }
}

TEST(PlanningBudget, AJobOverBudgetKeepsItsQuickPlanAndReportsWhy) {
  service::ServiceOptions options = all_are_long();
  options.planning_budget_s = 1e-9;
  InProcess target(options);
  jobs::RegisterJob request;
  request.degrees.pp = 2;
  const std::string a = target.register_job(request).value().job;
  ASSERT_TRUE(target.upload_profile(a, small_profile("", 4)).ok());
  const jobs::JobView now = target.job(a).value();
  EXPECT_EQ(now.header.state, "deployed");
  EXPECT_EQ(now.plan->version, 1);
  EXPECT_THAT(now.reason, HasSubstr("planning took longer than its budget of 1e-09 s (planning_budget_s)"));
  EXPECT_EQ(target.service().counts().characterizing, 0);
  target.restart();
  EXPECT_THAT(target.job(a).value().reason, HasSubstr("budget"));
  EXPECT_EQ(target.service().counts().characterizing, 0);
}

TEST_F(PlanningTurns, ASingleRequestSoonGetsTheHighestClocks) {
  target.hold_work(true);
  const std::string a = job(4);
  register_ranks(a);
  jobs::WaitForPlan once;
  once.job = a;
  once.asks_once = true;
  const int wait = target.wait_for_plan(once);
  target.go_to(19);
  EXPECT_FALSE(target.answer_of(wait));
  target.go_to(21);
  const auto answer = target.answer_of(wait);
  ASSERT_TRUE(answer && answer->ok());
  ASSERT_TRUE((*answer)->schedule);
  EXPECT_EQ((*answer)->schedule->kind, jobs::StageSchedule::Kind::maximum_clock);
  EXPECT_EQ((*answer)->schedule->clocks.size(), 8U);
}

TEST(PlanningFairness, ALongRefinementTakesTurnsWithThoseOfOthers) {
  service::ServiceOptions options = all_are_long();
  options.refinement_slice_s = 0;
  InProcess target(options);
  std::map<std::string, std::string> names;
  std::vector<std::string> refined;
  target.service().subscriptions.subscribe_all([&](const jobs::JobEvent& event) {
    if (event.kind == "characterized" && !event.text.starts_with("quick")) refined.push_back(names[event.job]);
  });
  target.hold_refining(true);
  for (const auto& [team, microbatches] : {std::pair{"long", 60}, {"short", 3}}) {
    jobs::RegisterJob request;
    request.degrees.pp = 2;
    request.facts["team"] = team;
    const std::string id = target.register_job(request).value().job;
    names[id] = team;
    ASSERT_TRUE(target.upload_profile(id, small_profile(team, microbatches)).ok());
  }
  target.hold_refining(false);
  EXPECT_THAT(refined, ElementsAre("short", "long"));
  EXPECT_EQ(target.service().counts().characterizing, 0);
}

}  // namespace
}  // namespace perseus::testing
