#include "planning/model/build_dag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planning/model/computation_dag.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/make_schedule.h"
#include "tests/support/model_samples.h"

namespace perseus::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::two_clock_profile;
using testing::uniform_profile;

constexpr Seconds kLinkLatency{0.25};

ComputationDag dag_of(const Profile& profile, const Schedule& schedule) {
  auto dag = build_dag(profile, schedule, {Watts(80), kLinkLatency});
  EXPECT_TRUE(dag) << dag.error().message;
  EXPECT_TRUE(dag->validate()) << dag->validate().error().message;
  return *dag;
}

std::string error_of(const Profile& profile, const Schedule& schedule, PipelineCosts costs = {Watts(80), {}}) {
  const auto dag = build_dag(profile, schedule, costs);
  return dag ? "no error" : dag.error().message;
}

/// Rank r's instructions with their microbatches, in execution order.
std::vector<std::string> order_of(const ComputationDag& dag, int rank) {
  std::vector<std::string> order;
  for (const int i : dag.rank_order[rank]) {
    order.push_back(dag.type_of(i).instruction + " " + std::to_string(dag.computations[i].microbatch));
  }
  return order;
}

Schedule table(std::vector<std::vector<Action>> ranks, int stages, int microbatches) {
  return {"test", stages, microbatches, std::move(ranks)};
}

TEST(BuildDag, OneForwardOneBackwardByHand) {
  const ComputationDag dag = dag_of(two_clock_profile(), *make_schedule("1f1b", {2, 2, 1}));
  EXPECT_EQ(dag.computations.size(), 8u);
  EXPECT_THAT(order_of(dag, 0), ElementsAre("forward 0", "forward 1", "backward 0", "backward 1"));
  EXPECT_THAT(order_of(dag, 1), ElementsAre("forward 0", "backward 0", "forward 1", "backward 1"));
  EXPECT_EQ(dag.types.size(), 4u);
  EXPECT_EQ(dag.types[3].stage, 1);
  EXPECT_EQ(dag.types[3].instruction, "backward");
  // Six dependencies along the ranks, four between them; forward before backward of the same stage is implied.
  EXPECT_EQ(dag.dependencies.size(), 10u);
  int between = 0;
  std::set<std::pair<int, int>> pairs;
  for (const Dependency& d : dag.dependencies) {
    const bool crosses = dag.computations[d.before].rank != dag.computations[d.after].rank;
    EXPECT_EQ(d.latency, crosses ? kLinkLatency : Seconds());
    between += crosses ? 1 : 0;
    EXPECT_TRUE(pairs.emplace(d.before, d.after).second);
  }
  EXPECT_EQ(between, 4);
  EXPECT_EQ(dag.total_blocking_power(), Watts(160));
}

TEST(BuildDag, AnEarlyReceiveIsADependencyOnce) {
  using enum Instruction;
  Schedule schedule = *make_schedule("gpipe", {2, 2, 1});
  const ComputationDag without = dag_of(two_clock_profile(), schedule);
  // The receiver does not need the first; the DAG implies the second already.
  schedule.early_receives = {{{backward, 1, 0}, {backward, 0, 1}}, {{forward, 0, 0}, {forward, 1, 0}}};
  const ComputationDag with = dag_of(two_clock_profile(), schedule);
  ASSERT_EQ(with.dependencies.size(), without.dependencies.size() + 1);
  const auto has = [&](int before, int after) {
    return std::ranges::any_of(with.dependencies,
                               [&](const Dependency& d) { return d.before == before && d.after == after; });
  };
  EXPECT_TRUE(has(with.rank_order[1][2], with.rank_order[0][3]));
}

TEST(BuildDag, NamesTheCycleOfADeadlock) {
  using enum Instruction;
  // Rank 1 needs microbatch 1 first; rank 0 sends it only after the backward of microbatch 0.
  const Schedule schedule = table({{{forward, 0, 0}, {backward, 0, 0}, {forward, 0, 1}, {backward, 0, 1}},
                                   {{forward, 1, 1}, {backward, 1, 1}, {forward, 1, 0}, {backward, 1, 0}}},
                                  2, 2);
  EXPECT_EQ(
      error_of(two_clock_profile(), schedule),
      "schedule: deadlock: backward of stage 0, microbatch 0 (rank 0, action 1) before forward of stage 0, "
      "microbatch 1 (rank 0, action 2) before forward of stage 1, microbatch 1 (rank 1, action 0) before backward "
      "of stage 1, microbatch 1 (rank 1, action 1) before forward of stage 1, microbatch 0 (rank 1, action 2) "
      "before backward of stage 1, microbatch 0 (rank 1, action 3) before the first again");
}

