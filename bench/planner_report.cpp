// Prints the tables of docs/measurements/planner.md: planning time of the exact planner and its gap to the bound.
//
// CPU time is that of this process on one core, the median of several runs. The gap at T is the least effective energy
// of a point no slower than T minus the bound's, over the bound's total energy at T; its mean and largest value are
// over 5000 values of T from T_min to T*.
//
// usage: planner_report [--huge | --limited]     --huge: pipelines with prices in steps; --limited: only the tables of
//                                                limited clocks
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <vector>

#include "bench/cases.h"
#include "planning/baselines/best_of_all.h"
#include "planning/model/default_plan.h"
#include "planning/model/neighbors.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/realize.h"

namespace perseus::bench {
namespace {

double cpu_ms() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class Work>
double median_cpu_ms(int runs, Work work) {
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const double start = cpu_ms();
    work();
    times.push_back(cpu_ms() - start);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

constexpr int kSpans = 5;
constexpr double kLastDigits = 1e-12;  // of a sum over an iteration

struct Gap {
  double mean_pct = 0, largest_pct = 0;
  std::array<double, kSpans> mean_pct_of_span{};  ///< of each fifth of the time from T_min to T*
};

double gap_pct(const model::ComputationDag& dag, const model::Frontier& frontier, Seconds t) {
  const Joules bound = frontier.bound.at(t);
  return 100 * ((planner::look_up(frontier, t).effective_energy - bound) / (bound + dag.total_blocking_power() * t));
}

Gap gap_of(const model::ComputationDag& dag, const model::Frontier& frontier) {
  constexpr int kSamples = 5000;
  const Seconds t_min = frontier.points.back().time, t_star = frontier.bound.t_star();
  Gap gap;
  for (int i = 0; i <= kSamples; ++i) {
    const Seconds t = t_min + (t_star - t_min) * (static_cast<double>(i) / kSamples);
    const double pct = gap_pct(dag, frontier, t);
    gap.mean_pct += pct / (kSamples + 1);
    gap.mean_pct_of_span[std::min(kSpans - 1, i * kSpans / kSamples)] += pct * kSpans / (kSamples + 1);
    gap.largest_pct = std::max(gap.largest_pct, pct);
  }
  return gap;
}

/// The same pipeline without options that no plan of that deadline can take: with the others at their fastest, each
/// ends in time.
model::ComputationDag without_late_options(const model::ComputationDag& dag, Seconds deadline) {
  const auto fastest = [&](int i) {
    return std::ranges::min(dag.type_of(i).options, {}, &model::Measurement::time).time.value();
  };
  std::vector<double> end_s, latest_start_s;
  model::longest_path(model::neighbors_before_s(dag), fastest, end_s);
  model::latest_starts(model::neighbors_after_s(dag), fastest, deadline.value(), latest_start_s);
  model::ComputationDag reduced = dag;
  reduced.types.clear();
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    const double most_s = (1 + kLastDigits) * (latest_start_s[i] + 2 * fastest(i) - end_s[i]);
    model::ComputationType type = dag.type_of(i);
    std::erase_if(type.options, [&](const model::Measurement& m) { return m.time.value() > most_s; });
    reduced.computations[i].type = static_cast<int>(reduced.types.size());
    reduced.types.push_back(std::move(type));
  }
  return reduced;
}

/// The gap at the deadlines that jobs run at, the part of it at T_max that no plan can close, and what the other
/// methods' plans add.
void report_wanted(const std::vector<Case>& cases) {
  fmt::print("\n| case | T_max |");
  for (const double tolerance : model::kUsualTolerances) fmt::print(" + {:g} % |", 100 * tolerance);
  fmt::print(" at least, T_max | mean, largest | with all methods | CPU [ms] |\n| --- | --- |");
  for (std::size_t k = 0; k < std::size(model::kUsualTolerances) + 4; ++k) fmt::print(" --- |");
  fmt::print("\n");
  for (const Case& problem : cases) {
    const Result<model::ComputationDag> dag = load(problem);
    const Seconds t_max = planner::Realizer(*dag).realize(model::all_maximum_clock(*dag)).time;
    const model::Frontier alone = planner::plan_exact(*dag);
    fmt::print("| {} | {:.3f} |", problem.name(), gap_pct(*dag, alone, (1 + kLastDigits) * t_max));
    for (const double tolerance : model::kUsualTolerances)
      fmt::print(" {:.3f} |", gap_pct(*dag, alone, (1 + tolerance) * (1 + kLastDigits) * t_max));
    const Joules bound = alone.bound.at(t_max);
    const Joules reached = planner::compute_lower_bound(without_late_options(*dag, t_max)).bound.at(t_max);
    fmt::print(" {:.3f} |", 100 * ((reached - bound) / (bound + dag->total_blocking_power() * t_max)));
    model::Frontier all;
    const double ms = median_cpu_ms(3, [&] { all = *baselines::plan_best_of_all(*dag); });
    const Gap without = gap_of(*dag, alone), with = gap_of(*dag, all);
    fmt::print(" {:.3f}, {:.2f} | {:.3f}, {:.2f} | {:.0f} |\n", without.mean_pct, without.largest_pct, with.mean_pct,
               with.largest_pct, ms);
  }
}

/// Cost of the limit that a rank cannot change its clock at any moment.
void report_limited() {
  const Result<model::ComputationDag> dag = load({"a100_sxm", 8, 12});
  constexpr int kDeadlines = 200;
  fmt::print("\n| switch latency [s] | dwell [s] | mean gap [%] | largest gap [%] | cost at the fastest point [%] |\n");
  fmt::print("| --- | --- | --- | --- | --- |\n");
  const std::pair<double, double> limits_s[] = {{0, 0}, {0.003, 0}, {0.01, 0}, {0.03, 0}, {0.01, 0.3}, {0, 0.5}};
  planner::PlannerOptions options;
  options.deadlines = kDeadlines;
  const model::Frontier free = planner::plan_exact(*dag, options);
  for (const auto& [latency_s, dwell_s] : limits_s) {
    options.switch_latency = Seconds(latency_s);
    options.min_dwell = Seconds(dwell_s);
    const model::Frontier limited = planner::plan_exact(*dag, options);
    const Gap gap = gap_of(*dag, limited);
    const model::FrontierPoint& fastest = limited.points.back();
    const Joules without = planner::look_up(free, fastest.time).effective_energy;
    const double cost_pct =
        100 * ((fastest.effective_energy - without) / (without + dag->total_blocking_power() * fastest.time));
    fmt::print("| {} | {} | {:.2f} | {:.1f} | {:.1f} |\n", latency_s, dwell_s, gap.mean_pct, gap.largest_pct, cost_pct);
  }
}

/// What plans save at the deadlines that jobs run at, against everything at maximum clock, where clocks arrive late.
void report_limited_wanted() {
  fmt::print("\n| case | switch latency [s] | CPU [s] | T_max |");
  for (const double tolerance : model::kUsualTolerances) fmt::print(" + {:g} % |", 100 * tolerance);
  fmt::print("\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Case& problem : {Case{"a100_sxm", 8, 12}, Case{"a40", 8, 12}}) {
    const Result<model::ComputationDag> dag = load(problem);
    const planner::Realizer::Outcome highest = planner::Realizer(*dag).realize(model::all_maximum_clock(*dag));
    const Joules highest_j = highest.effective_energy + dag->total_blocking_power() * highest.time;
    for (const double latency_s : {0.003, 0.01, 0.02, 0.03}) {
      planner::PlannerOptions options;
      options.switch_latency = Seconds(latency_s);
      model::Frontier frontier;
      const double ms = median_cpu_ms(1, [&] { frontier = planner::plan_exact(*dag, options); });
      fmt::print("| {} | {} | {:.1f} |", problem.name(), latency_s, ms / 1e3);
      const auto print_at = [&](double tolerance) {
        const Seconds deadline = (1 + tolerance) * (1 + kLastDigits) * highest.time;
        const model::FrontierPoint& point = planner::look_up(frontier, deadline);
        fmt::print(" {:.2f} % at {:+.3f} % |", 100 * (1 - point.energy / highest_j), 100 * (point.time / deadline - 1));
      };
      print_at(0);
      for (const double tolerance : model::kUsualTolerances) print_at(tolerance);
      fmt::print("\n");
    }
  }
}

using Efforts = std::vector<std::pair<planner::Effort, const char*>>;

/// Time and gap of whole frontiers, then of their bounds alone; false if the published profiles are absent.
bool report_frontiers(const std::vector<Case>& cases, const Efforts& efforts, int runs) {
  fmt::print(
      "| case | effort | CPU [ms] | points | mean gap [%] | largest gap [%] | mean by fifth, from T_min [%] |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- |\n");
  const auto runs_of = [runs](const Case& problem) { return problem.stages > 8 ? (runs + 4) / 5 : runs; };
  for (const Case& problem : cases) {
    const Result<model::ComputationDag> dag = load(problem);
    if (!dag) {
      fmt::print(stderr, "{}\n", dag.error().message);
      return false;
    }
    for (const auto& [effort, name] : efforts) {
      planner::PlannerOptions options;
      options.effort = effort;
      model::Frontier frontier;
      const double ms = median_cpu_ms(runs_of(problem), [&] { frontier = planner::plan_exact(*dag, options); });
      const Gap gap = gap_of(*dag, frontier);
      fmt::print("| {} | {} | {:.1f} | {} | {:.3f} | {:.2f} | {:.3f} |\n", problem.name(), name, ms,
                 frontier.points.size(), gap.mean_pct, gap.largest_pct, fmt::join(gap.mean_pct_of_span, " / "));
    }
  }
  fmt::print("\n| lower-bound curve of | CPU [ms] | pivots | vertices |\n| --- | --- | --- | --- |\n");
  for (const Case& problem : cases) {
    const Result<model::ComputationDag> dag = load(problem);
    planner::LowerBoundResult result;
    const double ms = median_cpu_ms(runs_of(problem), [&] { result = planner::compute_lower_bound(*dag); });
    fmt::print("| {} | {:.1f} | {} | {} |\n", problem.name(), ms, result.pivots, result.bound.vertices.size());
  }
  return true;
}

int report() {
  const Efforts efforts{
      {planner::Effort::low, "low"}, {planner::Effort::normal, "normal"}, {planner::Effort::high, "high"}};
  const std::vector<Case> cases{
      {"a100_sxm", 8, 12}, {"a100_sxm", 8, 96}, {"a40", 8, 12}, {"a40", 8, 96}, {"a100_sxm", 16, 256}};
  if (!report_frontiers(cases, efforts, 15)) return 66;
  report_wanted({{"a100_sxm", 8, 12}, {"a100_sxm", 8, 96}, {"a40", 8, 12}, {"a40", 8, 96}});
  report_limited();
  report_limited_wanted();

  const Result<model::ComputationDag> dag = load({"a100_sxm", 8, 96});
  const model::Frontier frontier = planner::plan_exact(*dag);
  constexpr int kLookUps = 10'000'000;
  std::size_t sum = 0;
  const double ms = median_cpu_ms(5, [&] {
    const double first = frontier.points.back().time.value(), last = frontier.points.front().time.value();
    for (int i = 0; i < kLookUps; ++i) {
      // Deadlines all over the frontier, so that the CPU cannot predict the branches.
      const double part = static_cast<double>((static_cast<unsigned>(i) * 2654435761U) >> 8) * 0x1p-24;
      sum += planner::look_up_index(frontier, Seconds(first + (last - first) * part));
    }
  });
  fmt::print("\nlook-up among {} points: {:.3f} us (check {})\n", frontier.points.size(), ms * 1e3 / kLookUps,
             sum % 10);
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  const auto given = [&](const char* option) { return argc > 1 && std::strcmp(argv[1], option) == 0; };
  if (given("--limited")) {
    perseus::bench::report_limited();
    perseus::bench::report_limited_wanted();
    return 0;
  }
  if (given("--huge")) {
    const std::vector<perseus::bench::Case> cases{
        {"a100_sxm", 64, 128, 4}, {"a100_sxm", 64, 128}, {"a100_sxm", 64, 512}};
    return perseus::bench::report_frontiers(cases, {{perseus::planner::Effort::normal, "normal"}}, 1) ? 0 : 66;
  }
  return perseus::bench::report();
}
