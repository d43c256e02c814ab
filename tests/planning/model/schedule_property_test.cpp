// Properties of every schedule of every shape, and the makespans that theory predicts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "io/formats/action_table.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"
#include "tests/support/model_samples.h"

namespace perseus::formats {
namespace {

using testing::makespan;
using testing::profile_for_any_schedule;

/// Unit times: makespan of the named schedule on stages that are equal.
double makespan_of(const std::string& name, model::ScheduleShape shape, double forward, double input, double weight) {
  auto schedule = model::make_schedule(name, shape);
  EXPECT_TRUE(schedule) << schedule.error().message;
  auto dag = model::build_dag(profile_for_any_schedule(schedule->num_stages, forward, input, weight), *schedule, {});
  EXPECT_TRUE(dag) << dag.error().message;
  return makespan(*dag);
}

RC_GTEST_PROP(Schedules, AreCompleteAndNeverDeadlock, ()) {
  const auto name = *rc::gen::elementOf(model::schedule_names());
  const int fixed = model::chunks_fixed_by(name);
  const model::ScheduleShape shape{*rc::gen::inRange(1, 10), *rc::gen::inRange(1, 30),
                                   fixed != 0 ? fixed : *rc::gen::inRange(1, 5)};
  auto schedule = model::make_schedule(name, shape);
  if (!schedule) RC_DISCARD("a shape that this schedule does not have");
  RC_ASSERT(schedule->validate().ok());
  RC_ASSERT(schedule->num_ranks() == shape.num_ranks);
  RC_ASSERT(schedule->num_stages == shape.num_ranks * shape.chunks);

  auto dag = model::build_dag(profile_for_any_schedule(schedule->num_stages), *schedule, {Watts(80), Seconds(0.125)});
  RC_ASSERT(dag.ok());
  RC_ASSERT(dag->validate().ok());
  std::size_t actions = 0;
  for (const auto& rank : schedule->ranks) actions += rank.size();
  RC_ASSERT(dag->computations.size() == actions);
  RC_ASSERT(dag->dependencies.size() <= 3 * actions);

  if (const auto table = format_action_table(*schedule)) {
    auto read = parse_action_table(*table, "table");
    RC_ASSERT(read.ok());
    RC_ASSERT(read->ranks == schedule->ranks);
  } else {
    RC_ASSERT(name == "early-recompute-1f1b");
  }
}

RC_GTEST_PROP(Schedules, GPipeAnd1F1BTakeOneRampOfStagesMore, ()) {
  const int ranks = *rc::gen::inRange(1, 10);
  const int microbatches = *rc::gen::inRange(1, 20);
  const double forward = *rc::gen::inRange(1, 5);
  const double backward = *rc::gen::inRange(2, 9);
  const double expected = (microbatches + ranks - 1) * (forward + backward);
  for (const char* name : {"gpipe", "1f1b"}) {
    RC_ASSERT(makespan_of(name, {ranks, microbatches, 1}, forward, backward / 2, backward / 2) == expected);
  }
}

RC_GTEST_PROP(Schedules, InterleavingDividesTheBubbleByTheChunks, ()) {
  const int ranks = *rc::gen::inRange(1, 8);
  const int microbatches = ranks * *rc::gen::inRange(1, 5);
  const int chunks = *rc::gen::inRange(1, 5);
  // A stage is 1/chunks of a rank's layers: count in units of one chunk.
  const double work = 3.0 * microbatches * chunks;
  const double bubble = 3.0 * (ranks - 1);
  RC_ASSERT(makespan_of("interleaved-1f1b", {ranks, microbatches, chunks}, 1, 1, 1) == work + bubble);
}

RC_GTEST_PROP(Schedules, ASplitBackwardFillsTheBubble, ()) {
  const int ranks = *rc::gen::inRange(1, 10);
  const int microbatches = 2 * ranks + *rc::gen::inRange(0, 12);
  // ZB-H1, forward = input gradient = weight gradient: a third of 1F1B's bubble, (P - 1)(F + I - W).
  RC_ASSERT(makespan_of("zero-bubble", {ranks, microbatches, 1}, 1, 1, 1) == 3.0 * microbatches + (ranks - 1));
  // ZBV: no rank ever waits between its first and last computation; the last starts P - 1 after the first.
  RC_ASSERT(makespan_of("zbv", {ranks, microbatches, 2}, 1, 1, 1) == 6.0 * microbatches + (ranks - 1));
}

RC_GTEST_PROP(Schedules, EarlyRecomputationIsNeverSlowerThan1F1B, ()) {
  const model::ScheduleShape shape{*rc::gen::inRange(1, 8), *rc::gen::inRange(1, 16), 1};
  const model::Profile profile = testing::uniform_profile(shape.num_ranks, {{"forward", 1}, {"backward", 3}});
  const auto time = [&](const char* name) {
    return makespan(*model::build_dag(profile, *model::make_schedule(name, shape), {}));
  };
  RC_ASSERT(time("early-recompute-1f1b") <= time("1f1b"));
}

}  // namespace
}  // namespace perseus::formats