TEST(BuildDag, ABackwardBeforeItsForwardOnOneRankIsADeadlock) {
  using enum Instruction;
  EXPECT_THAT(error_of(two_clock_profile(1), table({{{backward, 0, 0}, {forward, 0, 0}}}, 1, 1)),
              HasSubstr("deadlock: backward of stage 0, microbatch 0 (rank 0, action 0) before forward of stage 0"));
}

TEST(BuildDag, AddsConstantTimeInstructionsThatTheScheduleLacks) {
  Profile profile = uniform_profile(
      2, {{"load", 0.5}, {"forward", 1}, {"backward", 2}, {"optimizer_step", 0.75}, {"all_reduce", 0.25}});
  std::erase_if(profile.entries, [](const ProfileEntry& e) { return e.stage == 1 && e.instruction == "load"; });
  const ComputationDag dag = dag_of(profile, *make_schedule("1f1b", {2, 2, 1}));
  EXPECT_THAT(order_of(dag, 0), ElementsAre("load 0", "forward 0", "load 1", "forward 1", "backward 0", "backward 1",
                                            "all_reduce -1", "optimizer_step -1"));
  EXPECT_THAT(order_of(dag, 1),
              ElementsAre("forward 0", "backward 0", "forward 1", "backward 1", "all_reduce -1", "optimizer_step -1"));
}

TEST(BuildDag, KeepsTheSchedulesOwnConstantTimeInstructions) {
  using enum Instruction;
  const Schedule schedule = table({{{load, 0, 0}, {forward, 0, 0}, {all_reduce, 0, -1}, {backward, 0, 0}}}, 1, 1);
  const Profile profile = uniform_profile(1, {{"load", 1}, {"forward", 1}, {"backward", 2}, {"all_reduce", 1}});
  EXPECT_THAT(order_of(dag_of(profile, schedule), 0),
              ElementsAre("load 0", "forward 0", "all_reduce -1", "backward 0"));
  // Without measurements the DAG omits them.
  EXPECT_THAT(order_of(dag_of(two_clock_profile(1), schedule), 0), ElementsAre("forward 0", "backward 0"));
}

TEST(BuildDag, ARankWithSeveralStagesEndsWithAllOfTheirReductionsThenTheirSteps) {
  const Profile profile =
      uniform_profile(2, {{"forward", 1}, {"backward", 2}, {"all_reduce", 1}, {"optimizer_step", 1}});
  const ComputationDag dag = dag_of(profile, *make_schedule("interleaved-1f1b", {1, 1, 2}));
  EXPECT_THAT(order_of(dag, 0), ElementsAre("forward 0", "forward 0", "backward 0", "backward 0", "all_reduce -1",
                                            "all_reduce -1", "optimizer_step -1", "optimizer_step -1"));
}

TEST(BuildDag, DerivesRecomputeAndPureBackward) {
  const ComputationDag dag = dag_of(two_clock_profile(), *make_schedule("early-recompute-1f1b", {2, 2, 1}));
  EXPECT_THAT(order_of(dag, 0), ElementsAre("forward 0", "forward 1", "backward 0", "recompute 1", "pure_backward 1"));
  const ComputationType& pure = dag.type_of(dag.rank_order[0].back());
  ASSERT_EQ(pure.options.size(), 1u) << "1410 MHz is the only clock of both forward and backward";
  EXPECT_DOUBLE_EQ(pure.options[0].time.value(), 0.1);
  EXPECT_DOUBLE_EQ(pure.options[0].energy.value(), 31);
  EXPECT_EQ(dag.type_of(dag.rank_order[0][3]).options.size(), 2u);
}

