// Longest paths over neighbor lists against the oracle's, and earliest against latest times.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/longest_path.h"
#include "planning/model/neighbors.h"

namespace perseus::model {
namespace {

using testing::ShrinkingDice;

RC_GTEST_PROP(Neighbors, LongestPathIsTheOracles, ()) {
  ShrinkingDice dice;
  const ComputationDag dag = testing::random_dag(dice);
  const Plan plan = testing::random_plan(dice, dag);
  const auto before = neighbors_before<Seconds>(dag, &Dependency::latency);
  std::vector<Seconds> end;
  const Seconds makespan = longest_path(
      before, [&](int i) { return dag.type_of(i).options[plan[i]].time; }, end);
  RC_ASSERT(makespan == testing::realize(dag, plan).time);
}

RC_GTEST_PROP(Neighbors, LatestTimesAreEarliestTimesOfTheReversedDag, ()) {
  ShrinkingDice dice;
  const ComputationDag dag = testing::random_dag(dice);
  const int n = static_cast<int>(dag.computations.size());
  // Integer times: the same path has the same length from both ends.
  const auto latency = [](const Dependency& d) { return static_cast<long>(d.latency.value() * 1e6); };
  const auto duration = [&](int i) { return static_cast<long>(dag.type_of(i).options[0].time.value() * 1e6); };
  ComputationDag reversed = dag;
  for (Dependency& d : reversed.dependencies) d = {n - 1 - d.after, n - 1 - d.before, d.latency};

  std::vector<long> end, latest_start, reversed_end;
  const long makespan = longest_path(neighbors_before<long>(dag, latency), duration, end);
  latest_starts(neighbors_after<long>(dag, latency), duration, makespan, latest_start);
  const long same = longest_path(
      neighbors_before<long>(reversed, latency), [&](int i) { return duration(n - 1 - i); }, reversed_end);
  RC_ASSERT(same == makespan);
  for (int i = 0; i < n; ++i) {
    RC_ASSERT(latest_start[i] == makespan - reversed_end[n - 1 - i]);
    RC_ASSERT(latest_start[i] + duration(i) >= end[i]);
  }
}

RC_GTEST_PROP(Neighbors, EveryDependencyIsInOneListOfEachEnd, ()) {
  ShrinkingDice dice;
  const ComputationDag dag = testing::random_dag(dice);
  const Neighbors<double> before = neighbors_before_s(dag), after = neighbors_after_s(dag);
  std::vector<int> listed_before(dag.dependencies.size()), listed_after(dag.dependencies.size());
  for (int i = 0; i < before.num_nodes(); ++i) {
    for (const Neighbor<double>& b : before.of(i)) {
      RC_ASSERT(dag.dependencies[b.dependency].after == i && dag.dependencies[b.dependency].before == b.computation);
      ++listed_before[b.dependency];
    }
    for (const Neighbor<double>& a : after.of(i)) {
      RC_ASSERT(dag.dependencies[a.dependency].before == i && dag.dependencies[a.dependency].after == a.computation);
      ++listed_after[a.dependency];
    }
  }
  RC_ASSERT(listed_before == std::vector<int>(dag.dependencies.size(), 1));
  RC_ASSERT(listed_after == listed_before);
}

}  // namespace
}  // namespace perseus::model
