// Prints the tables of docs/fidelity.md: measured runs against predictions of plans left out, savings of the planner on
// the rebuilt profiles against those of the published plans in their runs, and the values of tables 3 and 4.
//
// usage: fidelity_report [FOLDER]   FOLDER has measured/*.ops.csv.gz and *.iters.csv; tables 3 and 4, if present, are
//                                   FOLDER/../paper/table*.csv
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/calibration/calibrate.h"
#include "evaluation/calibration/least_squares.h"
#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/run_trace_csv.h"
#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "tests/support/jitter.h"

namespace perseus {
namespace {

constexpr int folds = 5;
constexpr std::array ratios = {1.05, 1.1, 1.2, 1.3, 1.4, 1.5};
const std::string suffix = ".ops.csv.gz";

struct Workload {
  std::string name;
  model::RunTrace trace;
  std::vector<Seconds> mean_times;  ///< per plan; the trace has medians of iterations
  std::vector<calibration::Prediction> predictions;
  std::vector<calibration::Prediction>
      one_latency_predictions;  ///< one latency for all boundaries, fitted by least squares
  calibration::Calibration calibration;
};

std::vector<int> all_plans(const model::RunTrace& trace) {
  std::vector<int> plans(trace.plans.size());
  std::iota(plans.begin(), plans.end(), 0);
  return plans;
}

/// Mean iteration times, in the order of the trace's plans: a reader that sees no medians takes the means.
Result<std::vector<Seconds>> mean_times_of(const std::string& ops, const std::string& iterations) {
  const auto ops_text = formats::read_file(ops);
  if (!ops_text) return ops_text.error();
  auto iterations_text = formats::read_file(iterations);
  if (!iterations_text) return iterations_text.error();
  for (std::size_t at; (at = iterations_text->find("_med_")) != std::string::npos;) (*iterations_text)[at + 1] = 'x';
  const auto trace = formats::parse_run_trace({*ops_text, ops}, {*iterations_text, iterations});
  if (!trace) return trace.error();
  std::vector<Seconds> times;
  for (const model::TracedPlan& plan : trace->plans) times.push_back(plan.iteration_time);
  return times;
}

Result<Workload> read(const std::filesystem::path& ops) {
  const std::string base = ops.string().substr(0, ops.string().size() - suffix.size());
  auto trace = formats::read_run_trace(ops.string(), base + ".iters.csv");
  if (!trace) return trace.error();
  auto mean_times = mean_times_of(ops.string(), base + ".iters.csv");
  if (!mean_times) return mean_times.error();
  auto predictions = calibration::cross_validate(*trace, folds);
  if (!predictions) return predictions.error();
  calibration::CalibrationOptions least_squares;
  least_squares.timing.details = {calibration::LinkDetail::one};
  least_squares.timing.errors = calibration::ErrorModel::normal;
  auto one_latency = calibration::cross_validate(*trace, folds, least_squares);
  if (!one_latency) return one_latency.error();
  auto calibration = calibration::calibrate(*trace, all_plans(*trace));
  if (!calibration) return calibration.error();
  return Workload{std::filesystem::path(base).filename().string(),
                  *std::move(trace),
                  *std::move(mean_times),
                  *std::move(predictions),
                  *std::move(one_latency),
                  *std::move(calibration)};
}

model::Plan all_maximum_clock(const model::ComputationDag& dag) { return model::Plan(dag.computations.size()); }

double percent_saved(Joules energy, Joules reference) { return 100 * (1 - energy / reference); }

/// Measured plans: all-maximum-clock is the mean of the warm-up plans, where every computation ran at one clock.
struct Measured {
  Seconds time;
  Joules energy;
  Watts blocking;  ///< of the whole pipeline
};

bool is_all_maximum(const model::TracedPlan& plan) {
  return std::ranges::all_of(plan.stages, [&](const auto& stage) {
    return std::ranges::all_of(stage,
                               [&](const model::TracedComputation& c) { return c.clock == plan.stages[0][0].clock; });
  });
}

Measured measured_all_maximum(const Workload& w) {
  Measured mean;
  int count = 0;
  for (const model::TracedPlan& plan : w.trace.plans) {
    if (!is_all_maximum(plan)) continue;
    mean.time += plan.iteration_time;
    mean.energy += plan.total_energy();
    ++count;
  }
  mean.time = mean.time / count;
  mean.energy = mean.energy / count;
  mean.blocking = w.calibration.power.blocking().value * w.trace.num_stages();
  return mean;
}

void print_predictions(const std::vector<Workload>& workloads) {
  fmt::print(
      "| workload | fit | plans | time, mean error % | largest | replayed, mean % | bar % | covers % | energy, rms % | "
      "largest | bar % | covers % |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Workload& w : workloads) {
    for (const bool before : {true, false}) {
      const calibration::PredictionErrors e =
          calibration::errors_of(before ? w.one_latency_predictions : w.predictions);
      fmt::print("| {} | {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.0f} | {:.3f} | {:.3f} | {:.3f} | {:.0f} |\n",
                 w.name, before ? "one latency, least squares" : name_of(w.calibration.timing.best().links.detail),
                 w.trace.plans.size(), 100 * e.time_mean, 100 * e.time_max, 100 * e.replay_mean, 100 * e.time_bar,
                 100 * e.time_coverage, 100 * e.energy_rms, 100 * e.energy_max, 100 * e.energy_bar,
                 100 * e.energy_coverage);
    }
  }
}

void print_constants(const std::vector<Workload>& workloads) {
  fmt::print(
      "\n| workload | transfer, ms | senders | loading first, last, ms | tail, ms | blocking power, W |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const Workload& w : workloads) {
    const calibration::Calibration& c = w.calibration;
    const auto ms = [](Seconds value, Seconds stddev) {
      return fmt::format("{:.2f} ± {:.2f}", 1e3 * value.value(), 1e3 * stddev.value());
    };
    std::string latency = ms(c.transfer_latency.common, c.transfer_latency_stddev.common);
    if (const auto& boundaries = c.transfer_latency.boundaries; !boundaries.empty()) {
      std::vector<std::string> latencies;
      for (std::size_t b = 0; b < boundaries.size(); ++b) {
        const model::BoundaryLatency& error = c.transfer_latency_stddev.boundaries[b];
        latencies.push_back(ms(boundaries[b].forward, error.forward));
        if (boundaries[b].forward != boundaries[b].backward)
          latencies.back() += fmt::format(" / {}", ms(boundaries[b].backward, error.backward));
      }
      latency = fmt::format("{}", fmt::join(latencies, "; "));
    }
    std::vector<std::string> loading;
    for (const calibration::StageLoading& l : c.loading)
      loading.push_back(
          fmt::format("{:.2f} ± {:.2f}", 1e3 * l.per_microbatch.value.value(), 1e3 * l.per_microbatch.stddev.value()));
    fmt::print("| {} | {} | {} | {} | {:.2f} ± {:.2f} | {:.1f} ± {:.1f} |\n", w.name, latency,
               name_of(c.timing.best().sending), fmt::join(loading, ", "), 1e3 * c.tail.value.value(),
               1e3 * c.tail.stddev.value(), c.power.blocking().value.value(), c.power.blocking().stddev.value());
  }
}

/// Whether one flag for all senders is enough: left-out errors of replayed plans, where senders wait everywhere,
/// nowhere, within nodes only, and between nodes only.
void print_senders(const std::vector<Workload>& workloads) {
  calibration::CalibrationOptions options;
  options.timing.details = {calibration::LinkDetail::one, calibration::LinkDetail::per_node,
                            calibration::LinkDetail::per_boundary};
  options.timing.sending = {calibration::Sending::waits, calibration::Sending::computes,
                            calibration::Sending::waits_within_nodes, calibration::Sending::waits_between_nodes};
  fmt::print("\n| workload | link model |");
  for (const calibration::Sending sending : options.timing.sending) fmt::print(" {} |", name_of(sending));
  fmt::print(" mixed clearly better |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Workload& w : workloads) {
    const auto calibration = calibration::calibrate(w.trace, all_plans(w.trace), options);
    if (!calibration) continue;
    const auto& all = calibration->timing.candidates;
    for (std::size_t first = 0; first + 3 < all.size(); first += 4) {
      const auto* waits = &all[first];
      fmt::print("| {} | {} |", w.name, name_of(waits[0].links.detail));
      for (int s = 0; s < 4; ++s) fmt::print(" {:.4f} |", 100 * waits[s].left_out_mean());
      const auto& uniform = waits[waits[0].left_out_mean() < waits[1].left_out_mean() ? 0 : 1];
      const auto& mixed = waits[waits[2].left_out_mean() < waits[3].left_out_mean() ? 2 : 3];
      fmt::print(" {} |\n",
                 calibration::clearly_smaller(mixed.left_out_errors, uniform.left_out_errors) ? "yes" : "no");
    }
  }
}

/// Mean and standard error, in percent, by which measured iterations (medians or means) take longer than their replay:
/// at maximum clock, or under published plans within 2 % of its time. "-" for fewer than two plans.
std::string beyond_replay(const Workload& w, bool medians, bool at_maximum) {
  const Seconds near = 1.02 * measured_all_maximum(w).time;
  std::vector<double> beyond_pct;
  for (const calibration::Prediction& p : w.predictions) {
    const model::TracedPlan& plan = w.trace.plans[p.plan];
    if (at_maximum ? !is_all_maximum(plan) : plan.kind != "perseus" || plan.iteration_time > near) continue;
    const Seconds measured = medians ? p.measured_time : w.mean_times[p.plan];
    beyond_pct.push_back(100 * (measured / p.replayed_time - 1));
  }
  if (beyond_pct.size() < 2) return "-";
  const auto n = static_cast<double>(beyond_pct.size());
  const double mean = std::accumulate(beyond_pct.begin(), beyond_pct.end(), 0.0) / n;
  double squares = 0;
  for (const double pct : beyond_pct) squares += (pct - mean) * (pct - mean);
  return fmt::format("{:+.3f} ± {:.3f}", mean, std::sqrt(squares / (n - 1) / n));
}

/// What computations that vary from iteration to iteration add to iterations at maximum clock and to planned ones.
void print_jitter(const std::vector<Workload>& workloads) {
  fmt::print(
      "\n| workload | iterations | independent % | of a stage % | of all % | later at maximum clock % | plan for T_max "
      "| "
      "plan for 1.1 T_max | with the stage's part: maximum clock | T_max | 1.1 T_max | median beyond replay, maximum "
      "clock % | published plans | mean beyond replay, maximum clock % | published plans |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Workload& w : workloads) {
    const std::vector<int> everything = all_plans(w.trace);
    const model::Profile profile = calibration::make_profile(w.calibration, w.trace, everything);
    const model::ComputationDag dag = model::build_dag(profile, w.calibration.schedule, w.calibration.costs()).value();
    const model::Frontier frontier = planner::plan_exact(dag);
    const Seconds t_max = checker::run_plan(dag, all_maximum_clock(dag)).makespan;
    const auto measured = calibration::measured_jitter(w.trace);
    if (!measured) continue;
    const calibration::Jitter jitter = *measured;
    fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} |", w.name, w.trace.plans.front().iterations,
               100 * jitter.independent, 100 * jitter.of_stage, 100 * jitter.of_iteration);
    for (const double of_stage : {0.0, jitter.of_stage}) {
      for (const model::Plan& plan : {all_maximum_clock(dag), planner::look_up(frontier, t_max).plan,
                                      planner::look_up(frontier, 1.1 * t_max).plan}) {
        fmt::print(" {:.3f} |", 100 * calibration::lateness(dag, plan, {jitter.independent, of_stage, 0}));
      }
    }
    for (const bool medians : {true, false})
      fmt::print(" {} | {} |", beyond_replay(w, medians, true), beyond_replay(w, medians, false));
    fmt::print("\n");
  }
}

