// Balanced partitions: hand-worked cases, ties, rejected input, and enumeration of all partitions of small models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "oracles/dice.h"
#include "planning/partitioner/balance.h"
#include "planning/partitioner/megatron_layout.h"

namespace perseus::partitioner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Seconds> layers_of(const std::vector<double>& values) {
  std::vector<Seconds> layers;
  for (const double value : values) layers.emplace_back(value);
  return layers;
}

/// `count` layers of one second and a head.
std::vector<Seconds> transformer(int count, double head) {
  auto layers = layers_of(std::vector<double>(count, 1.0));
  layers.emplace_back(head);
  return layers;
}

std::vector<int> cut(const std::vector<Seconds>& layers, int stages, Balance objective = Balance::imbalance) {
  const auto partition = balance_layers(layers, stages, objective);
  EXPECT_TRUE(partition.ok()) << partition.error().message;
  return partition.ok() ? partition->boundaries : std::vector<int>{};
}

TEST(BalanceLayers, PublishedShapes) {
  // A40 rows of the paper's table, with the head times h that its ratios imply (1.15 = (6 + h) / 6).
  EXPECT_THAT(cut(transformer(24, 0.9), 4), ElementsAre(0, 6, 12, 18, 25));
  EXPECT_THAT(cut(transformer(24, 0.9), 8), ElementsAre(0, 3, 6, 9, 12, 15, 18, 21, 25));
  EXPECT_THAT(cut(transformer(30, 3.5), 4), ElementsAre(0, 9, 17, 25, 31));
  EXPECT_THAT(cut(transformer(30, 3.5), 8), ElementsAre(0, 5, 9, 13, 17, 21, 25, 29, 31));
  EXPECT_NEAR(imbalance_ratio(transformer(24, 0.9), {{0, 6, 12, 18, 25}}), 1.15, 1e-12);
  EXPECT_NEAR(imbalance_ratio(transformer(30, 3.5), {{0, 9, 17, 25, 31}}), 1.125, 1e-12);
}

TEST(BalanceLayers, RatioAndLongestStageDisagree) {
  const auto layers = layers_of({3, 5, 2, 3, 4});
  EXPECT_THAT(cut(layers, 3, Balance::imbalance), ElementsAre(0, 2, 4, 5));      // 8 5 4: ratio 2
  EXPECT_THAT(cut(layers, 3, Balance::longest_stage), ElementsAre(0, 1, 3, 5));  // 3 7 7: ratio 7/3
}

