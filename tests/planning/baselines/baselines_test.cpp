// EnvPipe and the Zeus baselines on pipelines small enough to work by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planning/baselines/envpipe.h"
#include "planning/baselines/methods.h"
#include "planning/baselines/zeus.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::baselines {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Clocked {
  int clock_mhz;
  double time_s;
  double energy_j;
};

std::vector<model::Measurement> options(const std::vector<Clocked>& clocked) {
  std::vector<model::Measurement> all;
  for (const Clocked& c : clocked)
    all.push_back({Megahertz(c.clock_mhz), Seconds(c.time_s), Joules(c.energy_j), {}, {}, 1});
  return all;
}

/// `factor` seconds at 1400 MHz; 1100 MHz is slower than 1200 and needs more energy.
std::vector<model::Measurement> falling(double factor) {
  return options({{1400, factor, 100 * factor},
                  {1300, 1.5 * factor, 80 * factor},
                  {1200, 2 * factor, 70 * factor},
                  {1100, 3 * factor, 90 * factor}});
}

struct Stage {
  std::vector<model::Measurement> forward;
  std::vector<model::Measurement> backward;
};

model::ComputationDag pipeline(const std::vector<Stage>& stages, int microbatches, double load_s = 0) {
  model::Profile profile;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    profile.entries.push_back({s, "forward", stages[s].forward});
    profile.entries.push_back({s, "backward", stages[s].backward});
    if (load_s > 0 && s == 0) profile.entries.push_back({s, "load", options({{0, load_s, 1}})});
  }
  profile.accelerators.assign(stages.size(), 1);
  const auto schedule = model::make_schedule("1f1b", {static_cast<int>(stages.size()), microbatches, 1});
  return model::build_dag(profile, *schedule, {Watts(10), Seconds(0)}).value();
}

/// Clocks of a rank's clock-controlled computations in execution order.
std::vector<int> clocks_of(const model::ComputationDag& dag, const model::Plan& plan, int rank) {
  std::vector<int> clocks;
  for (const int i : dag.rank_order[rank]) {
    const int clock = dag.type_of(i).options[plan[i]].clock.value();
    if (clock != 0) clocks.push_back(clock);
  }
  return clocks;
}

TEST(EnvPipe, LeavesEverythingSlowWhereTheLastStageIsHeavyEnough) {
  // Stage 1 alone takes 2 + 4 + 2 + 4 s; stage 0's F1 and B0 have slack for their slowest useful clock.
  const model::ComputationDag dag = pipeline({{falling(1), falling(2)}, {falling(2), falling(4)}}, 2);
  const EnvPipeRun run = plan_envpipe(dag).value();
  EXPECT_EQ(run.end, EnvPipeEnd::envelope);
  EXPECT_EQ(run.steps, 0);
  EXPECT_THAT(clocks_of(dag, run.plan, 0), ElementsAre(1400, 1200, 1200, 1400));  // F0 F1 B0 B1
  EXPECT_THAT(clocks_of(dag, run.plan, 1), ElementsAre(1400, 1400, 1400, 1400));
}

TEST(EnvPipe, SpeedsUpTheFirstCriticalPathEvenWhereTheEnvelopeIsAsLong) {
  // B0 of stage 0 at 1200 makes T = 1 + 1 + 2 + 4 + 2 = 10; at 1300 the path through it is 9, as long as the envelope,
  // and it is the first; at 1400 only the envelope is left.
  const model::ComputationDag dag = pipeline({{falling(1), falling(2)}, {falling(1), falling(2)}}, 2);
  const EnvPipeRun run = plan_envpipe(dag).value();
  EXPECT_EQ(run.end, EnvPipeEnd::envelope);
  EXPECT_EQ(run.steps, 2);
  EXPECT_THAT(clocks_of(dag, run.plan, 0), ElementsAre(1400, 1200, 1400, 1400));
}

TEST(EnvPipe, IsStuckWhereTheLastStageIsNotTheHeaviest) {
  // T is 2 + 4 + 8 + 4 along stage 0; two steps raise F1 and B0 together, then B0 is at maximum on the critical path.
  const model::ComputationDag dag = pipeline({{falling(2), falling(4)}, {falling(1), falling(2)}}, 2);
  const EnvPipeRun run = plan_envpipe(dag).value();
  EXPECT_EQ(run.end, EnvPipeEnd::stuck);
  EXPECT_EQ(run.steps, 2);
  EXPECT_THAT(clocks_of(dag, run.plan, 0), ElementsAre(1400, 1400, 1400, 1400));
  EXPECT_THAT(text_of(run), HasSubstr("stuck after 2 steps"));
}

TEST(EnvPipe, StopsAtTheStepLimit) {
  const model::ComputationDag dag = pipeline({{falling(1), falling(2)}, {falling(1), falling(2)}}, 2);
  const EnvPipeRun run = plan_envpipe(dag, {.max_steps = 1, .unit_time = {}}).value();
  EXPECT_EQ(run.end, EnvPipeEnd::step_limit);
  EXPECT_THAT(clocks_of(dag, run.plan, 0), ElementsAre(1400, 1200, 1300, 1400));
}

TEST(EnvPipe, DoesNotSeeComputationsWithoutAClock) {
  const std::vector<Stage> stages{{falling(1), falling(2)}, {falling(1), falling(2)}};
  const model::ComputationDag seen = pipeline(stages, 2);
  const model::ComputationDag unseen = pipeline(stages, 2, 5);
  EXPECT_EQ(clocks_of(unseen, plan_envpipe(unseen)->plan, 0), clocks_of(seen, plan_envpipe(seen)->plan, 0));
}

