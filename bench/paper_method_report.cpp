// Prints the tables of docs/paper_method.md: the published method against its published frontiers, and time and energy
// of its plans once realized. Needs the published measurements (tests/support/shared_data.h finds them).
//
// usage: paper_method_report [FOLDER]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <string>

#include "planning/planner/exact.h"
#include "planning/planner/exponential_fit.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/perseus_method.h"
#include "tests/support/published_frontier.h"

namespace perseus {
namespace {

double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Case {
  testing::EmulatedGpu gpu;
  int microbatches;
  model::ComputationDag dag;
  planner::PerseusRun run;
  double planning_cpu_s;
};

Case plan_case(const std::filesystem::path& data, const testing::EmulatedGpu& gpu, int microbatches) {
  model::ComputationDag dag = testing::emulated_dag(data, gpu, microbatches);
  const double began = cpu_s();
  planner::PerseusRun run = planner::plan_perseus(dag, {.unit_time = gpu.unit_time, .progress = {}}).value();
  return {gpu, microbatches, std::move(dag), std::move(run), cpu_s() - began};
}

std::string name_of(const Case& c) { return fmt::format("{} 8x{}", c.gpu.name, c.microbatches); }

void print_comparison(const std::filesystem::path& data, const Case& c) {
  const auto published = testing::published_frontier(data, c.gpu, c.microbatches);
  const auto& steps = c.run.steps();
  const auto units = [&](Seconds time) { return std::llround(time / c.gpu.unit_time); };
  int common = 0;
  double sum_pct = 0, worst_pct = 0;
  Seconds worst_at;
  for (const auto& point : published) {
    const long long step = units(steps.front().planned_time) - units(point.planned_time);
    if (step < 0 || step >= static_cast<long long>(steps.size())) continue;
    const double pct = 100 * (steps[step].planned_energy / point.energy - 1);
    ++common;
    sum_pct += std::abs(pct);
    if (std::abs(pct) <= std::abs(worst_pct)) continue;
    worst_pct = pct;
    worst_at = point.planned_time;
  }
  fmt::print("| {} | {} | {:.4f}-{:.4f} | {} | {:.4f}-{:.4f} | {} | {:.1e} | {:.1e} at {:.4f} | {:.2f} |\n", name_of(c),
             published.size(), published.back().planned_time.value(), published.front().planned_time.value(),
             steps.size(), steps.back().planned_time.value(), steps.front().planned_time.value(), common,
             sum_pct / common, worst_pct, worst_at.value(), c.planning_cpu_s);
}

/// The plan with everything at its highest clock.
Seconds max_clock_time(const model::ComputationDag& dag) {
  std::vector<Seconds> finish(dag.computations.size());
  for (int i = 0; i < static_cast<int>(finish.size()); ++i) finish[i] = dag.type_of(i).options.front().time;
  auto dependencies = dag.dependencies;
  std::ranges::sort(dependencies, {}, &model::Dependency::after);
  for (const model::Dependency& d : dependencies) {
    const Seconds time = dag.type_of(d.after).options.front().time;
    finish[d.after] = std::max(finish[d.after], finish[d.before] + d.latency + time);
  }
  return *std::ranges::max_element(finish);
}

struct Gap {
  double mean_pct = 0;
  double largest_pct = 0;
};

/// Over T from the fastest realized point to `to`: the least effective energy of a point no slower than T, minus the
/// bound's, over the bound's total energy at T.
Gap gap_to(const Case& c, const model::LowerBound& bound, const std::vector<model::FrontierPoint>& points, Seconds to) {
  constexpr int kSamples = 10000;
  Gap gap;
  for (int k = 0; k <= kSamples; ++k) {
    const Seconds deadline = k == kSamples ? to : points.back().time + (1.0 * k / kSamples) * (to - points.back().time);
    const auto chosen = std::ranges::find_if(points, [&](const model::FrontierPoint& p) { return p.time <= deadline; });
    const Joules least = bound.at(deadline) + c.dag.total_blocking_power() * deadline;
    const double pct = 100 * ((chosen->effective_energy - bound.at(deadline)) / least);
    gap.mean_pct += pct / (kSamples + 1);
    gap.largest_pct = std::max(gap.largest_pct, pct);
  }
  return gap;
}

void print_realized(const Case& c) {
  const auto& steps = c.run.steps();
  const auto over = std::ranges::count_if(steps, [](const planner::PerseusStep& s) { return s.time > s.planned_time; });
  double worst_over_pct = 0, worst_energy_pct = 0;
  for (const planner::PerseusStep& step : steps) {
    worst_over_pct = std::max(worst_over_pct, 100 * (step.time / step.planned_time - 1));
    const double energy_pct = 100 * (step.planned_energy / step.energy - 1);
    if (std::abs(energy_pct) > std::abs(worst_energy_pct)) worst_energy_pct = energy_pct;
  }
  const model::Frontier frontier = c.run.frontier();
  const auto& points = frontier.points;
  const model::LowerBound bound = planner::compute_lower_bound(c.dag).bound;
  const Gap own_range = gap_to(c, bound, points, points.front().time);
  const Gap whole_range = gap_to(c, bound, points, std::max(bound.t_star(), points.front().time));
  const Seconds max_clock = max_clock_time(c.dag);
  fmt::print(
      "| {} | {} of {} | {:.2f} | {:+.2f} | {} | {:.4f}-{:.4f} | {:.4f} | {:.4f} | {:.4f} | {:.2f} / {:.2f} | {:.2f} / "
      "{:.2f} |\n",
      name_of(c), over, steps.size(), worst_over_pct, worst_energy_pct, points.size(), points.back().time.value(),
      points.front().time.value(), max_clock.value(), bound.t_min().value(), bound.t_star().value(), own_range.mean_pct,
      own_range.largest_pct, whole_range.mean_pct, whole_range.largest_pct);
}

void print_fits(const std::filesystem::path& data, const testing::EmulatedGpu& gpu) {
  const Case c = plan_case(data, gpu, 8);
  for (const int type : {0, 1, 14, 15}) {
    const model::ComputationType& t = c.dag.types[type];
    const auto computation =
        std::ranges::find(c.dag.computations, type, &model::Computation::type) - c.dag.computations.begin();
    const planner::CostCurve& curve = c.run.curves().of(static_cast<int>(computation));
    double worst_pct = 0, sum = 0;
    int count = 0, lowest_mhz = 1 << 30;
    for (std::int64_t units = curve.fastest; units <= curve.slowest; ++units) {
      const model::Measurement& option = t.options[curve.option_at(units)];
      if (units > curve.fastest && curve.option_at(units) == curve.option_at(units - 1)) continue;
      const Joules waiting = gpu.blocking_power * (static_cast<double>(units) * gpu.unit_time);
      const double pct = 100 * ((Joules(curve.energy_at(units)) + waiting) / option.energy - 1);
      worst_pct = std::max(worst_pct, std::abs(pct));
      sum += pct * pct;
      ++count;
      lowest_mhz = std::min(lowest_mhz, option.clock.value());
    }
    fmt::print("| {} stage {} {} | {} of {} | {} | {:.2f} | {:.2f} |\n", gpu.name, t.stage, t.instruction, count,
               t.options.size(), lowest_mhz, std::sqrt(sum / count), worst_pct);
  }
}

void report(const std::filesystem::path& data) {
  std::vector<Case> cases;
  for (const auto& gpu : testing::emulated_gpus()) {
    for (const int microbatches : {12, 24, 48, 96}) cases.push_back(plan_case(data, gpu, microbatches));
  }
  fmt::print(
      "| case | published points | published T [s] | our steps | our T [s] | common | mean deviation [%] | largest "
      "deviation [%] | CPU [s] |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Case& c : cases) print_comparison(data, c);
  fmt::print(
      "\n| case | steps slower than planned | by at most [%] | planned energy off by at most [%] | realized points | "
      "realized T [s] | all at maximum clock [s] | T_min [s] | T* [s] | gap to the bound over that range, "
      "mean / largest [%] | up to T* |\n| --- | --- | "
      "--- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Case& c : cases) print_realized(c);
  fmt::print(
      "\n| computation | clocks kept | lowest [MHz] | fit rms [%] | fit largest [%] |\n| --- | --- | --- | --- | --- "
      "|\n");
  for (const auto& gpu : testing::emulated_gpus()) print_fits(data, gpu);
}

}  // namespace
}  // namespace perseus

int main(int argc, char** argv) {
  const char* from_environment = std::getenv("PERSEUS_SHARED_DATA");
  const std::filesystem::path data =
      argc > 1 ? argv[1] : (from_environment != nullptr ? from_environment : PERSEUS_SHARED_DATA);
  if (!std::filesystem::is_directory(data)) {
    fmt::print(stderr, "paper_method_report: {}: no such folder; it must hold the published measurements\n",
               data.string());
    return 2;
  }
  perseus::report(data);
  return 0;
}