TEST(BuildDag, ErrorsNameStagesWithoutAPureBackward) {
  Profile profile = two_clock_profile();
  profile.entries[1].measurements[0].time = Seconds(0.05);
  EXPECT_THAT(error_of(profile, *make_schedule("early-recompute-1f1b", {2, 2, 1})),
              HasSubstr("stage 0: pure_backward = backward - forward at 1410 MHz would take -0.05 s and 31 J"));
  profile = two_clock_profile();
  profile.entries[0].measurements.erase(profile.entries[0].measurements.begin());
  EXPECT_THAT(error_of(profile, *make_schedule("early-recompute-1f1b", {2, 2, 1})),
              HasSubstr("stage 0: forward and backward share no clock"));
}

TEST(BuildDag, ASplitBackwardMustBeMeasuredOrRequested) {
  const Schedule schedule = *make_schedule("zero-bubble", {2, 2, 1});
  EXPECT_EQ(
      error_of(two_clock_profile(), schedule),
      "the schedule zero-bubble needs input_gradient of stage 0, which the profile has no measurements of; measure "
      "it, or give --split-backward FRACTION to split backward");
  auto profile = split_backward(two_clock_profile(), 0.25);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_TRUE(profile->validate()) << profile->validate().error().message;
  const ComputationDag dag = dag_of(*profile, schedule);
  EXPECT_EQ(dag.computations.size(), 12u);
  const Measurement& whole = profile->find(1, "backward")->measurements[1];
  EXPECT_DOUBLE_EQ(profile->find(1, "input_gradient")->measurements[1].time.value(), 0.25 * whole.time.value());
  EXPECT_DOUBLE_EQ(profile->find(1, "weight_gradient")->measurements[1].energy.value(), 0.75 * whole.energy.value());
  for (const double bad : {0.0, 1.0, -0.5, std::nan("")}) EXPECT_FALSE(split_backward(two_clock_profile(), bad));
}

TEST(BuildDag, ASenderWaitsForItsTransferIfTransfersBlock) {
  const Schedule schedule = *make_schedule("1f1b", {2, 3, 1});
  const auto latencies = [&](bool blocking) {
    const ComputationDag dag = *build_dag(two_clock_profile(), schedule, {Watts(80), kLinkLatency, blocking});
    std::vector<std::string> delayed;  // on one rank
    for (const Dependency& d : dag.dependencies) {
      if (dag.computations[d.before].rank != dag.computations[d.after].rank) {
        EXPECT_EQ(d.latency, kLinkLatency);
      } else if (d.latency == kLinkLatency) {
        delayed.push_back(std::to_string(dag.type_of(d.before).stage) + dag.type_of(d.before).instruction);
      }
    }
    return delayed;
  };
  EXPECT_TRUE(latencies(false).empty());
  // Stage 0 sends forwards, stage 1 backwards; the last of a rank delays nothing of its own.
  EXPECT_THAT(latencies(true),
              ::testing::UnorderedElementsAre("0forward", "0forward", "0forward", "1backward", "1backward"));
}

TEST(BuildDag, RefusesMismatchedInputs) {
  const Schedule schedule = *make_schedule("1f1b", {2, 2, 1});
  EXPECT_EQ(error_of(two_clock_profile(3), schedule),
            "the profile has 3 stages, the schedule 1f1b has 2 (2 ranks); must be equal");
  EXPECT_THAT(error_of(two_clock_profile(), schedule, {Watts(-1), {}}), HasSubstr("blocking_power_w -1"));
  EXPECT_THAT(error_of(two_clock_profile(), schedule, {Watts(1), Seconds(std::nan(""))}),
              HasSubstr("transfer_latency_s nan; must be finite and >= 0"));
  EXPECT_THAT(error_of(two_clock_profile(), schedule, {Watts(1), TransferLatency({{}, {}, {}})}),
              HasSubstr("transfer_latency_s: 3 boundaries for 2 ranks; allowed: 1"));
  Profile profile = two_clock_profile(4);
  profile.accelerators = {8, 8, 8, 4};
  EXPECT_EQ(error_of(profile, *make_schedule("interleaved-1f1b", {2, 2, 2})),
            "rank 1 holds stage 1 with 8 accelerators and stage 3 with 4; must be equal");
  profile = two_clock_profile();
  profile.entries[0].measurements[0].time = Seconds(-1);
  EXPECT_THAT(error_of(profile, schedule), HasSubstr("profile: stage 0, forward: 1410 MHz: time_s -1; must be finite"));
}

