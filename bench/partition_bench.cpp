// Measures the time to balance layers: uniform (a transformer), mixed, and one layer much larger than the others.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>

#include "planning/partitioner/balance.h"

namespace {

using namespace perseus;

std::vector<Seconds> transformer(int layers) {
  std::vector<Seconds> latencies(layers, Seconds(1e-3));
  latencies.emplace_back(3.5e-3);
  return latencies;
}

std::vector<Seconds> mixed(int layers) {
  std::mt19937_64 engine(1);
  std::vector<Seconds> latencies;
  for (int i = 0; i < layers; ++i) latencies.emplace_back(1e-6 * static_cast<double>(200 + engine() % 1800));
  return latencies;
}

std::vector<Seconds> towering(int layers) {
  auto latencies = mixed(layers);
  latencies[layers / 3] = Seconds(0.2);
  return latencies;
}

void run(benchmark::State& state, const std::vector<Seconds>& layers, partitioner::Balance objective) {
  const int stages = static_cast<int>(state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(partitioner::balance_layers(layers, stages, objective));
}

void imbalance_transformer(benchmark::State& state) {
  run(state, transformer(static_cast<int>(state.range(0))), partitioner::Balance::imbalance);
}
void imbalance_mixed(benchmark::State& state) {
  run(state, mixed(static_cast<int>(state.range(0))), partitioner::Balance::imbalance);
}
void imbalance_towering(benchmark::State& state) {
  run(state, towering(static_cast<int>(state.range(0))), partitioner::Balance::imbalance);
}
void longest_stage_mixed(benchmark::State& state) {
  run(state, mixed(static_cast<int>(state.range(0))), partitioner::Balance::longest_stage);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const auto& [layers, stages] : {std::pair{24, 4}, {96, 8}, {126, 16}, {200, 64}, {500, 64}, {1000, 8}}) {
    benchmark->Args({layers, stages});
  }
  benchmark->Unit(benchmark::kMicrosecond);
}

BENCHMARK(imbalance_transformer)->Apply(sizes);
BENCHMARK(imbalance_mixed)->Apply(sizes);
BENCHMARK(imbalance_towering)->Apply(sizes);
BENCHMARK(longest_stage_mixed)->Apply(sizes);

}  // namespace
