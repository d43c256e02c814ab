// Positions of the device: delays of calls behind boundaries, and a position that stays behind completed steps.
#include "training/client/device_positions.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace perseus::client {
namespace {

/// A step whose computations end at these positions, at 1 ms, 2 ms, ... of the host's clock; 0: no position.
Step step_of(std::initializer_list<std::uint32_t> positions) {
  Step step;
  for (const std::uint32_t position : positions) {
    RecordedComputation computation;
    computation.end = 1'000'000 * (step.computations.size() + 1);
    computation.end_position = position;
    step.computations.push_back(computation);
  }
  step.count = step.computations.size();
  return step;
}

clock_control::AppliedClock applied(std::uint32_t position, std::int64_t call_ns) {
  return {call_ns, 900, position, true};
}

TEST(DevicePositionsTest, TheDelayIsFromTheBoundaryToTheCallOfItsClock) {
  DevicePositions positions;
  positions.applied(applied(2, 2'050'000));
  positions.applied(applied(4, 4'050'000));  // its step is not completed yet
  positions.completed(step_of({1, 2, 3}));
  EXPECT_EQ(positions.reached_to_call().count(), 1);
  EXPECT_NEAR(positions.reached_to_call().quantile_s(0.5), 50e-6, 5e-6);
  positions.completed(step_of({0, 0, 0, 4}));
  EXPECT_EQ(positions.reached_to_call().count(), 2);
}

TEST(DevicePositionsTest, CallsForPositionsOfStepsWithoutEventsAreLeftOut) {
  DevicePositions positions;
  positions.applied(applied(0xffffffff, 100));
  positions.applied(applied(3, 1'020'000));
  positions.completed(step_of({3}));  // after the wrap
  EXPECT_EQ(positions.reached_to_call().count(), 1);
}

TEST(DevicePositionsTest, APositionStaysBehindAfterASecond) {
  DevicePositions positions;
  const Step step = step_of({6, 7, 0});
  EXPECT_FALSE(positions.stays_behind(step, 6, 10));
  EXPECT_FALSE(positions.stays_behind(step, 6, 11));
  EXPECT_TRUE(positions.stays_behind(step, 6, 11.1));
  EXPECT_FALSE(positions.stays_behind(step, 7, 12));
  EXPECT_FALSE(positions.stays_behind(step, 6, 20));  // a second begins anew
}

TEST(DevicePositionsTest, PositionsMayWrap) {
  DevicePositions positions;
  EXPECT_FALSE(positions.stays_behind(step_of({0xfffffffe}), 3, 10));
  EXPECT_FALSE(positions.stays_behind(step_of({0xfffffffe}), 3, 20));
  EXPECT_FALSE(positions.stays_behind(step_of({3}), 0xfffffffe, 30));
  EXPECT_TRUE(positions.stays_behind(step_of({3}), 0xfffffffe, 40));
}

TEST(DevicePositionsTest, StepsWithoutPositionsGiveNoBound) {
  DevicePositions positions;
  EXPECT_FALSE(positions.stays_behind(step_of({0, 0}), 0, 10));
  EXPECT_FALSE(positions.stays_behind(step_of({0, 0}), 0, 20));
}

}  // namespace
}  // namespace perseus::client
