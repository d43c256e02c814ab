// Configurations: memory by hand, divided and merged stages, derived recomputation, rejected input, unions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/checker/verify_union.h"
#include "planning/model/make_schedule.h"
#include "planning/search/configuration.h"
#include "planning/search/recomputation.h"
#include "planning/search/repartition.h"
#include "planning/search/stage_count.h"
#include "planning/search/union_frontier.h"
#include "tests/support/model_samples.h"

namespace perseus::search {
namespace {

using ::testing::Contains;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

model::Schedule schedule_of(const std::string& name, int ranks, int microbatches, int chunks = 1) {
  return model::make_schedule(name, {ranks, microbatches, chunks}).value();
}

std::vector<double> peaks(const std::string& schedule, const std::vector<bool>& recomputes,
                          const model::StageMemory& each, int chunks = 1) {
  const model::Schedule made = schedule_of(schedule, static_cast<int>(recomputes.size()) / chunks, 4, chunks);
  return peak_memory_gib(made, std::vector<model::StageMemory>(recomputes.size(), each), recomputes);
}

const std::vector<bool> kNone(3, false), kAll(3, true);

TEST(SearchMemory, HoldsEveryMicrobatchUntilItsBackward) {
  const model::StageMemory each{10, 1, 0.25, {}};
  EXPECT_THAT(peaks("gpipe", kNone, each), ElementsAre(14, 14, 14));
  EXPECT_THAT(peaks("1f1b", kNone, each), ElementsAre(13, 12, 11));
  // The figures of docs/schedules.md: each rank holds three microbatches until their weight gradients.
  EXPECT_THAT(peaks("zero-bubble", kNone, each), ElementsAre(13, 13, 13));
}

TEST(SearchMemory, ARecomputingStageHoldsCheckpointsAndOneMicrobatch) {
  EXPECT_THAT(peaks("1f1b", kAll, {10, 1, 0.25, {}}), ElementsAre(11.75, 11.5, 11.25));
  EXPECT_THAT(peaks("1f1b", kAll, {10, 1, 0.25, 0.125}), ElementsAre(10.875, 10.625, 10.375));
  EXPECT_THAT(peaks("1f1b", {true, true, false}, {10, 1, 0.25, {}}), ElementsAre(11.75, 11.5, 11));
}

TEST(SearchMemory, ARankAddsUpItsStages) {
  // Rank 0 of the interleaved figure begins F0 F1 f0 f1 F2 before its first backward: five half stages.
  const std::vector<double> both = peaks("interleaved-1f1b", std::vector<bool>(4, false), {5, 0.5, 0, {}}, 2);
  EXPECT_DOUBLE_EQ(both[0], 10 + 5 * 0.5);
}

TEST(SearchMemory, MicrobatchesInFlight) {
  EXPECT_THAT(microbatches_in_flight(schedule_of("1f1b", 3, 4)), ElementsAre(3, 2, 1));
  EXPECT_THAT(microbatches_in_flight(schedule_of("gpipe", 2, 4)), ElementsAre(4, 4));
}

TEST(SearchMemory, FollowsTheNumberOfStages) {
  const std::vector<model::StageMemory> divided =
      with_stages(std::vector<model::StageMemory>{{10, 1, 0.25, {}}, {20, 2, 0.5, {}}}, 4);
  EXPECT_DOUBLE_EQ(divided[1].weights_gib, 5);
  EXPECT_DOUBLE_EQ(divided[2].activations_gib, 1);
  EXPECT_DOUBLE_EQ(divided[3].checkpoint_gib, 0.5);
  const std::vector<model::StageMemory> merged = with_stages(divided, 2);
  EXPECT_DOUBLE_EQ(merged[1].weights_gib, 20);
  EXPECT_DOUBLE_EQ(merged[1].activations_gib, 2);
  EXPECT_DOUBLE_EQ(merged[1].checkpoint_gib, 0.5);
}

TEST(SearchMemory, ChunksShareTheInputsOfTheirLayers) {
  const std::vector<model::StageMemory> divided = with_stages(std::vector<model::StageMemory>{{10, 1, 0.3, 0.05}}, 3);
  EXPECT_DOUBLE_EQ(divided[2].checkpoint_gib, 0.1);
  EXPECT_EQ(divided[2].recompute_gib, 0.05);
  EXPECT_DOUBLE_EQ(with_stages(divided, 1)[0].checkpoint_gib, 0.3);
}

TEST(SearchStages, DivideAndMergeAgain) {
  const model::Profile profile = testing::two_clock_profile();
  const model::Profile divided = with_stages(profile, 6).value();
  ASSERT_TRUE(divided.validate().ok());
  ASSERT_EQ(divided.num_stages(), 6);
  EXPECT_DOUBLE_EQ(divided.find(3, "forward")->measurements[1].time.value(),
                   profile.find(1, "forward")->measurements[1].time.value() / 3);
  const model::Profile again = with_stages(divided, 2).value();
  for (const model::ProfileEntry& entry : profile.entries) {
    const model::ProfileEntry* same = again.find(entry.stage, entry.instruction);
    ASSERT_NE(same, nullptr);
    ASSERT_EQ(same->measurements.size(), entry.measurements.size());
    EXPECT_NEAR(same->measurements[0].time.value(), entry.measurements[0].time.value(), 1e-12);
    EXPECT_NEAR(same->measurements[0].energy.value(), entry.measurements[0].energy.value(), 1e-12);
  }
}

TEST(SearchStages, TheBatchIsLoadedOnce) {
  model::Profile profile = testing::two_clock_profile();
  for (const int stage : {0, 1}) {
    profile.entries.push_back({stage, "load", {{Megahertz(0), Seconds(0.01), Joules(1), {}, {}, 1}}});
  }
  std::ranges::stable_sort(profile.entries, {}, &model::ProfileEntry::stage);
  const model::Profile divided = with_stages(profile, 4).value();
  EXPECT_NE(divided.find(0, "load"), nullptr);
  EXPECT_EQ(divided.find(1, "load"), nullptr);
  EXPECT_EQ(divided.find(2, "load"), nullptr);
  ASSERT_NE(divided.find(3, "load"), nullptr);
  EXPECT_EQ(divided.find(3, "load")->measurements[0].time, Seconds(0.01));
}

TEST(SearchStages, RefusesIndivisibleStages) {
  const auto five = with_stages(testing::two_clock_profile(), 5);
  ASSERT_FALSE(five.ok());
  EXPECT_THAT(five.error().message, HasSubstr("5 stages are needed and 2 were measured"));
  model::Profile profile = testing::two_clock_profile();
  profile.entries[1].measurements = {{Megahertz(1300), Seconds(0.1), Joules(10), {}, {}, 1}};
  const auto merged = with_stages(profile, 1);
  ASSERT_FALSE(merged.ok());
  EXPECT_THAT(merged.error().message, HasSubstr("backward of stages 0 to 1 shares no clock"));
}

TEST(SearchRecomputation, AddsTheForwardAndTakesItAway) {
  const model::Profile profile = testing::uniform_profile(2, {{"forward", 1}, {"backward", 2}});
  const model::Profile one = with_recomputation(profile, {true, false}).value();
  EXPECT_EQ(one.find(0, "backward")->measurements[0].time, Seconds(3));
  EXPECT_EQ(one.find(0, "backward")->measurements[0].energy, Joules(30));
  EXPECT_EQ(one.find(1, "backward")->measurements[0].time, Seconds(2));
  const auto back = without_recomputation(with_recomputation(profile, {true, true}).value());
  EXPECT_EQ(back.value().find(0, "backward")->measurements[0].time, Seconds(2));
  const auto twice = without_recomputation(testing::uniform_profile(1, {{"forward", 2}, {"backward", 2}}));
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message, HasSubstr("this profile was measured without it"));
}

SearchedJob job_of(model::Profile profile, int microbatches = 4) {
  SearchedJob job;
  job.profile = std::move(profile);
  job.microbatches = microbatches;
  job.costs.blocking_power = Watts(1);
  return job;
}

TEST(SearchConfiguration, NamesTheAssumptionOfASplitBackward) {
  SearchedJob job = job_of(testing::uniform_profile(2, {{"forward", 1}, {"backward", 3}}));
  const Configuration assumed = configure(job, {"zero-bubble", 1, Recomputing::as_measured}).value();
  EXPECT_THAT(assumed.assumptions, Contains(HasSubstr("50 % of its time")));
  EXPECT_THAT(assumed.assumptions, Contains(HasSubstr("assumed: measure them")));
  EXPECT_TRUE(assumed.is_derived);
  // Measured with recomputation, the input gradient recomputes: 1 + half of 2.
  job.measured_with = MeasuredWith::recomputation;
  const Configuration known = configure(job, {"zero-bubble", 1, Recomputing::as_measured}).value();
  for (const model::ComputationType& type : known.dag.types) {
    if (type.instruction == "input_gradient") { EXPECT_EQ(type.options[0].time, Seconds(2)); }
    if (type.instruction == "weight_gradient") { EXPECT_EQ(type.options[0].time, Seconds(1)); }
  }
  // The search does not derive values that the profile measures.
  const Configuration measured =
      configure(job_of(testing::profile_for_any_schedule(2)), {"zero-bubble", 1, Recomputing::as_measured}).value();
  EXPECT_THAT(measured.assumptions, IsEmpty());
  EXPECT_FALSE(measured.is_derived);
}

TEST(SearchConfiguration, WithoutALimitOnlyAStageWithOneMicrobatchStopsRecomputing) {
  SearchedJob job = job_of(testing::uniform_profile(3, {{"forward", 1}, {"backward", 3}}));
  job.measured_with = MeasuredWith::recomputation;
  EXPECT_THAT(configure(job, {"1f1b", 1, Recomputing::best}).value().recomputes, ElementsAre(true, true, false));
  EXPECT_THAT(configure(job, {"gpipe", 1, Recomputing::best}).value().recomputes, ElementsAre(true, true, true));
  // Two stages per rank: no stage has a rank alone.
  EXPECT_THAT(configure(job, {"zbv", 2, Recomputing::best}).value().recomputes, Contains(true).Times(6));
}

TEST(SearchConfiguration, WithALimitStagesThatFitStopRecomputing) {
  SearchedJob job = job_of(testing::uniform_profile(3, {{"forward", 1}, {"backward", 3}}));
  job.measured_with = MeasuredWith::recomputation;
  job.memory.assign(3, {10, 1, 0.25, {}});
  for (const auto& [limit, recomputes] : std::vector<std::pair<double, std::vector<bool>>>{
           {13, {false, false, false}}, {12.5, {true, false, false}}, {11.75, {true, true, false}}}) {
    job.memory_limit_gib = limit;
    const Configuration best = configure(job, {"1f1b", 1, Recomputing::best}).value();
    EXPECT_EQ(best.recomputes, recomputes) << limit;
    EXPECT_LE(std::ranges::max(best.memory_gib), limit);
  }
  job.memory_limit_gib = 11.5;
  const auto none = configure(job, {"1f1b", 1, Recomputing::best});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("rank 0 needs 11.75 GiB; the limit is 11.5 GiB"));
}

