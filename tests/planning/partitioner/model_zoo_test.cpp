// The model zoo's shapes against the models' published parameter counts, and the laws of the roofline model.
#include "planning/partitioner/model_zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "planning/partitioner/gpu_model.h"
#include "planning/partitioner/least_energy.h"
#include "planning/partitioner/stage_profile.h"

namespace perseus::partitioner {
namespace {

using ::testing::HasSubstr;

std::vector<LayerWork> work_of(std::string_view name, const Workload& workload) {
  auto work = zoo_layers(name, workload);
  EXPECT_TRUE(work.ok()) << work.error().message;
  return *std::move(work);
}

std::vector<LayerWork> work_of(std::string_view name) { return work_of(name, zoo_entry(name)->workload); }

double flops_of(const std::vector<Kernel>& kernels) {
  return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                         [](double sum, const Kernel& k) { return sum + k.flops; });
}

TEST(ModelZoo, ParametersAsPublished) {
  const std::vector<std::pair<const char*, double>> billions = {
      {"gpt3-1b", 1.32},      {"gpt3-3b", 2.65},       {"gpt3-7b", 6.66},        {"gpt3-13b", 12.85},
      {"gpt3-175b", 174.6},   {"bloom-3b", 3.0},       {"bloom-7b", 7.07},       {"bloom-176b", 176.2},
      {"bert-0.1b", 0.11},    {"bert-0.3b", 0.335},    {"t5-0.2b", 0.223},       {"t5-0.7b", 0.738},
      {"t5-2.9b", 2.85},      {"llama3-8b", 8.03},     {"llama3-70b", 70.55},    {"llama3-405b", 405.85},
      {"qwen3-0.6b", 0.596},  {"qwen3-1.7b", 1.72},    {"qwen3-4b", 4.02},       {"qwen3-8b", 8.19},
      {"qwen3-14b", 14.77},   {"qwen3-32b", 32.76},    {"qwen3-30b-a3b", 30.53}, {"qwen3-235b-a22b", 235.1},
      {"mixtral-8x7b", 46.7}, {"mixtral-8x22b", 140.6}};
  for (const auto& [name, expected] : billions) {
    double parameters = 0;
    for (const LayerWork& layer : work_of(name)) parameters += layer.parameters;
    EXPECT_NEAR(parameters / 1e9, expected, 0.012 * expected) << name;
  }
  // 671 billion parameters without the multi-token prediction layer.
  double parameters = 0;
  for (const LayerWork& layer : work_of("deepseek-v3")) {
    if (layer.kind != model::LayerKind::mtp) parameters += layer.parameters;
  }
  EXPECT_NEAR(parameters / 1e9, 671, 5);
}

/// GPT-3 175B as in the activation paper: sequence 2048, one sequence a microbatch; s b h is 24 MiB.
std::vector<model::StageMemory> gpt3_memory(int tensor_parallel, Precision precision = Precision::bf16) {
  Workload workload = zoo_entry("gpt3-175b")->workload;
  workload.microbatch_size = 1;
  workload.tensor_parallel = tensor_parallel;
  workload.precision = precision;
  auto memory = zoo_memory("gpt3-175b", workload, 8, {12});
  EXPECT_TRUE(memory.ok()) << memory.error().message;
  return *std::move(memory);
}

TEST(ModelZoo, MemoryAsByHand) {
  constexpr double sbh = 24.0 / 1024;  // GiB
  // 34 + 5 a s / h, with a s / h = 96 * 2048 / 12288 = 16; divided among 8: 10 + 24 / 8 + 80 / 8.
  EXPECT_NEAR(gpt3_memory(1)[1].activations_gib, 12 * 114 * sbh, 1e-9);
  const std::vector<model::StageMemory> eight = gpt3_memory(8);
  EXPECT_NEAR(eight[1].activations_gib, 12 * 23 * sbh, 1e-9);
  EXPECT_NEAR(eight[1].checkpoint_gib, 12 * 2 * sbh, 1e-9);
  EXPECT_NEAR(*eight[1].recompute_gib, 23 * sbh, 1e-9);
  // 12 h^2 parameters a layer, 16 bytes each, an eighth of them: 3.375 GiB.
  EXPECT_NEAR(eight[1].weights_gib, 12 * 3.375, 1e-9);
  // The embedding's dropout mask; 4 s b h (1 + v / h), the logits divided among 8.
  EXPECT_NEAR(eight[0].activations_gib - eight[1].activations_gib, sbh, 1e-9);
  EXPECT_NEAR(eight[7].activations_gib - eight[1].activations_gib, 4 * sbh * (1 + 50257.0 / 12288 / 8), 1e-9);
  // Embedding and positions on the first stage, a copy of the embedding on the last.
  EXPECT_NEAR(eight[0].weights_gib - eight[1].weights_gib, 2 * (50257.0 + 2048) * 12288 / 0x1p30, 1e-9);
  EXPECT_NEAR(eight[7].weights_gib - eight[1].weights_gib, 2 * 50257.0 * 12288 / 0x1p30, 1e-9);
  // Elements of four bytes: all but the masks doubles, 66 + 9 a s / h.
  EXPECT_NEAR(gpt3_memory(1, Precision::tf32)[1].activations_gib, 12 * (66 + 9 * 16) * sbh, 1e-9);
}

TEST(ModelZoo, MemoryThatIsNotKnown) {
  const Workload workload = zoo_entry("llama3-8b")->workload;
  const auto gated = zoo_memory("llama3-8b", workload, 4, {8});
  ASSERT_FALSE(gated);
  EXPECT_THAT(gated.error().message, HasSubstr("the memory of llama3-8b is not known; allowed: gpt3-1b, "));
  const auto uneven = zoo_memory("gpt3-1b", zoo_entry("gpt3-1b")->workload, 4, {6, 6, 6, 5});
  ASSERT_FALSE(uneven);
  EXPECT_THAT(uneven.error().message, HasSubstr("23 layers on 4 stages; gpt3-1b has 24 layers, the profile 4 stages"));
}

TEST(ModelZoo, LayersAsThePaperCountsThem) {
  EXPECT_EQ(work_of("gpt3-1b").size(), 25);
  EXPECT_EQ(work_of("bloom-176b").size(), 71);
  EXPECT_EQ(work_of("bert-0.1b").size(), 13);
  EXPECT_EQ(work_of("t5-0.7b").size(), 49);
  EXPECT_EQ(work_of("wide-resnet50").size(), 18);
  EXPECT_EQ(work_of("wide-resnet101").size(), 35);
  EXPECT_EQ(work_of("deepseek-v3").size(), 63);
}

TEST(ModelZoo, FlopsByHand) {
  // Per token: 24 d^2 for the matrices of a layer, 4 s d for attention, 2 d V for the head.
  Workload workload;
  workload.sequence_length = 2048;
  const auto work = work_of("gpt3-175b", workload);
  const double d = 12288;
  EXPECT_NEAR(flops_of(work[1].forward), 2048 * (24 * d * d + 4 * 2048 * d), 1e6);
  EXPECT_NEAR(flops_of(work.back().forward), 2048 * 2 * d * 50257, 1e6);
  EXPECT_NEAR(flops_of(work[1].backward), 2 * flops_of(work[1].forward), 1e6);
  workload.recompute = true;
  EXPECT_NEAR(flops_of(work_of("gpt3-175b", workload)[1].backward), 3 * flops_of(work[1].forward), 1e6);
  // Wide-ResNet50 of width 1 is 4.1 GFLOPs (multiply and add) an image; the published 8-wide one is counted here.
  workload = {1, 224};
  double flops = 0;
  for (const LayerWork& layer : work_of("wide-resnet50", workload)) flops += flops_of(layer.forward);
  EXPECT_GT(flops, 100e9);
  EXPECT_LT(flops, 400e9);
}

TEST(ModelZoo, ExpertsExchangeTokensByHand) {
  const auto sent = [](const std::vector<Kernel>& kernels) {
    double network = 0, link = 0;
    for (const Kernel& kernel : kernels) network += kernel.network_bytes, link += kernel.link_bytes;
    return std::pair(network, link);
  };
  // 64 GPUs, 8 nodes: a token's vector goes to 4 nodes, of which an eighth is its own, and to 8 GPUs in them, and back.
  const auto deepseek = work_of("deepseek-v3");
  const double vectors = 2.0 * 4096 * 7168 * 2;
  EXPECT_EQ(sent(deepseek[2].forward), std::pair(0.0, 0.0)) << "dense";
  EXPECT_NEAR(sent(deepseek[3].forward).first, vectors * 4 * 7 / 8, 1);
  EXPECT_NEAR(sent(deepseek[3].forward).second, vectors * 8 * 7 / 8, 1);
  EXPECT_EQ(sent(deepseek[3].backward), sent(deepseek[3].forward));
  // 8 GPUs of one node: no network.
  const auto mixtral = work_of("mixtral-8x7b");
  EXPECT_EQ(sent(mixtral[3].forward).first, 0);
  EXPECT_NEAR(sent(mixtral[3].forward).second, 2.0 * 4096 * 4096 * 2 * 2 * 7 / 8, 1);
}

TEST(ModelZoo, TensorParallelSharesTheProducts) {
  Workload workload;
  workload.sequence_length = 1024;
  const auto whole = work_of("llama3-70b", workload);
  workload.tensor_parallel = 8;
  const auto shared = work_of("llama3-70b", workload);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(flops_of(shared[i].forward), flops_of(whole[i].forward) / 8, 1e-6 * flops_of(whole[i].forward));
    EXPECT_EQ(shared[i].parameters, whole[i].parameters);
  }
}

