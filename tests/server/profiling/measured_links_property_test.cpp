// The ranks measure the links of the simulated job for any schedule, profile and clocks of the ranks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "oracles/dice.h"
#include "planning/model/build_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/realize.h"
#include "server/profiling/measured_pipelines.h"
#include "server/profiling/online_profiler.h"
#include "server/profiling/profile_estimate.h"
#include "tests/support/plan_loss.h"
#include "tests/support/simulated_job.h"
#include "tests/support/simulated_profile.h"

namespace perseus::profiling {
namespace {

using testing::ShrinkingDice;
using testing::SimulatedJob;

struct LinkedJob {
  model::Schedule schedule;
  SimulatedJob job;
  bool waits = true;  ///< every rank waits for its first message in each direction
};

model::TransferLatency random_links(ShrinkingDice& dice, int ranks, bool around) {
  std::vector<model::BoundaryLatency> boundaries;
  for (int b = 0; b < (around && ranks > 2 ? ranks : ranks - 1); ++b) {
    const Seconds latency(dice.one_in(4) ? dice.real(0.02, 0.08) : dice.real(0, 0.005));
    boundaries.push_back({latency, latency});
  }
  return model::TransferLatency(std::move(boundaries));
}

LinkedJob random_job(ShrinkingDice& dice, testing::SimulationOptions options, bool symmetric_links = true) {
  const int ranks = dice.roll(2, 6);
  const std::string name = dice.one_in(3) ? "gpipe" : dice.one_in(2) ? "interleaved-1f1b" : "1f1b";
  const bool interleaved = name == "interleaved-1f1b";
  const int chunks = interleaved ? 2 : 1;
  const int microbatches = ranks * dice.roll(interleaved ? 2 : 1, 4);
  model::Schedule schedule = model::make_schedule(name, {ranks, microbatches, chunks}).value();
  options.transfer_latency = random_links(dice, ranks, interleaved);
  if (!symmetric_links) {
    for (model::BoundaryLatency& b : options.transfer_latency.boundaries) b.backward = Seconds(dice.real(0, 0.08));
  }
  testing::InventedGpu gpu;
  gpu.stages = schedule.num_stages;
  const model::Profile truth = testing::invented_profile(gpu, static_cast<std::uint64_t>(dice.roll(1, 1'000'000)));
  return {schedule, SimulatedJob(truth, schedule, options, static_cast<std::uint64_t>(dice.roll(1, 1'000'000))),
          !interleaved};
}

ProfilingWindow at_highest(const LinkedJob& linked, int iterations) {
  ProfilingWindow window{0, iterations, false, false, {}};
  for (const auto& actions : linked.schedule.ranks) window.clocks.emplace_back(actions.size(), Megahertz(1400));
  return window;
}

std::optional<MeasuredLinks> measured(LinkedJob& linked, int iterations) {
  profiling::MeasuredPipelines pipelines(linked.schedule);
  for (const RankResult& result : linked.job.run(at_highest(linked, iterations))) pipelines.add(result);
  return pipelines.links();
}

RC_GTEST_PROP(MeasuredLinks, AreThoseOfTheJob, ()) {
  ShrinkingDice dice;
  testing::SimulationOptions options;
  options.blocking_transfers = dice.one_in(2);
  LinkedJob linked = random_job(dice, options);
  const auto links = measured(linked, 3);
  RC_ASSERT(links.has_value());
  const model::TransferLatency& truth = linked.job.options().transfer_latency;
  RC_ASSERT(links->latency.boundaries.size() == truth.boundaries.size());
  for (std::size_t b = 0; b < truth.boundaries.size(); ++b) {
    const Seconds over = links->latency.boundaries[b].forward - truth.boundaries[b].forward;
    RC_ASSERT(over > Seconds(-1e-9));
    if (linked.waits) RC_ASSERT(over < Seconds(1e-9));
    RC_ASSERT(links->latency.boundaries[b].backward == links->latency.boundaries[b].forward);
  }
  if (linked.waits && truth.largest() > Seconds(1e-3))
    RC_ASSERT(links->blocking_transfers == options.blocking_transfers);
}

/// Only the sum of both directions is identifiable.
RC_GTEST_PROP(MeasuredLinks, HaveTheRoundTripOfLinksWhoseDirectionsDiffer, ()) {
  ShrinkingDice dice;
  LinkedJob linked = random_job(dice, {}, false);
  const auto links = measured(linked, 3);
  RC_ASSERT(links.has_value());
  const model::TransferLatency& truth = linked.job.options().transfer_latency;
  for (std::size_t b = 0; b < truth.boundaries.size(); ++b) {
    const Seconds sum = truth.boundaries[b].forward + truth.boundaries[b].backward;
    const Seconds over = 2 * links->latency.boundaries[b].forward - sum;
    RC_ASSERT(over > Seconds(-1e-9));
    if (linked.waits) RC_ASSERT(over < Seconds(1e-9));
  }
}

RC_GTEST_PROP(MeasuredLinks, OfJitteringRanksAreWithinTheJitter, ()) {
  ShrinkingDice dice;
  testing::SimulationOptions options;
  options.jitter_s = 0.0002;
  LinkedJob linked = random_job(dice, options);
  const auto links = measured(linked, 9);
  RC_ASSERT(links.has_value());
  const model::TransferLatency& truth = linked.job.options().transfer_latency;
  for (std::size_t b = 0; b < truth.boundaries.size(); ++b) {
    const Seconds over = links->latency.boundaries[b].forward - truth.boundaries[b].forward;
    RC_ASSERT(over > Seconds(-0.0005));
    if (linked.waits) RC_ASSERT(over < Seconds(0.0005));
  }
}

TEST(MeasuredLinks, NeedThreeIterationsOfAllRanksWithTimes) {
  testing::SimulationOptions options;
  options.transfer_latency = Seconds(0.01);
  const model::Schedule schedule = model::make_schedule("1f1b", {3, 6, 1}).value();
  LinkedJob linked{schedule, SimulatedJob(testing::invented_profile({}, 7), schedule, options, 1)};
  EXPECT_FALSE(measured(linked, 2));
  EXPECT_TRUE(measured(linked, 3));
  profiling::MeasuredPipelines pipelines(schedule);
  for (RankResult& result : linked.job.run(at_highest(linked, 3))) {
    if (result.rank == 1) result.end_s.clear();
    pipelines.add(result);
  }
  EXPECT_FALSE(pipelines.links());
}

/// Energy lost at T_max, percent, by the plan for the estimate with these links.
double lost_pct(const SimulatedJob& job, const model::Schedule& schedule, const ProfileEstimate& estimate,
                const model::TransferLatency& links) {
  const model::ComputationDag& dag = job.dag();
  const auto t_max = [](const model::ComputationDag& of) {
    return planner::Realizer(of).realize(model::all_maximum_clock(of)).time;
  };
  const auto planned = model::build_dag(estimate.profile, schedule, {estimate.blocking_power, links}).value();
  const model::Frontier frontier = planner::plan_exact(planned);
  const model::Plan& plan = frontier.points[model::default_point(frontier, t_max(planned))].plan;
  return testing::plan_loss(dag, planner::plan_exact(dag), plan, t_max(dag)).strict_loss_pct;
}

/// Chunks of an interleaved schedule leave slack between the last rank and the first: at the highest clock no rank
/// waits for that link. The windows of online profiling use the slack, so they measure the link.
TEST(MeasuredLinks, ThatNothingWaitsForAreFoundByTheWindowsOfOnlineProfiling) {
  const model::Schedule schedule = model::make_schedule("interleaved-1f1b", {3, 6, 2}).value();
  const auto link = [](double ms) { return model::BoundaryLatency{Seconds(ms / 1e3), Seconds(ms / 1e3)}; };
  testing::SimulationOptions options;
  options.transfer_latency = model::TransferLatency({link(0.2), link(0.2), link(6)});
  std::uint64_t seed = 0;
  std::optional<LinkedJob> linked;
  model::TransferLatency at_highest;
  do {
    ASSERT_LT(++seed, 200U);
    const model::Profile truth = testing::invented_profile({.stages = 6}, seed);
    linked = LinkedJob{schedule, SimulatedJob(truth, schedule, options, seed)};
    at_highest = measured(*linked, 3).value().latency;
  } while (at_highest.boundaries[2].forward < Seconds(0.011));
  ProfilingJob job = linked->job.job();
  job.measure_links = true;
  OnlineProfiler profiler = OnlineProfiler::create(job).value();
  for (ProfilingStep step = profiler.next(); step.window() != nullptr; step = profiler.next()) {
    ASSERT_TRUE(profiler.hand_out(*step.window()).ok());
    for (const RankResult& result : linked->job.run(*step.window())) ASSERT_TRUE(profiler.report(result).ok());
  }
  const ProfileEstimate estimate = profiler.estimate().value();
  const auto lost = [&](const model::TransferLatency& links) {
    return lost_pct(linked->job, schedule, estimate, links);
  };
  const double with_true = lost(options.transfer_latency);
  EXPECT_NEAR(lost(estimate.links.value().latency), with_true, 0.02);
  EXPECT_GT(lost(at_highest), with_true + 0.1) << "the link does not matter";
}

TEST(MeasuredLinks, OfReplicasAreTheSlowestOnes) {
  testing::SimulationOptions options;
  options.transfer_latency = Seconds(0.01);
  const model::Schedule schedule = model::make_schedule("1f1b", {3, 6, 1}).value();
  const model::Profile truth = testing::invented_profile({}, 7);
  LinkedJob fast{schedule, SimulatedJob(truth, schedule, options, 1)};
  options.transfer_latency = Seconds(0.03);
  LinkedJob slow{schedule, SimulatedJob(truth, schedule, options, 1)};
  profiling::MeasuredPipelines pipelines(schedule);
  std::vector<RankResult> results = fast.job.run(at_highest(fast, 3));
  for (RankResult& result : slow.job.run(at_highest(slow, 3))) {
    result.replica = 1;
    results.push_back(std::move(result));
  }
  std::ranges::sort(results, {}, [](const RankResult& r) { return std::pair(r.rank, r.replica); });
  for (const RankResult& result : results) pipelines.add(result);
  const auto links = pipelines.links();
  ASSERT_TRUE(links);
  for (const model::BoundaryLatency& b : links->latency.boundaries) EXPECT_NEAR(b.forward.value(), 0.03, 1e-9);
}

}  // namespace
}  // namespace perseus::profiling