TEST(SearchConfiguration, RefusesUnknownNames) {
  const SearchedJob job = job_of(testing::uniform_profile(2, {{"forward", 1}, {"backward", 3}}));
  for (const ConfigurationChoice& choice :
       {ConfigurationChoice{"1f1b", 1, Recomputing::best}, ConfigurationChoice{"early-recompute-1f1b", 1}}) {
    const auto unknown = configure(job, choice);
    ASSERT_FALSE(unknown.ok());
    EXPECT_THAT(unknown.error().message, HasSubstr("--measured-with"));
  }
  SearchedJob kept = job;
  kept.measured_with = MeasuredWith::no_recomputation;
  const auto early = configure(kept, {"early-recompute-1f1b", 1, Recomputing::as_measured});
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().message, HasSubstr("no stage recomputes"));
}

model::Profile scaled(model::Profile profile, double factor) {
  for (model::ProfileEntry& entry : profile.entries) {
    for (model::Measurement& m : entry.measurements) m.time = m.time * factor, m.energy = m.energy * factor;
  }
  return profile;
}

TEST(SearchConfiguration, DrawsBecomeWhatTheProfileBecomes) {
  // The last stage takes longer: a head.
  model::Profile profile = testing::uniform_profile(3, {{"forward", 1}, {"backward", 3}});
  for (model::ProfileEntry& entry : profile.entries) {
    if (entry.stage == 2) entry.measurements[0].time = entry.measurements[0].time * 1.25;
    if (entry.stage == 2) entry.measurements[0].energy = entry.measurements[0].energy * 1.25;
  }
  SearchedJob job = job_of(profile);
  job.measured_with = MeasuredWith::recomputation;
  job.draws = {scaled(profile, 1.1), scaled(profile, 0.9)};
  const auto expect_scaled = [](const Configuration& c) {
    ASSERT_EQ(c.drawn.size(), 2u);
    for (std::size_t t = 0; t < c.dag.types.size(); ++t) {
      EXPECT_EQ(c.drawn[0][t].instruction, c.dag.types[t].instruction);
      EXPECT_NEAR(c.drawn[0][t].options[0].time / c.dag.types[t].options[0].time, 1.1, 1e-9);
      EXPECT_NEAR(c.drawn[1][t].options[0].energy / c.dag.types[t].options[0].energy, 0.9, 1e-9);
    }
  };
  expect_scaled(configure(job, {"zero-bubble", 1, Recomputing::best}).value());
  expect_scaled(configure(job, {"zbv", 2, Recomputing::best}).value());
  const auto moved = with_best_partition(job, {"1f1b", 1, Recomputing::best}, {4, 4, 4}, Seconds(1000));
  ASSERT_TRUE(moved.ok()) << moved.error().message;
  expect_scaled(configure(moved->job, {"1f1b", 1, Recomputing::best}).value());
  // A draw whose backward is shorter than its forward cannot recompute.
  job.draws[0].entries[1].measurements[0].time = Seconds(0.5);
  const auto impossible = configure(job, {"1f1b", 1, Recomputing::none});
  ASSERT_FALSE(impossible.ok());
  EXPECT_THAT(impossible.error().message, HasSubstr("not for every profile that the noise leaves possible"));
}