TEST(MakeSchedule, NamesTheLimitsOfItsShape) {
  const auto error = [](const char* name, ScheduleShape shape) {
    const auto schedule = make_schedule(name, shape);
    return schedule ? "no error" : schedule.error().message;
  };
  EXPECT_THAT(error("2f2b", {2, 2, 1}),
              HasSubstr("unknown schedule '2f2b'; allowed: gpipe, 1f1b, early-recompute-1f1b"));
  EXPECT_EQ(error("1f1b", {0, 2, 1}), "1f1b: 0 ranks; must be >= 1");
  EXPECT_EQ(error("1f1b", {2, 0, 1}), "1f1b: 0 microbatches; must be >= 1");
  EXPECT_EQ(error("1f1b", {2, 2, 2}), "1f1b: 2 chunks per rank; this schedule has 1");
  EXPECT_EQ(error("zbv", {2, 2, 1}), "zbv: 1 chunks per rank; this schedule has 2");
  EXPECT_THAT(error("dualpipev", {4, 7, 2}), HasSubstr("7 microbatches; must be at least the 8 stages"));
  EXPECT_THAT(error("interleaved-1f1b", {4, 9, 2}),
              HasSubstr("9 microbatches on 4 ranks make 2 rounds; must be a multiple"));
  EXPECT_THAT(error("1f1b", {1 << 30, 1 << 30, 1}), HasSubstr("at most 65536 stages"));
  EXPECT_THAT(error("gpipe", {1024, 1 << 20, 1}), HasSubstr("the product may be at most 4194304"));
}

TEST(Dag, ValidateFindsBrokenRules) {
  const ComputationDag good = dag_of(two_clock_profile(), *make_schedule("1f1b", {2, 2, 1}));
  const auto error = [&](auto change) {
    ComputationDag dag = good;
    change(dag);
    const Status status = dag.validate();
    return status ? "no error" : status.error().message;
  };
  EXPECT_THAT(error([](auto& d) { d.blocking_power = Watts(-1); }), HasSubstr("blocking_power_w -1"));
  EXPECT_THAT(error([](auto& d) { d.accelerators = {1}; }), HasSubstr("2 ranks, but accelerators for 1"));
  EXPECT_THAT(error([](auto& d) { d.accelerators[1] = 0; }), HasSubstr("rank 1: 0 accelerators"));
  EXPECT_THAT(error([](auto& d) { d.types[0].options.clear(); }), HasSubstr("type 0 has no options"));
  EXPECT_THAT(error([](auto& d) { d.types[0].options[0].time = Seconds(0); }), HasSubstr("time_s 0"));
  EXPECT_THAT(error([](auto& d) { d.types[0].options[0].energy = Joules(-1); }), HasSubstr("energy_j -1"));
  EXPECT_THAT(error([](auto& d) { d.computations[3].type = 9; }), HasSubstr("computation 3: type 9; must be 0..3"));
  EXPECT_THAT(error([](auto& d) { d.computations[3].rank = 2; }), HasSubstr("computation 3: rank 2; must be 0..1"));
  EXPECT_THAT(error([](auto& d) { std::swap(d.dependencies[0].before, d.dependencies[0].after); }),
              HasSubstr("must be 0 <= before < after < 8"));
  EXPECT_THAT(error([](auto& d) { d.dependencies[1].latency = Seconds(-1); }), HasSubstr("dependency 1: latency_s -1"));
  EXPECT_THAT(error([](auto& d) { d.rank_order[0].pop_back(); }),
              HasSubstr("8 computations, but 7 in the ranks' orders"));
  EXPECT_THAT(error([](auto& d) { std::swap(d.rank_order[0][0], d.rank_order[0][1]); }),
              HasSubstr("in increasing order"));
  EXPECT_THAT(error([](auto& d) {
                std::erase_if(d.dependencies, [&](const Dependency& e) {
                  return e.before == d.rank_order[1][0] && e.after == d.rank_order[1][1];
                });
              }),
              HasSubstr("without a dependency between them"));
}

}  // namespace
}  // namespace perseus::model