/// The paper's names of the workloads with published runs.
struct PaperName {
  std::string_view workload, gpu, model;
};
constexpr std::array paper_names = {PaperName{"A100_bert-huge-uncased_pp4", "A100-PCIe", "BERT 1.3B"},
                                    PaperName{"A100_gpt3-xl_pp4", "A100-PCIe", "GPT-3 1.3B"},
                                    PaperName{"A40_bloom-3b_pp8", "A40", "Bloom 3B"},
                                    PaperName{"A40_wide-resnet101_8_pp8", "A40", "Wide-ResNet 1.5B"}};

/// The rows of tables 3 and 4 of one workload and method, as printed; nothing if the files are absent.
void print_paper_row(const std::filesystem::path& folder, const Workload& w, const std::string& method) {
  const auto name = std::ranges::find(paper_names, w.name, &PaperName::workload);
  if (name == paper_names.end()) return;
  const auto row_of = [&](const char* file, bool with_method) {
    std::vector<std::string> cells;
    const auto text = formats::read_file((folder / "../paper" / file).string());
    if (!text) return cells;
    formats::CsvReader csv(*text, file);
    for (auto more = csv.next(); more && *more; more = csv.next()) {
      const auto& f = csv.fields();
      if (f.size() < 7 || f[0] != name->gpu || f[2] != name->model || (with_method && f[3] != method)) continue;
      cells.assign(f.begin(), f.end());
    }
    return cells;
  };
  const std::vector<std::string> table3 = row_of("table3_intrinsic_savings.csv", false);
  const std::vector<std::string> table4 = row_of("table4_straggler_savings.csv", true);
  if (table3.empty() || table4.empty()) return;
  const std::size_t first = method == "perseus" ? 3 : 4;
  fmt::print("\n| | {}, as printed in the paper | {} | +{} |", method, table3[first], table3[first + 2]);
  for (std::size_t i = 4; i < table4.size(); ++i) fmt::print(" {} |", table4[i]);
}