/// A layer takes 1 GiB, the embedding on the first stage 4 GiB, nothing else any.
LayerMemory weights_only(std::vector<int> layers) {
  return {std::move(layers), [](const std::vector<int>& each) -> Result<std::vector<model::StageMemory>> {
            std::vector<model::StageMemory> memory;
            for (const int count : each) memory.push_back({static_cast<double>(count), 0, 0, {}});
            memory.front().weights_gib += 4;
            return memory;
          }};
}

TEST(SearchConfiguration, ChunksTakeTheMemoryOfTheirLayers) {
  SearchedJob job = job_of(testing::uniform_profile(2, {{"forward", 1}, {"backward", 3}}));
  ASSERT_TRUE(set_memory(weights_only({2, 2}), job).ok());
  // Rank 0 has the first and the last chunk, a layer each; by equal shares both ranks would have 4 GiB.
  const Configuration known = configure(job, {"zbv", 2}).value();
  EXPECT_THAT(known.memory_gib, ElementsAre(6, 2));
  EXPECT_THAT(known.layers, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(configure(job, {"1f1b", 1}).value().memory_gib, ElementsAre(6, 2));
  ASSERT_TRUE(set_memory(weights_only({3, 1}), job).ok());
  const Configuration uneven = configure(job, {"zbv", 2}).value();
  EXPECT_THAT(uneven.memory_gib, ElementsAre(4, 4));
  EXPECT_THAT(uneven.assumptions, Contains("chunks of a stage take equal shares of its memory"));
}

TEST(SearchStages, DivideAndMergeLayers) {
  EXPECT_EQ(with_stages(std::vector<int>{4, 2}, 4), std::vector<int>({2, 2, 1, 1}));
  EXPECT_EQ(with_stages(std::vector<int>{2, 2, 1, 1}, 2), std::vector<int>({4, 2}));
  EXPECT_EQ(with_stages(std::vector<int>{4, 3}, 4), std::nullopt);
}

TEST(SearchPartition, LayersAddUpToTheirStages) {
  const model::Profile profile = testing::uniform_profile(3, {{"forward", 1}, {"backward", 2}});
  const std::vector<model::Layer> equal = layers_of(profile, {4, 4, 4}).value();
  ASSERT_EQ(equal.size(), 12u);
  EXPECT_EQ(equal[5].costs[0].forward, Seconds(0.25));
  // The last stage has two layers, which take half of it: the rest is the head.
  const std::vector<model::Layer> with_head = layers_of(profile, {4, 4, 2}).value();
  ASSERT_EQ(with_head.size(), 11u);
  EXPECT_EQ(with_head.back().kind, model::LayerKind::head);
  EXPECT_DOUBLE_EQ(with_head.back().costs[0].backward.value(), 1);
  const auto refused = layers_of(profile, {4, 4});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("2 numbers; the profile has 3 stages"));
}