TEST(ModelZoo, RefusesUnknownNames) {
  EXPECT_THAT(zoo_entry("gpt5").error().message, HasSubstr("unknown model 'gpt5'; allowed: gpt3-1b"));
  EXPECT_THAT(gpu_named("TPU").error().message, HasSubstr("allowed: A40, A100-PCIe"));
  EXPECT_THAT(zoo_layers("gpt3-1b", {0, 2048}).error().message, HasSubstr("the microbatch size is 0"));
  EXPECT_THAT(zoo_layers("gpt3-1b", {}).error().message, HasSubstr("the sequence length is 0"));
  EXPECT_TRUE(gpu_named("a100-sxm").ok());
  EXPECT_TRUE(zoo_entry("GPT3-1B").ok());
}

TEST(Roofline, Laws) {
  for (const GpuModel& gpu : known_gpus()) {
    const auto clocks = clocks_of(gpu);
    ASSERT_EQ(clocks.front(), gpu.highest);
    ASSERT_EQ(clocks.back(), gpu.lowest);
    for (const char* name : {"gpt3-1b", "llama3-8b"}) {
      for (const model::Layer& layer : layers_on(work_of(name), gpu, Precision::bf16)) {
        for (std::size_t c = 0; c < layer.costs.size(); ++c) {
          const model::LayerCost& cost = layer.costs[c];
          ASSERT_LE(cost.forward_energy / cost.forward, gpu.power_limit) << gpu.name;
          ASSERT_GE(cost.forward_energy / cost.forward, gpu.static_power) << gpu.name;
          if (c == 0) continue;
          // Lower clocks are never faster nor draw more power, and never slower than by the clocks' ratio.
          const model::LayerCost& faster = layer.costs[c - 1];
          ASSERT_GE(cost.forward, faster.forward);
          ASSERT_LE(cost.forward_energy / cost.forward, (faster.forward_energy / faster.forward) * (1 + 1e-12));
        }
        const model::LayerCost& slowest = layer.costs.back();
        const double ratio = static_cast<double>(gpu.highest.value()) / gpu.lowest.value();
        ASSERT_LE(slowest.forward, layer.costs.front().forward * ratio * (1 + 1e-12));
      }
    }
  }
}