void print_savings(const std::filesystem::path& folder, const std::vector<Workload>& workloads) {
  fmt::print("\n| workload | who | saving at T_min % | slowdown % |");
  for (const double r : ratios) fmt::print(" {} |", r);
  fmt::print("\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Workload& w : workloads) {
    const std::vector<int> everything = all_plans(w.trace);
    const model::Profile profile = calibration::make_profile(w.calibration, w.trace, everything);
    const model::ComputationDag dag = model::build_dag(profile, w.calibration.schedule, w.calibration.costs()).value();
    const model::Frontier frontier = planner::plan_exact(dag);
    const checker::PlanRun before = checker::run_plan(dag, all_maximum_clock(dag));
    const model::FrontierPoint& fastest = frontier.points.back();
    fmt::print("| {} | ours, predicted | {:.1f} | {:+.1f} |", w.name, percent_saved(fastest.energy, before.energy),
               100 * (fastest.time / before.makespan - 1));
    for (const double r : ratios) {
      const Seconds straggler = before.makespan * r;
      const model::FrontierPoint& point = planner::look_up(frontier, straggler);
      const Joules reference = before.effective_energy + dag.total_blocking_power() * straggler;
      fmt::print(" {:.1f} |",
                 percent_saved(point.effective_energy + dag.total_blocking_power() * straggler, reference));
    }
    const Measured all_maximum = measured_all_maximum(w);
    for (const std::string kind : {"perseus", "envpipe"}) {
      std::vector<const model::TracedPlan*> plans;
      for (const model::TracedPlan& plan : w.trace.plans) {
        if (plan.kind == kind) plans.push_back(&plan);
      }
      if (plans.empty()) continue;
      const model::TracedPlan& quickest = **std::ranges::min_element(plans, {}, &model::TracedPlan::iteration_time);
      fmt::print("\n| | {} plans, measured | {:.1f} | {:+.1f} |", kind,
                 percent_saved(quickest.total_energy(), all_maximum.energy),
                 100 * (quickest.iteration_time / all_maximum.time - 1));
      for (const double r : ratios) {
        const Seconds straggler = all_maximum.time * r;
        const auto waited = [&](Joules energy, Seconds time) {
          return energy + all_maximum.blocking * (straggler - time);
        };
        // The published rule: the slowest plan no slower than the straggler.
        const model::TracedPlan* chosen = &quickest;
        for (const model::TracedPlan* plan : plans) {
          if (plan->iteration_time <= straggler && plan->iteration_time > chosen->iteration_time) chosen = plan;
        }
        fmt::print(" {:.1f} |", percent_saved(waited(chosen->total_energy(), chosen->iteration_time),
                                              waited(all_maximum.energy, all_maximum.time)));
      }
      print_paper_row(folder, w, kind);
    }
    fmt::print("\n");
  }
}