TEST(SearchPartition, MovesALayerAwayFromTheSlowStage) {
  // Stage 0 has three of the four layers.
  model::Profile profile = testing::uniform_profile(2, {{"forward", 3}, {"backward", 6}});
  for (model::ProfileEntry& entry : profile.entries) {
    if (entry.stage == 1) {
      entry.measurements[0].time = entry.measurements[0].time / 3;
      entry.measurements[0].energy = entry.measurements[0].energy / 3;
    }
  }
  const SearchedJob job = job_of(profile);
  const Repartitioned best = with_best_partition(job, {}, {3, 1}, Seconds(1000)).value();
  EXPECT_TRUE(best.all_tried);
  // The deadline allows any; with one clock the fastest waits least, and 2 + 2 is the fastest.
  const auto fast = with_best_partition(job, {}, {3, 1}, Seconds(31));
  ASSERT_TRUE(fast.ok()) << fast.error().message;
  EXPECT_EQ(text_of(fast->partition), "0 2 4");
  const Configuration moved = configure(fast->job, {}).value();
  EXPECT_EQ(moved.name, "1f1b+partition-best");
  EXPECT_TRUE(moved.is_derived);
  const auto none = with_best_partition(job, {}, {3, 1}, Seconds(1));
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("no partition at all finishes in 1 s"));
}