TEST(Roofline, OneKernelByHand) {
  const GpuModel gpu{"toy", Megahertz(500), Megahertz(1000), Megahertz(100), 1e12, 2e12, 1e9,      1e9,
                     2e9,   Watts(1000),    Watts(100),      Watts(400),     0.5,  0.5,  Watts(50)};
  LayerWork work;
  work.forward = {{1.6e12, 0, 0, 0}};                 // 1 s at 80 % of 2e12
  work.backward = {{0, 0.8e9, 0.25e9, 0, 1, 0.5e9}};  // 1 s of memory, a quarter of link, a quarter of network
  const std::vector<Megahertz> clocks{Megahertz(1000), Megahertz(500)};
  const auto costs = costs_of(work, gpu, Precision::bf16, clocks);
  EXPECT_NEAR(costs[0].forward.value(), 1, 1e-12);
  EXPECT_NEAR(costs[0].forward_energy.value(), 500, 1e-9);
  EXPECT_NEAR(costs[1].forward.value(), 2, 1e-12);
  // Half the clock at half the voltage: an eighth of the dynamic power.
  EXPECT_NEAR(costs[1].forward_energy.value(), 2 * (100 + 400.0 / 8), 1e-9);
  EXPECT_NEAR(costs[0].backward.value(), 1.5, 1e-12);
  EXPECT_NEAR(costs[1].backward.value(), 1.5, 1e-12);
  EXPECT_NEAR(costs[0].backward_energy.value(), 100 + 25 + 400 * 0.7, 1e-9);  // the link waits at 50 W

  GpuModel capped = gpu;
  capped.power_limit = Watts(400);  // 100 + 400 * 0.9 * 0.9^2 = 391.6 W at 900 MHz
  const auto at_900 = costs_of(work, gpu, Precision::bf16, std::vector{Megahertz(900)});
  EXPECT_EQ(costs_of(work, capped, Precision::bf16, clocks)[0].forward, at_900[0].forward);
}

