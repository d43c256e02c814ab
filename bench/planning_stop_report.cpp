// Prints the table of docs/decisions/0033: delay until planning stops, and cost of a quick frontier, on large
// pipelines.
//
// usage: planning_stop_report [SECONDS]   plans each case for at most that many seconds (default 3), then stops it
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "bench/cases.h"
#include "planning/baselines/best_of_all.h"
#include "planning/planner/quick.h"

namespace perseus::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

int report(double most_s) {
  fmt::print(
      "| case | computations | switch latency [s] | DAG [s] | quick [s] | quick points | planned for [s] | "
      "longest between checks [ms] | ends after the stop [ms] |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  const std::vector<Case> cases{{"a100_sxm", 8, 12},   {"a100_sxm", 8, 96},   {"a100_sxm", 16, 256},
                                {"a100_sxm", 64, 128}, {"a100_sxm", 64, 512}, {"a100_sxm", 2, 20000},
                                {"a100_sxm", 1, 43000}};
  for (const Case& problem : cases) {
    const auto built = SteadyClock::now();
    const Result<model::ComputationDag> dag = load(problem);
    const double dag_s = seconds_since(built);
    if (!dag) return fmt::print("{}: {}\n", problem.name(), dag.error().message), 1;
    for (const double latency_s : {0.0, 0.01}) {
      planner::PlannerOptions options;
      options.switch_latency = Seconds(latency_s);
      StopCheck never;
      const auto quick_begin = SteadyClock::now();
      const auto quick = planner::plan_quick(*dag, options, never);
      const double quick_s = seconds_since(quick_begin);
      const auto begin = SteadyClock::now();
      auto last = begin;
      double longest_s = 0;
      StopCheck check([&] {
        const auto now = SteadyClock::now();
        longest_s = std::max(longest_s, std::chrono::duration<double>(now - last).count());
        last = now;
        return seconds_since(begin) > most_s;
      });
      const auto full = baselines::plan_best_of_all(*dag, options, {}, check);
      const double took_s = seconds_since(begin), after_s = seconds_since(last);
      fmt::print("| {} | {} | {} | {:.3f} | {:.3f} | {} | {:.2f}{} | {:.1f} | {} |\n", problem.name(),
                 dag->computations.size(), latency_s, dag_s, quick_s, quick->points.size(), took_s,
                 full ? "" : " (stopped)", 1e3 * longest_s, full ? "-" : fmt::format("{:.1f}", 1e3 * after_s));
    }
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int count, char** arguments) {
  return perseus::bench::report(count > 1 ? std::strtod(arguments[1], nullptr) : 3);
}
