// Prints how late plans are where links are slow and runs hardly show it: tables of docs/fidelity.md.
//
// For each workload: the links that its runs allow, by how much a plan for one set may be late, and what it costs to
// keep the time with all. Then draws: two links get 1 to 80 ms (logarithms uniform), the runs are replayed with them,
// calibrated and planned, and the default plan runs on the links as drawn.
//
// usage: links_report [DRAWS [FOLDER]]   of each workload in FOLDER/measured; 20 draws unless given
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/cpu_time.h"
#include "evaluation/calibration/calibrate.h"
#include "io/formats/run_trace_csv.h"
#include "planning/baselines/best_of_all.h"
#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/robust_frontier.h"

namespace perseus {
namespace {

const std::string kSuffix = ".ops.csv.gz";
constexpr double kMostMilliseconds = 80;
constexpr double kInTime_pct = 0.2;
constexpr double kSeen = 5e-4;  // relative change of an iteration time that shows a link

std::vector<int> all_plans(const model::RunTrace& trace) {
  std::vector<int> plans(trace.plans.size());
  std::iota(plans.begin(), plans.end(), 0);
  return plans;
}

model::ComputationDag dag_of(const calibration::Calibration& c, const model::RunTrace& trace) {
  const auto everything = all_plans(trace);
  return *model::build_dag(calibration::make_profile(c, trace, everything), c.schedule, c.costs());
}

/// A plan for another DAG of the same pipeline, which may have other constant-time computations.
model::Plan moved(const model::ComputationDag& from, const model::Plan& plan, const model::ComputationDag& to) {
  const auto has_clock = [](const model::ComputationDag& dag, int c) {
    return !model::is_constant_time(*model::instruction_named(dag.type_of(c).instruction));
  };
  model::Plan result(to.computations.size());
  for (int rank = 0; rank < from.num_ranks(); ++rank) {
    std::size_t next = 0;
    for (const int c : to.rank_order[rank]) {
      if (!has_clock(to, c)) continue;
      while (!has_clock(from, from.rank_order[rank][next])) ++next;
      result[c] = plan[from.rank_order[rank][next++]];
    }
  }
  return result;
}

/// Default plans for a calibration: for the chosen links alone, and for all that the runs allow.
struct Planned {
  model::ComputationDag dag;
  model::Plan one, all;
  std::size_t sets = 0;
  double may_be_late = 0;  ///< the first, relative
};

Planned plan(const calibration::Calibration& c, const model::RunTrace& trace) {
  Planned planned{dag_of(c, trace), {}, {}};
  const model::ComputationDag& dag = planned.dag;
  planner::LatencySets sets;
  for (const model::OtherLinks& links : c.other_links) sets.push_back(*model::dependency_latencies(dag, links));
  planner::PlannerOptions options;
  options.effort = planner::Effort::low;
  const model::Frontier frontier = *baselines::plan_best_of_all(dag, options);
  const Seconds t_max = checker::run_plan(dag, model::all_maximum_clock(dag)).makespan;
  planned.one = frontier.points[model::default_point(frontier, t_max)].plan;
  const model::Frontier robust = planner::robust_frontier(dag, sets, frontier, {});
  planned.all = robust.points[model::default_point(robust, t_max)].plan;
  planned.sets = sets.size();
  planned.may_be_late = planner::lateness_with(dag, sets, planned.one);
  return planned;
}

/// Later than maximum clock, and saving; percent.
struct Outcome {
  double late_pct = 0;
  double saving_pct = 0;
};
Outcome outcome(const model::ComputationDag& dag, const model::Plan& plan) {
  const auto highest = checker::run_plan(dag, model::all_maximum_clock(dag)), run = checker::run_plan(dag, plan);
  return {100 * (run.makespan / highest.makespan - 1), 100 * (1 - run.energy / highest.energy)};
}

struct Draw {
  int seen = 0;  ///< by how many runs
  Outcome one, all;
};

double mean_of(const std::vector<Draw>& draws, double (*value)(const Draw&)) {
  double sum = 0;
  for (const Draw& draw : draws) sum += value(draw) / static_cast<double>(draws.size());
  return sum;
}
double largest_of(const std::vector<Draw>& draws, double (*value)(const Draw&)) {
  double largest = 0;
  for (const Draw& draw : draws) largest = std::max(largest, value(draw));
  return largest;
}

std::vector<Draw> draw_links(const model::RunTrace& trace, const calibration::Calibration& as_measured, int draws) {
  const auto everything = all_plans(trace);
  const auto before = calibration::predict(as_measured, trace, everything);
  const int boundaries = trace.num_stages() - 1;
  std::mt19937_64 random(7);
  std::vector<Draw> all;
  for (int d = 0; d < draws; ++d) {
    calibration::Calibration truth = as_measured;
    std::vector<model::BoundaryLatency> latencies = as_measured.transfer_latency.boundaries;
    const Seconds common = as_measured.transfer_latency.common;
    if (latencies.empty()) latencies.assign(boundaries, {common, common});
    std::vector<int> order(boundaries);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    for (const int slow : {order[0], order[1]}) {
      const double ms = std::exp(std::uniform_real_distribution<double>(0, std::log(kMostMilliseconds))(random));
      latencies[slow] = {Seconds(1e-3 * ms), Seconds(1e-3 * ms)};
    }
    truth.transfer_latency = model::TransferLatency(latencies);
    model::RunTrace drawn = trace;
    Draw& draw = all.emplace_back();
    const auto after = calibration::predict(truth, trace, everything);
    for (std::size_t p = 0; p < after.size(); ++p) {
      const double change = after[p].replayed_time / before[p].replayed_time;
      drawn.plans[p].iteration_time = change * trace.plans[p].iteration_time;
      draw.seen += std::abs(change - 1) > kSeen ? 1 : 0;
    }
    calibration::CalibrationOptions options;
    options.other_links = true;
    const auto fitted = calibration::calibrate(drawn, everything, options);
    if (!fitted) continue;
    const Planned planned = plan(*fitted, drawn);
    const model::ComputationDag real = dag_of(truth, trace);
    draw.one = outcome(real, moved(planned.dag, planned.one, real));
    draw.all = outcome(real, moved(planned.dag, planned.all, real));
  }
  return all;
}

int run(int draws, const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "measured")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kSuffix)) names.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  std::ranges::sort(names);
  fmt::print(
      "| workload | sets of links | a plan for the chosen links may be late by, % | saves, % | for all links, % | "
      "calibrating, s of CPU |\n| --- | --- | --- | --- | --- | --- |\n");
  std::string table =
      "\n| workload | draws | shown by no run, by one | late by 0.2 % at most | largest, % | for all links: late by "
      "0.2 % "
      "at most | largest, % | saves, mean % | for all links, % |\n| --- | --- | --- | --- | --- | --- | --- | --- | "
      "--- |\n";
  for (const std::string& name : names) {
    const std::string base = (folder / "measured" / name).string();
    const auto trace = formats::read_run_trace(base + kSuffix, base + ".iters.csv");
    if (!trace) {
      fmt::print(stderr, "{}\n", trace.error().message);
      return 1;
    }
    const auto everything = all_plans(*trace);
    calibration::CalibrationOptions options;
    options.other_links = true;
    const double began_s = thread_cpu_s();
    const auto fitted = calibration::calibrate(*trace, everything, options);
    const double took_s = thread_cpu_s() - began_s;
    // The drawn links are two exceptions among equal ones.
    calibration::CalibrationOptions equal;
    equal.timing.details = {calibration::LinkDetail::one, calibration::LinkDetail::per_node};
    const auto simple = calibration::calibrate(*trace, everything, equal);
    if (!fitted || !simple) return 1;
    const Planned planned = plan(*fitted, *trace);
    fmt::print("| {} | {} | {:.3f} | {:.2f} | {:.2f} | {:.1f} |\n", name, planned.sets + 1, 100 * planned.may_be_late,
               outcome(planned.dag, planned.one).saving_pct, outcome(planned.dag, planned.all).saving_pct, took_s);
    if (draws == 0) continue;
    const std::vector<Draw> all = draw_links(*trace, *simple, draws);
    const auto late_one = [](const Draw& d) { return d.one.late_pct; };
    const auto late_all = [](const Draw& d) { return d.all.late_pct; };
    const auto in_time = [&](double (*late_pct)(const Draw&)) {
      return std::ranges::count_if(all, [&](const Draw& d) { return late_pct(d) <= kInTime_pct; });
    };
    table += fmt::format("| {} | {} | {}, {} | {} | {:.3f} | {} | {:.3f} | {:.2f} | {:.2f} |\n", name, draws,
                         std::ranges::count(all, 0, &Draw::seen), std::ranges::count(all, 1, &Draw::seen),
                         in_time(late_one), largest_of(all, late_one), in_time(late_all), largest_of(all, late_all),
                         mean_of(all, [](const Draw& d) { return d.one.saving_pct; }),
                         mean_of(all, [](const Draw& d) { return d.all.saving_pct; }));
  }
  fmt::print("{}", table);
  return 0;
}

}  // namespace
}  // namespace perseus

int main(int argc, char** argv) {
  return perseus::run(argc > 1 ? std::atoi(argv[1]) : 20, argc > 2 ? argv[2] : PERSEUS_SHARED_DATA);
}