std::vector<model::Layer> small_model(int layers) {
  const GpuModel gpu = *gpu_named("A100-PCIe");
  auto work = work_of("gpt3-1b");
  work.erase(work.begin() + 1, work.end() - layers);
  std::vector<Megahertz> clocks{Megahertz(1410), Megahertz(1200), Megahertz(1005), Megahertz(810)};
  std::vector<model::Layer> model;
  for (const LayerWork& layer : work) {
    model.push_back({layer.name, layer.kind, costs_of(layer, gpu, Precision::tf32, clocks)});
  }
  return model;
}

TEST(LeastEnergyPartition, DescentFindsTheBestOfAll) {
  const auto layers = small_model(11);
  for (const double slack : {0.0, 1.02, 1.1, 1.5}) {
    EnergyGoal goal{6, Watts(75), {}, 1000};
    const auto first = least_energy(layers, 4, goal);
    ASSERT_TRUE(first.ok()) << first.error().message;
    if (slack > 0) goal.deadline = first->fastest * slack;
    const auto all = least_energy(layers, 4, goal);
    ASSERT_TRUE(all.ok()) << all.error().message;
    EXPECT_TRUE(all->all_tried);
    goal.max_planned = 60;  // of 120 or more: now it has to search
    const auto descent = least_energy(layers, 4, goal);
    ASSERT_TRUE(descent.ok()) << descent.error().message;
    EXPECT_FALSE(descent->all_tried);
    EXPECT_LE(descent->planned, 61);
    EXPECT_EQ(descent->deadline, all->deadline);
    EXPECT_NEAR(descent->energy / all->energy, 1, 1e-9) << slack;
    if (all->balanced_fastest <= all->deadline) { EXPECT_LE(all->energy, all->balanced_energy * (1 + 1e-9)); }
    EXPECT_LE(all->fastest, all->deadline * (1 + 1e-9));
  }
}

TEST(LeastEnergyPartition, RefusesImpossibleGoals) {
  auto layers = small_model(5);
  EnergyGoal goal{6, Watts(75), Seconds(1e-3), 1000};
  EXPECT_THAT(least_energy(layers, 3, goal).error().message, HasSubstr("finishes in 0.001 s; the fastest takes"));
  EXPECT_THAT(least_energy(layers, 30, goal).error().message, HasSubstr("30 stages"));
  for (model::LayerCost& cost : layers[1].costs) cost.forward_energy = Joules(0);
  EXPECT_THAT(least_energy(layers, 3, goal).error().message, HasSubstr("a profile needs"));
}

}  // namespace
}  // namespace perseus::partitioner