void print_plans(const Workload& w) {
  fmt::print(
      "\n### {}\n\n| plan | measured s | predicted s | error % | replayed % | measured J | predicted J | error % |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
      w.name);
  for (const calibration::Prediction& p : w.predictions) {
    const model::TracedPlan& plan = w.trace.plans[p.plan];
    fmt::print("| {} {} | {:.3f} | {:.3f} | {:+.3f} | {:+.3f} | {:.0f} | {:.0f} | {:+.3f} |\n", plan.id, plan.kind,
               p.measured_time.value(), p.predicted_time.value(), 100 * p.time_error(), 100 * p.replay_error(),
               p.measured_energy.value(), p.predicted_energy.value(), 100 * p.energy_error());
  }
}

}  // namespace
}  // namespace perseus

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : PERSEUS_SHARED_DATA;
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "measured", failure)) {
    if (entry.path().string().ends_with(perseus::suffix)) files.push_back(entry.path());
  }
  if (files.empty()) {
    fmt::print(stderr, "{}: no *{}\n", (folder / "measured").string(), perseus::suffix);
    return 1;
  }
  std::ranges::sort(files);
  std::vector<perseus::Workload> workloads;
  for (const auto& file : files) {
    auto workload = perseus::read(file);
    if (!workload) {
      fmt::print(stderr, "{}\n", workload.error().message);
      return 1;
    }
    workloads.push_back(*std::move(workload));
  }
  perseus::print_predictions(workloads);
  perseus::print_constants(workloads);
  perseus::print_senders(workloads);
  perseus::print_jitter(workloads);
  perseus::print_savings(folder, workloads);
  for (const auto& workload : workloads) perseus::print_plans(workload);
  return 0;
}
