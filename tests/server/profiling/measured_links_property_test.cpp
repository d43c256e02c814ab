// The ranks measure the links of the simulated job for any schedule, profile and clocks of the ranks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "oracles/dice.h"
#include "planning/model/make_schedule.h"
#include "server/profiling/measured_pipelines.h"
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
