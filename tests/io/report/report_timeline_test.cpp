#include <gtest/gtest.h>

#include <algorithm>

#include "io/report/timeline.h"
#include "tests/support/report_sample.h"

namespace perseus::report {
namespace {

model::Measurement option(double time, double energy) {
  return {Megahertz(1000), Seconds(time), Joules(energy), {}, {}, 1};
}

/// Two ranks: a0 -> b0 (latency 0.5) on rank 1, a0 -> a1 on rank 0, b0 -> a2 (latency 0.5), a1 -> a2.
model::ComputationDag small_dag() {
  model::ComputationDag dag;
  dag.types = {{0, "forward", {option(1, 100), option(2, 120)}}, {1, "forward", {option(2, 500)}}};
  dag.computations = {{0, 0, 0}, {0, 0, 1}, {1, 1, 0}, {0, 0, 2}};
  dag.dependencies = {{0, 1, Seconds(0)}, {0, 2, Seconds(0.5)}, {1, 3, Seconds(0)}, {2, 3, Seconds(0.5)}};
  dag.rank_order = {{0, 1, 3}, {2}};
  dag.accelerators = {1, 2};
  dag.blocking_power = Watts(10);
  return dag;
}

TEST(Timeline, StartsAreEarliestAndLatenciesCount) {
  const Timeline t = timeline_of(small_dag(), {0, 1, 0, 0});
  EXPECT_DOUBLE_EQ(t.bars[0].start.value(), 0);
  EXPECT_DOUBLE_EQ(t.bars[1].start.value(), 1);
  EXPECT_DOUBLE_EQ(t.bars[2].start.value(), 1.5);
  EXPECT_DOUBLE_EQ(t.bars[3].start.value(), 4);
  EXPECT_DOUBLE_EQ(t.makespan.value(), 5);
}

TEST(Timeline, SlackAndOneCriticalPath) {
  const Timeline t = timeline_of(small_dag(), {0, 1, 0, 0});
  EXPECT_EQ(t.critical_path, (std::vector<int>{0, 2, 3}));
  EXPECT_TRUE(t.bars[0].critical && t.bars[2].critical && t.bars[3].critical);
  EXPECT_FALSE(t.bars[1].critical);
  EXPECT_DOUBLE_EQ(t.bars[1].slack.value(), 1);
  EXPECT_DOUBLE_EQ(t.bars[2].slack.value(), 0);
}

TEST(Timeline, EnergyIsThatOfEquationOne) {
  const Timeline t = timeline_of(small_dag(), {0, 1, 0, 0});
  const double computations = 100 + 120 + 500 + 100;
  const double waiting = 10 * 1 * (5 - 4) + 10 * 2 * (5 - 2);
  EXPECT_DOUBLE_EQ(t.energy.value(), computations + waiting);
  EXPECT_DOUBLE_EQ(t.effective_energy.value(), computations - 10 * 4 - 20 * 2);
  EXPECT_DOUBLE_EQ(t.bars[2].power.value(), 250);
}

TEST(Timeline, AnEmptyIterationTakesNoTime) {
  model::ComputationDag dag;
  dag.rank_order = {{}};
  dag.accelerators = {1};
  const Timeline t = timeline_of(dag, {});
  EXPECT_EQ(t.makespan, Seconds(0));
  EXPECT_TRUE(t.critical_path.empty());
}

/// Slack is by definition how much longer one computation may take: try it on each.
TEST(Timeline, SlackIsTheLongestHarmlessDelay) {
  model::ComputationDag dag = sample_dag(4, 6);
  std::vector<model::ComputationType> own;  // a type per computation, so that one can be changed alone
  for (std::size_t i = 0; i < dag.computations.size(); ++i) {
    own.push_back(dag.type_of(static_cast<int>(i)));
    dag.computations[i].type = static_cast<int>(i);
  }
  dag.types = own;
  const model::Plan plan = model::all_maximum_clock(dag);
  const Timeline t = timeline_of(dag, plan);
  int with_slack = 0;
  for (std::size_t i = 0; i < t.bars.size(); ++i) {
    Seconds& time = dag.types[i].options[0].time;
    const Seconds before = time;
    time = before + t.bars[i].slack;
    EXPECT_NEAR(timeline_of(dag, plan).makespan.value(), t.makespan.value(), 1e-9);
    time = before + t.bars[i].slack + Seconds(0.001);
    EXPECT_NEAR(timeline_of(dag, plan).makespan.value(), t.makespan.value() + 0.001, 1e-9);
    time = before;
    with_slack += t.bars[i].slack > Seconds(0.001) ? 1 : 0;
  }
  EXPECT_GT(with_slack, 5);
}

TEST(Timeline, CriticalPathRunsWithoutAPauseFromStartToEnd) {
  const model::ComputationDag dag = sample_dag(5, 9);
  const Timeline t = timeline_of(dag, model::minimum_energy_plan(dag));
  ASSERT_FALSE(t.critical_path.empty());
  EXPECT_EQ(t.bars[t.critical_path.front()].start, Seconds(0));
  EXPECT_EQ(t.bars[t.critical_path.back()].end, t.makespan);
  for (std::size_t k = 1; k < t.critical_path.size(); ++k) {
    const int before = t.critical_path[k - 1], after = t.critical_path[k];
    const bool joined = std::ranges::any_of(dag.dependencies, [&](const model::Dependency& d) {
      return d.before == before && d.after == after && t.bars[before].end + d.latency == t.bars[after].start;
    });
    EXPECT_TRUE(joined) << before << " -> " << after;
    EXPECT_NEAR(t.bars[after].slack.value(), 0, 1e-9);
  }
}

TEST(Timeline, ReferencePlans) {
  const model::ComputationDag dag = small_dag();
  EXPECT_EQ(model::all_maximum_clock(dag), (model::Plan{0, 0, 0, 0}));
  EXPECT_EQ(model::minimum_energy_plan(dag), (model::Plan{0, 0, 0, 0}));  // 100 - 10 < 120 - 20
  model::ComputationDag dearer = dag;
  dearer.blocking_power = Watts(30);
  EXPECT_EQ(model::minimum_energy_plan(dearer), (model::Plan{1, 1, 0, 1}));  // 100 - 30 > 120 - 60
}

TEST(TimelineColumns, KeepTimeEnergyAndTheCriticalPath) {
  const model::ComputationDag dag = sample_dag(6, 40);
  const Timeline t = timeline_of(dag, model::all_maximum_clock(dag));
  const Seconds span = 1.25 * t.makespan;
  for (const int columns : {1, 7, 100, 5000}) {
    const auto rows = columns_of(dag, t, span, columns);
    for (int r = 0; r < dag.num_ranks(); ++r) {
      double busy = 0, energy = 0, expected_busy = 0, expected_energy = 0;
      for (const TimelineColumn& c : rows[r]) {
        EXPECT_LE(c.busy, 1 + 1e-9);
        busy += c.busy * (span / columns).value();
        energy += c.busy * (span / columns).value() * c.power.value();
      }
      bool critical = false;
      for (const int i : dag.rank_order[r]) {
        expected_busy += (t.bars[i].end - t.bars[i].start).value();
        expected_energy += t.bars[i].energy.value();
        critical |= t.bars[i].critical;
      }
      EXPECT_NEAR(busy, expected_busy, 1e-9);
      EXPECT_NEAR(energy, expected_energy, 1e-6);
      EXPECT_EQ(std::ranges::any_of(rows[r], &TimelineColumn::critical), critical);
    }
  }
}

}  // namespace
}  // namespace perseus::report