TEST(SearchPartition, StaysWithinTheMemory) {
  // Stage 1 has three of the four layers, and the embedding makes stage 0 full: 2 + 2 would be the fastest.
  model::Profile profile = testing::uniform_profile(2, {{"forward", 1}, {"backward", 2}});
  for (model::ProfileEntry& entry : profile.entries) {
    if (entry.stage == 1) {
      entry.measurements[0].time = entry.measurements[0].time * 3;
      entry.measurements[0].energy = entry.measurements[0].energy * 3;
    }
  }
  SearchedJob job = job_of(profile);
  ASSERT_TRUE(set_memory(weights_only({1, 3}), job).ok());
  const auto partition = [&](double limit_gib) {
    job.memory_limit_gib = limit_gib;
    const auto best = with_best_partition(job, {}, {1, 3}, Seconds(1000));
    return best ? text_of(best->partition) : best.error().message;
  };
  EXPECT_EQ(partition(6), "0 2 4");
  EXPECT_EQ(partition(5.5), "0 1 4");
  EXPECT_THAT(partition(4.5),
              HasSubstr("no partition is possible; one of them: 1f1b: rank 0 needs 7 GiB; the limit is 4.5 GiB"));
  job.layer_memory.reset();
  EXPECT_THAT(partition(6), HasSubstr("the memory of other partitions is not known"));
}

model::Frontier frontier_of(const std::vector<std::pair<double, double>>& time_and_effective, Watts waiting) {
  model::Frontier frontier;
  for (const auto& [time, effective] : time_and_effective) {
    model::FrontierPoint point;
    point.time = Seconds(time), point.effective_energy = Joules(effective);
    point.energy = point.effective_energy + waiting * point.time;
    frontier.points.push_back(point);
    frontier.bound.vertices.insert(frontier.bound.vertices.begin(), {point.time, point.effective_energy});
  }
  return frontier;
}

std::vector<checker::UnionClaim> claims_of(const UnionFrontier& all) {
  std::vector<checker::UnionClaim> claims;
  for (std::size_t i = 0; i < all.origins.size(); ++i) {
    const model::FrontierPoint& p = all.frontier.points[i];
    claims.push_back(
        {all.origins[i].configuration, all.origins[i].point, p.time, p.energy, p.effective_energy, p.bound});
  }
  return claims;
}

