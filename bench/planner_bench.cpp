// Benchmarks the planner with Google Benchmark, to compare two versions of it; planner_report prints the docs' tables.
#include <benchmark/benchmark.h>

#include "bench/cases.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "planning/planner/lower_bound.h"

namespace perseus::bench {
namespace {

void whole_frontier(benchmark::State& state, const Case& problem) {
  const Result<model::ComputationDag> dag = load(problem);
  if (!dag) return state.SkipWithError(dag.error().message.c_str());
  std::size_t points = 0;
  for (auto _ : state) points = planner::plan_exact(*dag).points.size();
  state.counters["points"] = static_cast<double>(points);
}

void lower_bound_curve(benchmark::State& state, const Case& problem) {
  const Result<model::ComputationDag> dag = load(problem);
  if (!dag) return state.SkipWithError(dag.error().message.c_str());
  long pivots = 0;
  for (auto _ : state) pivots = planner::compute_lower_bound(*dag).pivots;
  state.counters["pivots"] = static_cast<double>(pivots);
}

void look_up_a_straggler(benchmark::State& state) {
  const Result<model::ComputationDag> dag = load({"a100_sxm", 8, 96});
  if (!dag) return state.SkipWithError(dag.error().message.c_str());
  const model::Frontier frontier = planner::plan_exact(*dag);
  const Seconds range = frontier.points.front().time - frontier.points.back().time;
  unsigned step = 0;
  for (auto _ : state) {
    const double part = static_cast<double>((++step * 2654435761U) >> 8) * 0x1p-24;
    benchmark::DoNotOptimize(planner::look_up_index(frontier, frontier.points.back().time + range * part));
  }
}

BENCHMARK_CAPTURE(whole_frontier, a100_8x12, Case{"a100_sxm", 8, 12})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_frontier, a100_8x96, Case{"a100_sxm", 8, 96})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_frontier, a40_8x96, Case{"a40", 8, 96})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_frontier, distinct_16x256, Case{"a100_sxm", 16, 256})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower_bound_curve, a100_8x96, Case{"a100_sxm", 8, 96})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower_bound_curve, distinct_16x256, Case{"a100_sxm", 16, 256})->Unit(benchmark::kMillisecond);
BENCHMARK(look_up_a_straggler);

}  // namespace
}  // namespace perseus::bench
