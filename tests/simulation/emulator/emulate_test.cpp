// Jobs worked out by hand: two pipelines and a straggler, delays, restarts, synchronization, and totals.
#include "simulation/emulator/emulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/emulated_job.h"

namespace perseus::emulator {
namespace {

using testing::kinds_of;
using testing::one_stage_profile;
using testing::small_scenario;
using testing::straggler;

struct Job {
  model::Scenario scenario;
  std::vector<PipelineKind> kinds;
  MethodPlans plans;

  explicit Job(model::Scenario given, const std::string& method = "exact",
               const model::Profile& profile = one_stage_profile())
      : scenario(std::move(given)),
        kinds(kinds_of(scenario, profile)),
        plans(plan_method(method, kinds, scenario).value()) {}
  Emulation run(const std::vector<model::Straggler>& stragglers, Response response = Response::look_up) {
    return Emulator(scenario, kinds, plans).run(stragglers, response);
  }
};

void expect_parts(const EnergyParts& parts, double useful, double intrinsic, double extrinsic, double blocking,
                  double idle) {
  EXPECT_NEAR(parts.useful.value(), useful, 1e-9);
  EXPECT_NEAR(parts.intrinsic_bloat.value(), intrinsic, 1e-9);
  EXPECT_NEAR(parts.extrinsic_bloat.value(), extrinsic, 1e-9);
  EXPECT_NEAR(parts.blocking.value(), blocking, 1e-9);
  EXPECT_NEAR(parts.idle.value(), idle, 1e-9);
}

TEST(Emulate, TwoPipelinesWithoutStragglerComputeAllTheTime) {
  Job job(small_scenario(2));
  const Emulation run = job.run({});
  EXPECT_EQ(run.iterations, 1);
  EXPECT_DOUBLE_EQ(run.time.value(), 2);
  expect_parts(run.energy, 2 * 300, 0, 0, 0, 0);
}

TEST(Emulate, MaximumClockWaitsForTheStragglerAndThatIsExtrinsicBloat) {
  // Pipeline 1 is throttled to 1.5 times its time: T' = 3 s, and by the line between its clocks it needs 110 + 210 J.
  // Pipeline 0 needs 300 J and waits 1 s at 50 W. In 3 s one computation could be slow: 30 J less effective energy.
  // The bound is the same for any 3 s, and pipeline 1 has 200 - 30 = 170 J of effective energy itself.
  Job job(small_scenario(2), "all-max");
  const Emulation run = job.run({straggler(model::StragglerCause::thermal, 1, 1.5)});
  EXPECT_DOUBLE_EQ(run.time.value(), 3);
  expect_parts(run.energy, 270 + 320, 0, 30, 50, 0);
  EXPECT_DOUBLE_EQ(run.energy.total().value(), 300 + 50 + 320);
}

TEST(Emulate, TheServersPlanSlowsDownToTheStraggler) {
  Job job(small_scenario(2));
  const Emulation run = job.run({straggler(model::StragglerCause::thermal, 1, 1.5)});
  EXPECT_DOUBLE_EQ(run.time.value(), 3);
  // Pipeline 0: one of both at 500 MHz, 320 J, no waiting.
  expect_parts(run.energy, 640, 0, 0, 0, 0);
  const Emulation fastest = job.run({straggler(model::StragglerCause::thermal, 1, 1.5)}, Response::default_plans);
  EXPECT_DOUBLE_EQ(fastest.energy.total().value(), 670);
}

TEST(Emulate, NoPipelineSlowsDownPastTheMinimumEnergyPoint) {
  // T* = 4 s, T' = 6 s: pipeline 0 needs 340 J and waits 2 s. The straggler pauses at 50 W below the lowest clock.
  Job job(small_scenario(2));
  const Emulation run = job.run({straggler(model::StragglerCause::power, 1, 3)});
  EXPECT_DOUBLE_EQ(run.time.value(), 6);
  expect_parts(run.energy, 340 + 340 + 2 * 50, 0, 0, 100, 0);
}

TEST(Emulate, LateBatchesAreWaiting) {
  // 0.5 * 2 s of stall, at 50 W.
  Job job(small_scenario(1));
  const Emulation run = job.run({straggler(model::StragglerCause::storage, 0, 1.5)});
  EXPECT_DOUBLE_EQ(run.time.value(), 3);
  expect_parts(run.energy, 300, 0, 0, 50, 0);
}

TEST(Emulate, LoadingSynchronizationAndOptimizerTakeTimeAndPower) {
  model::Scenario scenario = small_scenario(2);
  scenario.tensor_parallel = 4;
  scenario.timing.load = Seconds(0.5);
  scenario.timing.synchronization = Seconds(0.25);
  scenario.timing.synchronization_power = Watts(80);
  scenario.timing.optimizer = Seconds(1);
  scenario.timing.optimizer_power = Watts(120);
  Job job(scenario);
  const Emulation run = job.run({});
  EXPECT_DOUBLE_EQ(run.time.value(), 0.5 + 2 + 0.25 + 1);
  expect_parts(run.energy, 8 * (300 + 120), 0, 0, 8 * (0.5 * 50 + 0.25 * 80), 0);
  EXPECT_NEAR(run.highest_power.value(), 8 * 200, 1e-6);
  EXPECT_NEAR(run.lowest_power.value(), 8 * 50, 1e-6);
}

TEST(Emulate, OneHotGpuOfAStageLeavesTheOthersWaiting) {
  // Of 2 tensor-parallel GPUs one needs 110 + 210 J, the other 300 J and waits a second.
  model::Scenario scenario = small_scenario(1);
  scenario.tensor_parallel = 2;
  Job job(scenario, "all-max");
  model::Straggler hot = straggler(model::StragglerCause::thermal, 0, 1.5);
  hot.hardship.stage = 0;
  hot.hardship.gpus = 1;
  const Emulation run = job.run({hot});
  EXPECT_DOUBLE_EQ(run.time.value(), 3);
  EXPECT_DOUBLE_EQ(run.energy.total().value(), 320 + 350);
}

TEST(Emulate, EventsTakeEffectAtTheNextIterationAndPlansWhenTheServerKnows) {
  // 2 s iterations. Onset at 3 s: iterations 0 and 1 (until 4 s) are as before. The server detects it at 8 s, so that
  // at 7 s pipeline 0 still runs its fastest plan and from 10 s on the slower one. It detects the recovery at 15 s at
  // 20 s: from 16 s on pipeline 1 could be fast, but it waits for pipeline 0.
  model::Scenario scenario = small_scenario(2);
  scenario.iterations = 8;
  scenario.delivery.notice_delay = Seconds(4);
  scenario.delivery.deploy = Seconds(1);
  Job job(scenario);
  const Emulation run = job.run({straggler(model::StragglerCause::thermal, 1, 1.5, 3, 12)});
  std::vector<std::pair<double, long>> starts;
  std::vector<double> joules;
  for (const Segment& s : run.segments) {
    starts.emplace_back(s.start.value(), s.iterations);
    joules.push_back(s.energy.total().value() / static_cast<double>(s.iterations));
  }
  // The straggler has recovered at 16 s, and the server has not detected it yet: both run the plan of 3 s, one of them
  // still its fastest.
  EXPECT_THAT(starts,
              ::testing::ElementsAre(std::pair(0.0, 2L), std::pair(4.0, 2L), std::pair(10.0, 2L), std::pair(16.0, 2L)));
  EXPECT_THAT(joules, ::testing::ElementsAre(600, 670, 640, 320 + 300 + 50));
  EXPECT_DOUBLE_EQ(run.longest_iteration.value(), 3);
  EXPECT_DOUBLE_EQ(run.mean_iteration().value(), 22.0 / 8);
}

TEST(Emulate, AnAnnouncedStragglerFindsThePlanReady) {
  model::Scenario scenario = small_scenario(2);
  scenario.iterations = 4;
  scenario.delivery.notice_delay = Seconds(-1);
  Job job(scenario);
  const Emulation run = job.run({straggler(model::StragglerCause::thermal, 1, 1.5, 4, 1e6)});
  ASSERT_EQ(run.segments.size(), 2u);
  EXPECT_DOUBLE_EQ(run.segments[1].energy.total().value(), 2 * 640);
}

TEST(Emulate, AFailureRestartsAllPipelinesAndLeavesASlowerOne) {
  // The remaining kind has two microbatches on the same GPU: 4 s. Restart: 10 s at 30 W on 2 GPUs.
  model::Scenario scenario = small_scenario(2);
  scenario.kinds.push_back({"rest", "none.csv", "1f1b", 1, 2, 0, "small.toml:5: [[pipelines]]"});
  scenario.idle_power = Watts(30);
  scenario.iterations = 5;
  Job job(scenario, "all-max");
  model::Straggler failure = straggler(model::StragglerCause::failure, 1, 1, 3, 12);
  failure.hardship.becomes = 1;
  failure.hardship.restart = Seconds(10);
  const Emulation run = job.run({failure});
  std::vector<double> starts;
  for (const Segment& s : run.segments) starts.push_back(s.start.value());
  EXPECT_THAT(starts, ::testing::ElementsAre(0, 4, 14, 18, 28));
  EXPECT_EQ(run.segments[1].iterations, 0);
  EXPECT_DOUBLE_EQ(run.segments[1].energy.idle.value(), 600);
  EXPECT_DOUBLE_EQ(run.segments[2].each.value(), 4);
  EXPECT_DOUBLE_EQ(run.segments[2].energy.total().value(), 300 + 2 * 50 + 600);
  EXPECT_DOUBLE_EQ(run.time.value(), 32);
  EXPECT_DOUBLE_EQ(run.iterating.value(), 12);
}

TEST(Emulate, GpusThatAFailureLeavesWithoutWorkIdle) {
  model::Scenario scenario = small_scenario(1);
  scenario.kinds.push_back({"rest", "none.csv", "1f1b", 1, 1, 0, "small.toml:5: [[pipelines]]"});
  scenario.idle_power = Watts(30);
  scenario.tensor_parallel = 2;
  Job job(scenario, "all-max");
  job.kinds[1].tensor_parallel = 1;
  model::Straggler failure = straggler(model::StragglerCause::failure, 0, 1, 0, 1e6);
  failure.hardship.becomes = 1;
  const Emulation run = job.run({failure});
  expect_parts(run.energy, 300, 0, 0, 0, 60);
}

TEST(Emulate, OfSeveralStragglersTheSlowestRules) {
  Job job(small_scenario(3));
  const model::Straggler slow = straggler(model::StragglerCause::thermal, 1, 1.5),
                         slower = straggler(model::StragglerCause::power, 2, 2);
  const Emulation run = job.run({slow, slower}), other_way = job.run({slower, slow});
  // Pipeline 0: 4 s, 340 J. Pipeline 1: its fastest plan, throttled, 320 J and a second of waiting. Pipeline 2: 340 J.
  EXPECT_DOUBLE_EQ(run.time.value(), 4);
  EXPECT_DOUBLE_EQ(run.energy.total().value(), 340 + 320 + 50 + 340);
  EXPECT_EQ(run.energy.total(), other_way.energy.total());
}

TEST(Emulate, ADurationEndsWithAWholeIteration) {
  model::Scenario scenario = small_scenario(1);
  scenario.iterations.reset();
  scenario.duration = Seconds(86399);
  const Emulation run = Job(scenario).run({});
  EXPECT_EQ(run.iterations, 43200);
  EXPECT_DOUBLE_EQ(run.time.value(), 86400);
  EXPECT_EQ(run.segments.size(), 1u);
}

TEST(Emulate, PowerIsAsComputationsFollowEachOther) {
  // 100 W for a second, 200 W for another: a square wave of 0.5 Hz, 50 W around its mean. All of it but the
  // harmonics above 20 Hz lies in the band; the odd harmonics k have a mean square of 8/(pi k)^2 of 50^2.
  const Emulation run = Job(small_scenario(1)).run({});
  EXPECT_NEAR(run.mean_power().value(), 150, 1e-9);
  EXPECT_NEAR(run.highest_power.value(), 200, 1e-9);
  EXPECT_NEAR(run.lowest_power.value(), 100, 1e-9);
  EXPECT_NEAR(run.peak_to_mean(), 200.0 / 150, 1e-12);
  EXPECT_NEAR(run.ramp_w_per_s, 100 / 0.1, 20);  // the nearest whole number of bins to 0.1 s
  double band = 0;
  for (int k = 1; k <= 40; k += 2) band += 2500 * 8 / (M_PI * M_PI * k * k);
  EXPECT_NEAR(run.band_w2s / run.time.value(), band, 1e-3 * band);
  EXPECT_NEAR(run.variance_w2s / run.time.value(), 2500, 1e-6);
  EXPECT_DOUBLE_EQ(run.first.time.value(), 2);
}

}  // namespace
}  // namespace perseus::emulator