TEST(SearchUnion, TakesTheBestConfiguration) {
  const Watts waiting(2);
  const model::Frontier a = frontier_of({{10, 50}, {8, 60}, {6, 100}}, waiting);
  const model::Frontier b = frontier_of({{9, 55}, {8, 60}, {5, 120}}, waiting);
  const UnionFrontier all = union_of({&a, &b}, waiting);
  std::vector<int> configurations, points;
  for (const Origin& origin : all.origins)
    configurations.push_back(origin.configuration), points.push_back(origin.point);
  EXPECT_THAT(configurations, ElementsAre(0, 1, 0, 0, 1));  // of equals the first
  EXPECT_THAT(points, ElementsAre(0, 0, 1, 2, 2));
  // At 9 s a's curve is at 55, as b's; at 6 s b's is at 100, as a's; at 5 s only b's exists.
  EXPECT_THAT(all.frontier.points[4].bound, Joules(130));
  const std::vector<WinningSpan> spans = winning_spans(all);
  ASSERT_EQ(spans.size(), 4);
  EXPECT_EQ(spans[0].from, Seconds(5));
  EXPECT_EQ(spans[0].configuration, 1);
  EXPECT_EQ(spans[3].from, Seconds(10));
  EXPECT_THAT(checker::verify_union({&a, &b}, waiting, claims_of(all)), IsEmpty());
}

TEST(SearchUnion, WithoutAStragglerNoWaitingIsCharged) {
  // b's frontier ends at 5 s with 42 J; while it waits for 10 s it would need 52 J, a needs 50 J.
  const Watts waiting(2);
  const model::Frontier a = frontier_of({{10, 30}}, waiting), b = frontier_of({{5, 32}}, waiting);
  const UnionFrontier all = union_of({&a, &b}, waiting);
  ASSERT_EQ(all.origins.size(), 2u);
  EXPECT_EQ(cheapest_in_time(all.frontier, Seconds(10)), 1);
  EXPECT_EQ(cheapest_in_time(all.frontier, Seconds(5 * (1 - 1e-10))), 1);
  EXPECT_EQ(cheapest_in_time(all.frontier, Seconds(4)), std::nullopt);
  EXPECT_EQ(least_energy_in_time({&a, &b}, waiting, Seconds(10)), Joules(42));
  EXPECT_EQ(least_energy_in_time({&a}, waiting, Seconds(10)), Joules(50));
}

TEST(SearchUnion, TheCheckerSeesEveryKindOfLie) {
  const Watts waiting(2);
  const model::Frontier a = frontier_of({{10, 50}, {8, 60}, {6, 100}}, waiting);
  const model::Frontier b = frontier_of({{9, 55}, {7, 70}, {5, 120}}, waiting);
  const std::vector<checker::UnionClaim> honest = claims_of(union_of({&a, &b}, waiting));
  const auto findings = [&](const auto& lie) {
    std::vector<checker::UnionClaim> claims = honest;
    lie(claims);
    const std::vector<std::string> found = checker::verify_union({&a, &b}, waiting, claims);
    return found.empty() ? "" : found.front();
  };
  EXPECT_EQ(findings([](auto&) {}), "");
  EXPECT_THAT(findings([](auto& c) { c[1].energy += Joules(1); }), HasSubstr("energy_j"));
  EXPECT_THAT(findings([](auto& c) { c[1].bound -= Joules(1); }), HasSubstr("bound_j"));
  EXPECT_THAT(findings([](auto& c) { c[1].point = 1; }), HasSubstr("the configuration's point has"));
  EXPECT_THAT(findings([](auto& c) { c[1].configuration = 7; }), HasSubstr("has no point"));
  EXPECT_THAT(findings([](auto& c) { std::swap(c[0], c[1]); }), HasSubstr("is redundant"));
  EXPECT_THAT(findings([](auto& c) { c.erase(c.begin() + 2); }), HasSubstr("is better than all of its points"));
}

}  // namespace
}  // namespace perseus::search
