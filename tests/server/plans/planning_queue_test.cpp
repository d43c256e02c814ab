// Order of planning: the owners take turns, weighted by their recent planning time.
#include "server/plans/planning_queue.h"

#include <gtest/gtest.h>

namespace perseus::plans {
namespace {

using enum PlanningQueue::Kind;

std::string next_of(PlanningQueue& queue, PlanningQueue::Kind kind, double now_s = 0) {
  const auto next = queue.take(kind, now_s);
  return next ? next->key + " for " + next->owner : "nothing";
}

TEST(PlanningQueue, OfEqualOwnersTheFirstIsNext) {
  PlanningQueue queue;
  queue.put("z", first, {"a"});
  queue.put("y", first, {"b"});
  EXPECT_EQ(next_of(queue, refinement), "nothing");
  EXPECT_EQ(next_of(queue, first), "z for a");
  EXPECT_EQ(next_of(queue, first), "y for b");
  EXPECT_EQ(next_of(queue, first), "nothing");
}

TEST(PlanningQueue, AnOwnerWithManyKeysDoesNotKeepAnotherWaiting) {
  PlanningQueue queue;
  for (const char* const key : {"1", "2", "3", "4"}) queue.put(key, refinement, {"many"});
  EXPECT_EQ(next_of(queue, refinement), "1 for many");
  queue.put("5", refinement, {"one"});
  EXPECT_EQ(next_of(queue, refinement), "5 for one");  // no other planning of this owner runs
  queue.done("one", 0.1, 0);
  queue.done("many", 100, 0);
  queue.put("6", refinement, {"one"});
  EXPECT_EQ(next_of(queue, refinement), "6 for one");
  queue.done("one", 500, 0);
  EXPECT_EQ(next_of(queue, refinement), "2 for many");
}

TEST(PlanningQueue, OldUseIsForgotten) {
  PlanningQueue queue;
  queue.put("1", first, {"early"});
  (void)queue.take(first, 0);
  queue.done("early", 100, 0);
  const double later_s = 3 * PlanningQueue::kHalfLife;
  queue.put("2", first, {"late"});
  (void)queue.take(first, later_s);
  queue.done("late", 50, later_s);
  queue.put("3", first, {"late"});
  queue.put("4", first, {"early"});
  EXPECT_EQ(next_of(queue, first, later_s), "4 for early");  // an eighth of 100
}

TEST(PlanningQueue, AKeyOfSeveralOwnersIsPlannedInTheFirstTurn) {
  PlanningQueue queue;
  queue.put("1", first, {"a"});
  (void)queue.take(first, 0);
  queue.done("a", 10, 0);
  queue.put("2", first, {"a"});
  queue.put("2", first, {"a", "b"});
  EXPECT_EQ(queue.waiting(first), 1);
  EXPECT_EQ(next_of(queue, first), "2 for b");
}

TEST(PlanningQueue, RemovedKeysAreNotPlanned) {
  PlanningQueue queue;
  queue.put("1", first, {"a"});
  queue.put("1", refinement, {"a"});  // moved to another class
  EXPECT_EQ(queue.waiting(first), 0);
  EXPECT_EQ(queue.waiting(refinement), 1);
  queue.remove("1");
  EXPECT_EQ(next_of(queue, refinement), "nothing");
}

TEST(PlanningQueue, AnOwnerOverItsQuotaWaitsForAllOthers) {
  PlanningQueue queue;
  queue.set_quota(100);
  queue.put("1", first, {"greedy"});
  (void)queue.take(first, 0);
  queue.done("greedy", 101, 0);
  queue.put("new", first, {"greedy"});
  queue.put("other", refinement, {"modest"});
  queue.put("shared", first, {"greedy", "modest"});
  EXPECT_EQ(next_of(queue, first), "shared for modest");
  EXPECT_EQ(next_of(queue, first), "nothing");
  EXPECT_EQ(next_of(queue, refinement), "other for modest");
  EXPECT_TRUE(queue.others_wait(refinement, "modest", 0));
  EXPECT_FALSE(queue.others_wait(refinement, "greedy", 0));
  EXPECT_EQ(next_of(queue, refinement), "new for greedy") << "an idle planner is no use to anybody";
}

TEST(PlanningQueue, AQuotaIsOverASlidingHour) {
  PlanningQueue queue;
  queue.set_quota(100);
  for (int minute = 0; minute < 30; minute += 10) queue.done("a", 40, 60.0 * minute);
  queue.put("1", first, {"a"});
  EXPECT_FALSE(queue.has(first, 1800));
  EXPECT_FALSE(queue.has(first, PlanningQueue::kQuotaOver - 1));
  EXPECT_TRUE(queue.has(first, PlanningQueue::kQuotaOver + 1)) << "the first 40 s are an hour old";
}

}  // namespace
}  // namespace perseus::plans