TEST(EnvPipe, FloorsDurationsToTheUnitOfTime) {
  // In units of 4 s all clocks of forward take 0 units, and of those the one with the most energy is where it starts;
  // backward takes 1 unit at 1200 MHz and starts there. Then all paths are 0 units long, the first is not the envelope.
  const model::ComputationDag dag = pipeline({{falling(1), falling(2)}, {falling(1), falling(2)}}, 2);
  const EnvPipeRun run = plan_envpipe(dag, {.max_steps = 10, .unit_time = Seconds(4)}).value();
  EXPECT_THAT(clocks_of(dag, run.plan, 0), ElementsAre(1400, 1400, 1400, 1400));
  EXPECT_EQ(run.end, EnvPipeEnd::stuck);
  EXPECT_EQ(run.steps, 2);
  const Result<EnvPipeRun> negative = plan_envpipe(dag, {.max_steps = 10, .unit_time = Seconds(-1)});
  ASSERT_FALSE(negative.ok());
  EXPECT_THAT(negative.error().message, HasSubstr("unit_time_s -1"));
}

TEST(ZeusGlobal, ScansEveryClockAndTreatsItAsALimit) {
  const std::vector<model::Measurement> sparse = options({{1350, 1, 100}, {1250, 1.5, 80}});
  const model::ComputationDag dag = pipeline({{falling(1), sparse}}, 1);
  const std::vector<model::Plan> plans = zeus_global_plans(dag);
  std::vector<std::vector<int>> clocks;
  for (const model::Plan& plan : plans) clocks.push_back(clocks_of(dag, plan, 0));
  EXPECT_THAT(clocks, ElementsAre(ElementsAre(1400, 1350), ElementsAre(1300, 1350), ElementsAre(1300, 1250),
                                  ElementsAre(1200, 1250), ElementsAre(1200, 1250), ElementsAre(1100, 1250)));
}

TEST(ZeusPerStage, BalancesForwardTimeForEveryTarget) {
  const Stage light{options({{1400, 1, 100}, {1200, 1.2, 80}, {1000, 1.5, 70}}), falling(2)};
  const Stage heavy{options({{1400, 1.25, 120}, {1200, 1.4, 90}, {1000, 1.8, 80}}), falling(2)};
  const model::ComputationDag dag = pipeline({light, heavy}, 1);
  std::vector<std::vector<int>> light_clocks, heavy_clocks;
  const std::vector<model::Plan> plans = zeus_per_stage_plans(dag).value();
  for (const model::Plan& plan : plans) {
    light_clocks.push_back(clocks_of(dag, plan, 0));
    heavy_clocks.push_back(clocks_of(dag, plan, 1));
  }
  // 1.25 s is closest to 1.2, 1.4 and 1.8 to 1.5. Backward follows: at most the stage's clock, or its lowest.
  EXPECT_THAT(light_clocks, ElementsAre(ElementsAre(1200, 1200), ElementsAre(1000, 1100), ElementsAre(1000, 1100)));
  EXPECT_THAT(heavy_clocks, ElementsAre(ElementsAre(1400, 1400), ElementsAre(1200, 1200), ElementsAre(1000, 1100)));
}

TEST(Baselines, RefuseDagsForWhichTheyAreUndefined) {
  model::ComputationDag dag = pipeline({{falling(1), falling(2)}}, 1);
  for (model::ComputationType& type : dag.types) type.stage = -1;
  EXPECT_THAT(plan_envpipe(dag).error().message, HasSubstr("has no stage"));
  EXPECT_THAT(zeus_per_stage_plans(dag).error().message, HasSubstr("has no stages"));
}

TEST(Baselines, AreJudgedByTheirRealizedPlans) {
  // One stage, one microbatch, 10 W: forward takes 1 s and 100 J, or 1.5 s and 80 J; backward twice that.
  const model::ComputationDag dag = pipeline({{falling(1), falling(2)}}, 1);
  const model::LowerBound bound{{{Seconds(3), Joules(1)}}};
  const model::Frontier frontier =
      judge(dag, {model::Plan{0, 0}, model::Plan{1, 0}, model::Plan{0, 3}, model::Plan{1, 1}}, bound);
  ASSERT_EQ(frontier.points.size(), 3u);  // forward at 1400, backward at 1100 MHz: 7 s and 280 - 70 J is beaten
  EXPECT_DOUBLE_EQ(frontier.points[0].time.value(), 4.5);
  EXPECT_DOUBLE_EQ(frontier.points[0].effective_energy.value(), 240 - 45);
  EXPECT_DOUBLE_EQ(frontier.points[0].energy.value(), 240);
  EXPECT_DOUBLE_EQ(frontier.points[0].bound.value(), 1 + 45);
  EXPECT_DOUBLE_EQ(frontier.points[1].time.value(), 3.5);
  EXPECT_EQ(frontier.points[1].plan, (model::Plan{1, 0}));
  EXPECT_DOUBLE_EQ(frontier.points[2].time.value(), 3);
  EXPECT_DOUBLE_EQ(frontier.points[2].effective_energy.value(), 300 - 30);
}

TEST(Baselines, AreListedByName) {
  std::vector<std::string> names;
  for (const BaselineMethod& method : baseline_methods()) names.emplace_back(method.name);
  EXPECT_THAT(names, ElementsAre("envpipe", "zeus-global", "zeus-per-stage", "all-max", "min-energy"));
}

}  // namespace
}  // namespace perseus::baselines
