// The spread of a profile's measurements in the time and energy of a plan, worked by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "io/report/timeline.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::report {
namespace {

model::Measurement measured(double time_s, double energy_j, double time_stddev_s, double energy_stddev_j) {
  return {Megahertz(1000), Seconds(time_s), Joules(energy_j), Seconds(time_stddev_s), Joules(energy_stddev_j), 4};
}

model::ComputationDag dag_of(const model::Profile& profile, int microbatches) {
  const model::Schedule schedule = model::make_schedule("1f1b", {profile.num_stages(), microbatches, 1}).value();
  return model::build_dag(profile, schedule, {Watts(10), Seconds(0)}).value();
}

// Two stages, three microbatches. Stage 1 takes four times as long: the critical path is stage 0's first forward, all
// six computations of stage 1, and stage 0's last backward.
TEST(ErrorBars, FollowTheCriticalPathAndEveryEnergy) {
  model::Profile profile;
  profile.accelerators = {1, 1};
  profile.entries = {{0, "forward", {measured(1, 100, 0.01, 1)}},
                     {0, "backward", {measured(2, 200, 0.02, 2)}},
                     {1, "forward", {measured(4, 400, 0.03, 3)}},
                     {1, "backward", {measured(8, 800, 0.04, 4)}}};
  const model::ComputationDag dag = dag_of(profile, 3);
  ASSERT_TRUE(has_spread(dag));
  const model::Plan plan(dag.computations.size());
  const ErrorBars bars = error_bars_of(dag, plan, timeline_of(dag, plan));
  const auto root_of_squares = [](std::initializer_list<double> values) {
    double sum = 0;
    for (const double v : values) sum += v * v;
    return std::sqrt(sum);
  };
  EXPECT_NEAR(bars.time_stddev.value(), root_of_squares({0.01, 0.02, 3 * 0.03, 3 * 0.04}), 1e-12);
  // One second more of iteration is 20 J of waiting, less 10 J for each second that a rank computes in it.
  EXPECT_NEAR(bars.energy_stddev.value(),
              root_of_squares({3, 6, 9, 12, (20 - 30) * 0.01, (20 - 30) * 0.02, (60 - 30) * 0.03, (60 - 30) * 0.04}),
              1e-12);
}

TEST(ErrorBars, AreNothingWithoutSpread) {
  model::Profile profile;
  profile.accelerators = {1};
  profile.entries = {{0, "forward", {measured(1, 1, 0, 0)}}, {0, "backward", {measured(1, 1, 0, 0)}}};
  const model::ComputationDag dag = dag_of(profile, 2);
  EXPECT_FALSE(has_spread(dag));
  const model::Plan plan(dag.computations.size());
  const ErrorBars bars = error_bars_of(dag, plan, timeline_of(dag, plan));
  EXPECT_EQ(bars.time_stddev, Seconds(0));
  EXPECT_EQ(bars.energy_stddev, Joules(0));
}

}  // namespace
}  // namespace perseus::report
