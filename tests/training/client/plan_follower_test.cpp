// Which clock a computation gets, in every order of plans and steps.
#include "training/client/plan_follower.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "training/client/step_recorder.h"

namespace perseus::client {
namespace {

constexpr model::Instruction F = model::Instruction::forward, B = model::Instruction::backward;

std::unique_ptr<ClockPlan> plan(std::int64_t version, std::vector<PlannedClock> clocks, std::int64_t from = 0) {
  auto made = std::make_unique<ClockPlan>();
  made->kind = ClockPlan::Kind::plan;
  made->version = version;
  made->from_iteration = from;
  made->clocks = std::move(clocks);
  return made;
}

int run(PlanFollower& follower, model::Instruction instruction) {
  const int clock = follower.clock_for(instruction);
  follower.begun(instruction);
  return clock;
}

class PlanFollowerTest : public ::testing::Test {
 protected:
  PlanFollowerTest() { follower.set_maximum(1410); }
  PlanFollower follower;
};

TEST_F(PlanFollowerTest, LeavesTheClockAloneBeforeThereIsAPlan) {
  follower.begin_step(0);
  EXPECT_EQ(run(follower, F), 0);
  follower.hold_maximum(true);
  EXPECT_EQ(run(follower, F), 1410);
}

TEST_F(PlanFollowerTest, FollowsTheOrderAndRepeatsTheSameRequest) {
  follower.put(plan(1, {{F, 1000}, {F, 1100}, {B, 1200}}));
  for (int iteration = 0; iteration < 2; ++iteration) {
    follower.begin_step(iteration);
    EXPECT_EQ(run(follower, model::Instruction::load), 0);
    EXPECT_EQ(run(follower, F), 1000);
    EXPECT_EQ(follower.next_clock(), 1100);
    EXPECT_EQ(follower.clock_for(F), 1100);
    EXPECT_EQ(run(follower, F), 1100);
    EXPECT_EQ(run(follower, B), 1200);
    EXPECT_EQ(follower.next_clock(), 0);
    EXPECT_EQ(run(follower, model::Instruction::all_reduce), 0);
    follower.end_step();
    EXPECT_EQ(follower.misfit_version(), 0);
  }
}

TEST_F(PlanFollowerTest, KnowsTheFirstClockOfTheNextStep) {
  EXPECT_EQ(follower.first_clock_of(0), 0);  // without a plan the clock stays unchanged
  follower.put(plan(1, {{F, 1000}, {B, 1200}}));
  const auto step = [&](std::int64_t iteration, model::Instruction first) {
    follower.begin_step(iteration);
    run(follower, first);
    run(follower, B);
    follower.end_step();
  };
  step(0, F);
  EXPECT_EQ(follower.first_clock_of(1), 1000);
  follower.put(plan(2, {{F, 900}, {B, 900}}, 3));
  step(1, F);
  EXPECT_EQ(follower.first_clock_of(2), 1000);
  EXPECT_EQ(follower.first_clock_of(3), 900);
  follower.hold_maximum(true);
  EXPECT_EQ(follower.first_clock_of(2), 1410);
  follower.hold_maximum(false);
  step(2, B);  // does not match the plan
  EXPECT_EQ(follower.first_clock_of(2), 1410);
  EXPECT_EQ(follower.first_clock_of(3), 900);
}

TEST_F(PlanFollowerTest, SpeedsAloneAreEnough) {
  follower.put(plan(1, {{F, 1000}, {B, 1200}}));
  follower.begin_step(0);
  EXPECT_EQ(follower.clock_for(F), 1000);
  EXPECT_EQ(follower.clock_for(B), 1200);
  follower.end_step();
  EXPECT_EQ(follower.misfit_version(), 0);
}

TEST_F(PlanFollowerTest, ANewPlanHoldsFromItsIterationAndOnlyBetweenSteps) {
  follower.put(plan(1, {{F, 1000}}));
  follower.begin_step(0);
  follower.put(plan(2, {{F, 900}}, 3));
  EXPECT_EQ(run(follower, F), 1000);
  follower.end_step();
  follower.begin_step(2);
  EXPECT_EQ(run(follower, F), 1000);
  follower.end_step();
  follower.begin_step(3);
  EXPECT_EQ(run(follower, F), 900);
  EXPECT_EQ(follower.version_in_force(), 2);
}

TEST_F(PlanFollowerTest, OtherNamesAndCountsMeanTheHighestClockUntilAStepFits) {
  follower.put(plan(1, {{F, 1000}, {B, 1200}}));
  follower.begin_step(0);
  EXPECT_EQ(run(follower, B), 1410);
  EXPECT_EQ(follower.misfit_version(), 1);
  EXPECT_EQ(follower.misfit_position(), 0);
  follower.end_step();
  for (const int computations : {1, 2, 3}) {
    follower.begin_step(computations);
    EXPECT_EQ(run(follower, F), 1410) << computations;
    if (computations > 1) run(follower, B);
    if (computations > 2) run(follower, B);
    follower.end_step();
    EXPECT_EQ(follower.misfit_version() == 0, computations == 2) << computations;
    follower.begin_step(0);  // a repeated step, complete
    run(follower, F);
    run(follower, B);
    follower.end_step();
    EXPECT_EQ(follower.misfit_version(), 0);
    follower.begin_step(1);
    EXPECT_EQ(run(follower, F), 1000);
    follower.end_step();  // too short: does not match
    EXPECT_EQ(follower.misfit_version(), 1);
  }
}

// ---- Steps of several shapes

std::unique_ptr<ClockPlan> shaped_plan(std::int64_t version) {
  auto made = plan(version, {{F, 1000}, {B, 1200}});
  made->microbatches = 1;
  made->iteration_time_s = 1;
  made->others.push_back({2, 2, 1.9, {{F, 800}, {F, 900}, {B, 1000}, {B, 1100}}});
  return made;
}

/// Runs a step of so many microbatches, which the program tells if `told`; returns its first clock.
int step_of(PlanFollower& follower, int microbatches, bool told) {
  follower.begin_step(0, told ? microbatches : 0);
  int first = 0;
  for (int i = 0; i < 2 * microbatches; ++i) {
    const int clock = run(follower, i < microbatches ? F : B);
    if (i == 0) first = clock;
  }
  follower.end_step(microbatches);
  return first;
}

TEST_F(PlanFollowerTest, AStepThatTellsItsShapeFollowsThePlanOfThatShape) {
  follower.put(shaped_plan(1));
  for (const int microbatches : {1, 2, 1, 1, 2, 2, 1}) {
    EXPECT_EQ(step_of(follower, microbatches, true), microbatches == 1 ? 1000 : 800);
    EXPECT_TRUE(follower.followed());
    EXPECT_EQ(follower.planned_time_s(), microbatches);
    EXPECT_EQ(follower.misfit_version(), 0);
  }
}

TEST_F(PlanFollowerTest, AShapeWithoutAPlanRunsAtTheHighestClockAndIsNoMisfit) {
  follower.put(shaped_plan(1));
  EXPECT_EQ(step_of(follower, 1, true), 1000);
  EXPECT_EQ(step_of(follower, 3, true), 1410);
  EXPECT_TRUE(follower.foreign());
  EXPECT_FALSE(follower.followed());
  EXPECT_EQ(follower.planned_time_s(), 0);
  EXPECT_EQ(follower.misfit_version(), 0);
  EXPECT_EQ(follower.first_clock_of(1), 1410);
  EXPECT_EQ(step_of(follower, 1, true), 1000);  // at once, not only after a step that fits
  EXPECT_TRUE(follower.followed());
}

TEST_F(PlanFollowerTest, AnUntoldShapeIsThatOfTheStepBefore) {
  follower.put(shaped_plan(1));
  EXPECT_EQ(step_of(follower, 1, false), 1000);
  EXPECT_EQ(step_of(follower, 2, false), 1000);  // its first computation could be one of either
  EXPECT_FALSE(follower.followed());
  EXPECT_TRUE(follower.foreign());
  EXPECT_EQ(follower.misfit_version(), 0);
  EXPECT_EQ(follower.first_clock_of(1), 800);
  EXPECT_EQ(step_of(follower, 2, false), 800);
  EXPECT_TRUE(follower.followed());
  EXPECT_EQ(step_of(follower, 1, false), 800);
  EXPECT_EQ(step_of(follower, 1, false), 1000);
  EXPECT_TRUE(follower.followed());
}

TEST_F(PlanFollowerTest, AMisfitOfOneShapeLeavesTheOthersAlone) {
  follower.put(shaped_plan(1));
  follower.begin_step(0, 2);
  EXPECT_EQ(run(follower, F), 800);
  EXPECT_EQ(run(follower, B), 1410);
  follower.end_step(1);
  EXPECT_EQ(follower.misfit_version(), 1);
  EXPECT_EQ(step_of(follower, 1, true), 1000);
  EXPECT_TRUE(follower.followed());
  EXPECT_EQ(step_of(follower, 2, true), 1410);
  EXPECT_EQ(step_of(follower, 2, true), 800);
}

TEST_F(PlanFollowerTest, OnlyAllowedShapesFollowThePlan) {
  follower.put(shaped_plan(1));
  follower.allow_shapes(std::vector{2});
  EXPECT_EQ(step_of(follower, 1, true), 1410);
  EXPECT_FALSE(follower.followed());
  EXPECT_TRUE(follower.held());
  EXPECT_EQ(step_of(follower, 2, true), 800);
  EXPECT_TRUE(follower.followed());
  EXPECT_FALSE(follower.held());
  follower.allow_shapes(std::nullopt);
  EXPECT_EQ(step_of(follower, 1, true), 1000);
}

TEST_F(PlanFollowerTest, StepsOfAnotherShapeAreNoneOfAWindow) {
  auto window = plan(1, {{F, 1000}, {B, 1200}});
  window->kind = ClockPlan::Kind::profiling_window;
  window->microbatches = 1;
  window->iterations = 2;
  window->then_maximum = true;
  follower.put(std::move(window));
  EXPECT_EQ(step_of(follower, 1, true), 1000);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step_of(follower, 2, true), 1410);
  EXPECT_FALSE(follower.over());
  EXPECT_EQ(step_of(follower, 1, true), 1000);
  EXPECT_EQ(step_of(follower, 1, true), 1410);
  EXPECT_TRUE(follower.over());
}

TEST_F(PlanFollowerTest, APlanThatFitsReplacesOneThatDoesNot) {
  follower.put(plan(1, {{B, 1000}}));
  follower.begin_step(0);
  EXPECT_EQ(run(follower, F), 1410);
  follower.end_step();
  follower.put(plan(2, {{F, 1100}}));
  follower.begin_step(1);
  EXPECT_EQ(run(follower, F), 1100);
  EXPECT_EQ(follower.misfit_version(), 0);
}

TEST_F(PlanFollowerTest, HeldBackIsTheHighestClockAndLiftedIsThePlans) {
  follower.put(plan(1, {{F, 1000}, {F, 900}}));
  follower.begin_step(0);
  EXPECT_EQ(run(follower, F), 1000);
  follower.hold_maximum(true);
  EXPECT_EQ(follower.next_clock(), 0);
  EXPECT_EQ(follower.clock_for(F), 1410);
  follower.hold_maximum(false);
  EXPECT_EQ(run(follower, F), 900);
}

/// Two microbatches on two chunks, each computation with its own clock.
std::unique_ptr<ClockPlan> plan_of_four() {
  return plan(1, {{F, 1000, 0, 0}, {F, 1010, 1, 0}, {F, 1020, 0, 1}, {F, 1030, 1, 1}});
}

TEST_F(PlanFollowerTest, AComputationGetsItsOwnClockInAnyOrder) {
  follower.put(plan_of_four());
  const auto run_one = [&](int microbatch, int chunk) {
    const int clock = follower.clock_for(F, microbatch, chunk);
    follower.begun(F, microbatch, chunk);
    return clock;
  };
  for (int iteration = 0; iteration < 2; ++iteration) {
    follower.begin_step(iteration);
    EXPECT_EQ(run_one(1, 0), 1010);
    EXPECT_EQ(follower.next_clock(), 1000) << "the first of the plan that has not run";
    EXPECT_EQ(run_one(0, 1), 1020);
    EXPECT_EQ(run_one(0, 0), 1000);
    EXPECT_EQ(follower.next_clock(), 1030);
    EXPECT_EQ(run_one(1, 1), 1030);
    EXPECT_EQ(follower.next_clock(), 0);
    follower.end_step();
    EXPECT_TRUE(follower.followed());
    EXPECT_EQ(follower.misfit_version(), 0);
  }
}

TEST_F(PlanFollowerTest, OneThatThePlanDoesNotHaveOrHasOnceIsAMisfit) {
  for (const auto& [microbatch, chunk] : {std::pair{2, 0}, std::pair{0, 2}, std::pair{0, 0}}) {
    PlanFollower one;
    one.set_maximum(1410);
    one.put(plan_of_four());
    one.begin_step(0);
    one.begun(F, 0, 0);
    EXPECT_EQ(one.clock_for(F, microbatch, chunk), 1410) << microbatch << ' ' << chunk;
    EXPECT_EQ(one.misfit_version(), 1);
  }
}

TEST_F(PlanFollowerTest, OneThatIsMissingAtTheEndIsAMisfitThoughTheOrderWasAnother) {
  follower.put(plan_of_four());
  follower.begin_step(0);
  follower.begun(F, 0, 0);
  follower.begun(F, 1, 1);
  follower.begun(F, 1, 0);
  follower.end_step();
  EXPECT_EQ(follower.misfit_version(), 1);
  EXPECT_EQ(follower.misfit_position(), 2) << "microbatch 0 of chunk 1";
}

TEST_F(PlanFollowerTest, WithoutIdsTheOrderOfInstructionsDecides) {
  follower.put(plan_of_four());
  follower.begin_step(0);
  for (const int clock : {1000, 1010, 1020, 1030}) EXPECT_EQ(run(follower, F), clock);
  follower.end_step();
  EXPECT_TRUE(follower.followed());
}

TEST_F(PlanFollowerTest, AWindowThatEndsIsFollowedByTheHighestClock) {
  auto window = plan_of_four();
  window->kind = ClockPlan::Kind::profiling_window;
  window->iterations = 2;
  window->then_maximum = true;
  follower.put(std::move(window));
  for (int iteration = 0; iteration < 5; ++iteration) {
    const bool in_window = iteration < 2;
    follower.begin_step(iteration);
    for (const int clock : {1000, 1010, 1020, 1030}) EXPECT_EQ(run(follower, F), in_window ? clock : 1410) << iteration;
    follower.end_step();
    EXPECT_EQ(follower.followed(), in_window) << iteration;
    EXPECT_EQ(follower.first_clock_of(iteration + 1), iteration < 1 ? 1000 : 1410) << iteration;
    EXPECT_EQ(follower.misfit_version(), 0);
  }
  follower.put(plan(2, {{F, 900}}));
  follower.begin_step(5);
  EXPECT_EQ(run(follower, F), 900);
}

TEST_F(PlanFollowerTest, StepsThatShowNoComputationGetTheHighestClockOfThePlan) {
  follower.put(plan_of_four());
  for (int iteration = 0; iteration < 3; ++iteration) {
    follower.begin_step(iteration);
    EXPECT_EQ(follower.next_clock(), iteration == 0 ? 1000 : 1030);
    follower.end_step();
    EXPECT_TRUE(follower.whole_step());
    EXPECT_FALSE(follower.followed());
    EXPECT_EQ(follower.misfit_version(), 0);
    EXPECT_EQ(follower.first_clock_of(iteration + 1), 1030);
  }
  follower.begin_step(3);
  EXPECT_EQ(run(follower, F), 1000);
}

TEST_F(PlanFollowerTest, AStepInWhichNothingRanLeavesThePlanAsItWas) {
  auto window = plan_of_four();
  window->iterations = 1;
  window->then_maximum = true;
  follower.put(std::move(window));
  for (int skipped = 0; skipped < 3; ++skipped) {
    follower.begin_step(0);
    EXPECT_EQ(run(follower, skipped == 2 ? B : F), skipped == 2 ? 1410 : 1000) << "no plan has a backward first";
    follower.forget_step();
    EXPECT_FALSE(follower.whole_step());
    EXPECT_EQ(follower.misfit_version(), 0);
    EXPECT_EQ(follower.first_clock_of(0), 1000) << "of the window, which has not run";
  }
  follower.begin_step(0);
  EXPECT_EQ(run(follower, F), 1000);
}

TEST(ClientThreads, PlansComeWhileStepsRun) {
  PlanFollower follower;
  std::atomic<bool> done{false};
  std::thread server([&] {
    for (std::int64_t version = 1; !done; ++version) {
      follower.put(plan(version, {{F, static_cast<int>(version % 1000 + 1)}}));
      follower.hold_maximum(version % 7 == 0);
      (void)follower.misfit_version();
    }
  });
  std::int64_t last = 0;
  for (int iteration = 0; iteration < 20000; ++iteration) {
    follower.begin_step(iteration);
    run(follower, F);
    follower.end_step();
    ASSERT_GE(follower.version_in_force(), last);
    last = follower.version_in_force();
  }
  done = true;
  server.join();
}

TEST(ClientThreads, StepsAreHandedOverWhole) {
  StepRecorder recorder(4, 8);
  std::atomic<bool> done{false};
  std::int64_t taken = 0;
  std::int64_t last = -1;
  std::thread reader([&] {
    while (true) {
      const bool over = done;
      while (const Step* const step = recorder.oldest()) {
        ASSERT_GT(step->iteration, last);
        last = step->iteration;
        ASSERT_EQ(step->count, static_cast<std::size_t>(step->iteration % 8));
        for (std::size_t i = 0; i < step->count; ++i) {
          ASSERT_EQ(step->computations[i].begin, static_cast<std::uint64_t>(step->iteration));
        }
        ++taken;
        recorder.release();
      }
      if (over) return;
    }
  });
  constexpr std::int64_t steps = 50000;
  for (std::int64_t i = 0; i < steps; ++i) {
    if (Step* const step = recorder.begin_step()) step->iteration = i;
    for (std::int64_t k = 0; k < i % 8; ++k) {
      recorder.begin(F, 0, 0, 0, static_cast<std::uint64_t>(i));
      recorder.end(F, static_cast<std::uint64_t>(i) + 1);
    }
    recorder.end_step();
  }
  done = true;
  reader.join();
  EXPECT_EQ(taken + recorder.lost_steps(), steps);
}

TEST(StepRecorder, MarksUncleanSteps) {
  StepRecorder recorder(2, 2);
  recorder.begin_step();
  recorder.begin(F, 0, 0, 0, 1);
  recorder.end_step();
  EXPECT_FALSE(recorder.oldest()->clean);  // no end
  recorder.release();
  recorder.begin_step();
  for (int i = 0; i < 3; ++i) {
    recorder.begin(F, i, 0, 0, 1);
    recorder.end(F, 2);
  }
  recorder.end_step();
  EXPECT_FALSE(recorder.oldest()->clean);  // one computation too many
  EXPECT_EQ(recorder.oldest()->count, 2U);
}

// ---- Power budgets

std::unique_ptr<ClockPlan> at_once(std::int64_t version, std::vector<PlannedClock> clocks) {
  auto made = plan(version, std::move(clocks), 99);
  made->budget = PlanBudget{15, 900, true};
  return made;
}

const auto knows_none = [](const auto&) {};

TEST_F(PlanFollowerTest, ACeilingTakesThePlaceOfTheHighestClockAndOfOneLeftUnchanged) {
  follower.set_ceiling(900);
  follower.begin_step(0);
  EXPECT_EQ(run(follower, F), 900) << "before there is a plan";
  EXPECT_EQ(follower.clock_outside(), 900);
  EXPECT_EQ(follower.first_clock_of(1), 900);
  follower.put(plan(1, {{F, 1410}}));
  follower.begin_step(1);
  EXPECT_EQ(run(follower, F), 1410) << "a plan's clocks may be higher";
  follower.hold_maximum(true);
  EXPECT_EQ(follower.first_clock_of(2), 900);
  follower.hold_maximum(false);
  EXPECT_EQ(run(follower, B), 900) << "a misfit";
  follower.set_ceiling(0);
  EXPECT_EQ(follower.maximum(), 1410);
}

TEST_F(PlanFollowerTest, ACeilingBoundsTheOneClockOfStepsThatShowNoComputation) {
  follower.set_ceiling(1015);
  follower.put(plan_of_four());
  follower.begin_step(0);
  follower.end_step();
  EXPECT_EQ(follower.first_clock_of(1), 1015) << "all of a step at 1030 MHz draws more than the plan";
  follower.begin_step(1);
  EXPECT_EQ(follower.next_clock(), 1015);
  follower.set_ceiling(1410);
  EXPECT_EQ(follower.next_clock(), 1030);
}

TEST_F(PlanFollowerTest, APlanThatHoldsAtOnceContinuesWhereTheStepIs) {
  follower.put(plan(1, {{F, 1000}, {F, 1100}, {B, 1200}, {B, 1300}}));
  follower.begin_step(0);
  run(follower, F);
  EXPECT_FALSE(follower.take_at_once(false, knows_none));
  follower.put(at_once(2, {{F, 500}, {F, 600}, {B, 700}, {B, 800}}));
  EXPECT_TRUE(follower.take_at_once(false, knows_none));
  EXPECT_EQ(follower.version_in_force(), 2);
  EXPECT_EQ(follower.next_clock(), 600);
  EXPECT_EQ(run(follower, F), 600);
  EXPECT_EQ(run(follower, B), 700);
  EXPECT_EQ(run(follower, B), 800);
  follower.end_step();
  EXPECT_EQ(follower.misfit_version(), 0);
  EXPECT_FALSE(follower.followed()) << "the step ran under two plans";
  follower.begin_step(1);
  EXPECT_EQ(run(follower, F), 500);
  EXPECT_EQ(run(follower, F), 600);
  EXPECT_EQ(run(follower, B), 700);
  EXPECT_EQ(run(follower, B), 800);
  follower.end_step();
  EXPECT_TRUE(follower.followed());
}

TEST_F(PlanFollowerTest, APlanThatHoldsAtOnceKnowsMicrobatchesThatRanInAnotherOrder) {
  follower.put(plan(1, {{F, 1000, 0, 0}, {F, 1100, 1, 0}, {F, 1200, 2, 0}}));
  follower.begin_step(0);
  for (const int microbatch : {2, 0}) {
    (void)follower.clock_for(F, microbatch, 0);
    follower.begun(F, microbatch, 0);
  }
  follower.put(at_once(2, {{F, 500, 1, 0}, {F, 600, 0, 0}, {F, 700, 2, 0}}));
  EXPECT_TRUE(follower.take_at_once(false, knows_none));
  EXPECT_EQ(follower.next_clock(), 500);
  EXPECT_EQ(follower.clock_of(F, 2, 0, 0), 700) << "also of one that has run";
  EXPECT_EQ(follower.clock_for(F, 1, 0), 500);
  follower.begun(F, 1, 0);
  follower.end_step();
  EXPECT_EQ(follower.misfit_version(), 0);
}

TEST_F(PlanFollowerTest, WithoutAnEarlierPlanTheRecordedComputationsSayWhereTheStepIs) {
  follower.set_ceiling(900);
  follower.begin_step(0);
  run(follower, F);
  follower.put(at_once(1, {{F, 500}, {F, 600}, {B, 700}}));
  EXPECT_TRUE(follower.take_at_once(false, [](const auto& pass) {
    pass(F, 0, 0);
    pass(model::Instruction::load, 0, 0);
  }));
  EXPECT_EQ(run(follower, F), 600);
  EXPECT_EQ(run(follower, B), 700);
  follower.end_step();
  EXPECT_EQ(follower.misfit_version(), 0);
}

TEST_F(PlanFollowerTest, APlanThatHoldsAtOnceAndDoesNotFitMeansTheCeilingUntilAStepFits) {
  follower.set_ceiling(900);
  follower.put(plan(1, {{F, 1000}, {B, 1200}, {B, 1300}}));
  follower.begin_step(0);
  run(follower, F);
  run(follower, B);
  follower.put(at_once(2, {{F, 500}, {F, 600}}));
  EXPECT_TRUE(follower.take_at_once(false, knows_none));
  EXPECT_EQ(follower.misfit_version(), 2);
  EXPECT_EQ(run(follower, B), 900);
}

TEST_F(PlanFollowerTest, ALoopOfSpeedsAloneSwitchesAtTheNextSpeed) {
  follower.put(plan(1, {{F, 1000}, {F, 1100}, {B, 1200}}));
  follower.begin_step(0);
  EXPECT_EQ(follower.clock_for(F), 1000);
  follower.put(at_once(2, {{F, 500}, {F, 600}, {B, 700}}));
  EXPECT_TRUE(follower.take_at_once(true, knows_none));
  EXPECT_EQ(follower.clock_for(F), 600);
  EXPECT_EQ(follower.clock_for(B), 700);
  follower.end_step();
  EXPECT_EQ(follower.misfit_version(), 0);
}

TEST_F(PlanFollowerTest, APlanThatHoldsAtOnceDoesNotWaitForItsIteration) {
  follower.put(at_once(1, {{F, 500}}));
  follower.begin_step(0);
  EXPECT_EQ(run(follower, F), 500);
}

}  // namespace
}  // namespace perseus::client