TEST(BalanceLayers, TiesGoToTheFront) {
  EXPECT_THAT(cut(transformer(24, 1.5), 4), ElementsAre(0, 7, 13, 19, 25));
  EXPECT_THAT(cut(layers_of({1, 1, 1}), 2), ElementsAre(0, 2, 3));
  // 0.1 + 0.2 counts as 0.3: otherwise the second cut would win.
  EXPECT_THAT(cut(layers_of({0.1, 0.2, 0.3, 0.3}), 3), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(cut(layers_of({0.3, 0.1, 0.2, 0.2, 0.1}), 3), ElementsAre(0, 1, 3, 5));
}

TEST(BalanceLayers, Ends) {
  EXPECT_THAT(cut(layers_of({5}), 1), ElementsAre(0, 1));
  EXPECT_THAT(cut(layers_of({5, 1e-9, 3}), 1), ElementsAre(0, 3));
  EXPECT_THAT(cut(layers_of({5, 1e-9, 3}), 3), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cut(layers_of({1e-12, 1e6}), 2), ElementsAre(0, 1, 2));
}

TEST(BalanceLayers, RefusesLayersThatCannotBeSplit) {
  const auto message = [](const std::vector<double>& layers, int stages) {
    const auto partition = balance_layers(layers_of(layers), stages);
    return partition.ok() ? std::string("(accepted)") : partition.error().message;
  };
  EXPECT_THAT(message({}, 1), HasSubstr("no layers"));
  EXPECT_THAT(message({1, 2}, 3), HasSubstr("3 stages; 2 layers can be cut into 1 to 2"));
  EXPECT_THAT(message({1, 2}, 0), HasSubstr("0 stages"));
  EXPECT_THAT(message({1, -2}, 1), HasSubstr("layer 1: latency -2 s"));
  EXPECT_THAT(message({0, 2}, 1), HasSubstr("layer 0: latency 0 s"));
  EXPECT_THAT(message({1, std::nan("")}, 1), HasSubstr("layer 1"));
  EXPECT_THAT(message({std::numeric_limits<double>::infinity()}, 1), HasSubstr("layer 0"));
}

/// Whole numbers, so that ties are certain: (longest, shortest) and boundaries of the best of all partitions.
std::vector<int> try_all(const std::vector<int>& layers, int stages, Balance objective) {
  const int num_layers = static_cast<int>(layers.size());
  std::vector<int> best;
  long best_longest = 0;
  long best_shortest = 0;
  for (unsigned cuts = 0; cuts < 1U << (num_layers - 1); ++cuts) {
    if (__builtin_popcount(cuts) != stages - 1) continue;
    std::vector<int> boundaries{0};
    std::vector<long> sums{0};
    for (int i = 0; i < num_layers; ++i) {
      sums.back() += layers[i];
      if ((cuts >> i & 1U) != 0U) {
        boundaries.push_back(i + 1);
        sums.push_back(0);
      }
    }
    boundaries.push_back(num_layers);
    const auto [shortest, longest] = std::ranges::minmax(sums);
    const long by_ratio = longest * best_shortest - best_longest * shortest;
    const long by_longest = longest - best_longest;
    const auto key =
        objective == Balance::imbalance ? std::pair(by_ratio, by_longest) : std::pair(by_longest, by_ratio);
    if (best.empty() || key < std::pair(0L, 0L) || (key == std::pair(0L, 0L) && boundaries > best)) {
      best = boundaries;
      best_longest = longest;
      best_shortest = shortest;
    }
  }
  return best;
}

TEST(BalanceLayers, NoPartitionIsBetter) {
  testing::SeededDice dice(5);
  for (int round = 0; round < 3000; ++round) {
    const int num_layers = dice.roll(1, 11);
    const int longest = dice.one_in(3) ? 3 : dice.roll(1, 60);
    std::vector<int> layers(num_layers);
    for (int& layer : layers) layer = dice.roll(1, longest) + (dice.one_in(8) ? 40 : 0);
    const int stages = dice.roll(1, num_layers);
    std::vector<Seconds> seconds;
    for (const int layer : layers) seconds.emplace_back(layer / 1000.0);
    for (const Balance objective : {Balance::imbalance, Balance::longest_stage}) {
      ASSERT_EQ(cut(seconds, stages, objective), try_all(layers, stages, objective))
          << ::testing::PrintToString(layers) << " into " << stages;
    }
  }
}

TEST(BalanceLayers, SameWhenScaled) {
  testing::SeededDice dice(6);
  for (int round = 0; round < 300; ++round) {
    std::vector<Seconds> layers(dice.roll(2, 60));
    for (Seconds& layer : layers) layer = Seconds(dice.roll(1, 500) * 1e-3);
    const int stages = dice.roll(1, static_cast<int>(layers.size()));
    const auto expected = cut(layers, stages);
    for (const double factor : {1e-6, 0.125, 10.0, 1024.0}) {
      std::vector<Seconds> scaled = layers;
      for (Seconds& layer : scaled) layer = layer * factor;
      ASSERT_EQ(cut(scaled, stages), expected) << factor;
    }
  }
}

std::string layout(const std::string& letters, const std::vector<int>& boundaries) {
  std::vector<model::Layer> layers;
  for (const char c : letters) {
    const auto kind = c == 'E'   ? model::LayerKind::embedding
                      : c == 't' ? model::LayerKind::transformer
                      : c == 'm' ? model::LayerKind::mtp
                      : c == 'L' ? model::LayerKind::head
                                 : model::LayerKind::other;
    layers.push_back({std::string(1, c), kind, {{}}});
  }
  const auto text = megatron_layout(layers, {boundaries});
  return text.ok() ? *text : text.error().message;
}

TEST(MegatronLayout, WritesTheStages) {
  EXPECT_EQ(layout("tttttttttttttttttttttttttL", {0, 6, 12, 19, 26}), "Et*6|t*6|t*7|t*6L");
  EXPECT_EQ(layout("EttttttL", {0, 3, 4, 5, 6, 7, 8}), "Et*2|(t|)*4L");
  EXPECT_EQ(layout("tt", {0, 1, 2}), "Et|tL");
  EXPECT_EQ(layout("ttt", {0, 3}), "Et*3L");
  EXPECT_EQ(layout("tttmL", {0, 1, 2, 3, 5}), "Et|t|t|mL");
  EXPECT_EQ(layout("ttttmmL", {0, 2, 4, 7}), "Et*2|t*2|m*2L");
}

TEST(MegatronLayout, RefusesLayoutsThatMegatronRefuses) {
  EXPECT_THAT(layout("txt", {0, 1, 3}), HasSubstr("layer 1 ('x')"));
  EXPECT_THAT(layout("tEt", {0, 1, 3}), HasSubstr("not the first"));
  EXPECT_THAT(layout("tLt", {0, 1, 3}), HasSubstr("not the last"));
  EXPECT_THAT(layout("tmL", {0, 3}), HasSubstr("first stage"));
  EXPECT_THAT(layout("tmmL", {0, 1, 2, 4}), HasSubstr("mtp layers are in stages 1 and 2"));
  EXPECT_THAT(layout("tmtL", {0, 1, 4}), HasSubstr("after an mtp layer"));
}

}  // namespace
}  // namespace perseus::partitioner
