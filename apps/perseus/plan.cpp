// perseus plan: computes the frontier of deployable clock plans from a profile and a schedule.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <cmath>
#include <iterator>
#include <memory>

#include "command.h"
#include "effort.h"
#include "interrupt.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/number.h"
#include "io/report/format.h"
#include "io/report/summary.h"
#include "io/report/table.h"
#include "io/report/timeline.h"
#include "pipeline.h"
#include "plan_output.h"
#include "plan_search.h"
#include "planning/baselines/best_of_all.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/perseus_method.h"
#include "point_figures.h"
#include "progress.h"
#include "server/profiling/expected_frontier.h"
#include "slowdown.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr int kRowsShown = 12;
constexpr double kLeastAdvised_pct = 0.05;  ///< a tolerance that saves less is not worth a line

struct PlanOptions {
  PipelineOptions pipeline;
  SearchOptions search;
  std::string method = "exact";
  double tau_s = 0.001;
  std::string effort = "normal";
  int deadlines = planner::PlannerOptions{}.deadlines;
  double switch_latency_s = 0;
  double min_dwell_s = 0;
  std::string slowdown = "0%";
  std::string straggler;
  bool bound_only = false;
  std::string out;
  std::optional<bool> progress;
};

/// "1.2" is T'/T, where T is the time without stragglers, "3.5s" is T' itself.
struct Straggler {
  std::optional<double> ratio;
  std::optional<Seconds> deadline;
};

Result<Straggler> parse_straggler(const std::string& text) {
  if (text.empty()) return Straggler{};
  const bool in_seconds = text.ends_with('s');
  const auto value = formats::number_in<double>(std::string_view(text).substr(0, text.size() - (in_seconds ? 1 : 0)));
  if (!value || !std::isfinite(*value) || *value < (in_seconds ? 0 : 1)) {
    return Error{ErrorCode::usage,
                 fmt::format("--straggler: '{}' is neither a ratio T'/T of at least 1, like 1.2, nor a time with its "
                             "unit, like 3.5s",
                             text)};
  }
  return in_seconds ? Straggler{{}, Seconds(*value)} : Straggler{*value, {}};
}

/// `deadline`: realized too, besides T_max and T_max stretched by the tolerance.
Result<model::Frontier> make_frontier(const model::ComputationDag& dag, const PlanOptions& options,
                                      const model::DefaultRule& rule, const std::string& what = "planning",
                                      const std::vector<Seconds>& deadlines = {}) {
  ProgressLine progress(what, options.progress);
  if (options.method == "perseus") {
    Result<planner::PerseusRun> run = planner::plan_perseus(dag, {Seconds(options.tau_s), progress.callback()});
    if (!run) return run.error();
    model::Frontier frontier = run->frontier();
    frontier.bound = planner::compute_lower_bound(dag).bound;
    for (model::FrontierPoint& point : frontier.points) {
      point.bound = frontier.bound.at(point.time) + dag.total_blocking_power() * point.time;
    }
    return frontier;
  }
  planner::PlannerOptions planner;
  planner.effort = effort_named(options.effort);
  planner.deadlines = options.deadlines;
  planner.switch_latency = Seconds(options.switch_latency_s);
  planner.min_dwell = Seconds(options.min_dwell_s);
  if (rule.slowdown > 0)
    planner.also = {(1 + rule.slowdown) * report::timeline_of(dag, model::all_maximum_clock(dag)).makespan};
  std::ranges::copy(deadlines, std::back_inserter(planner.also));
  planner.progress = progress.callback();
  baselines::OtherMethods others;
  if (planner.effort == planner::Effort::high) others.published_unit_time = Seconds(options.tau_s);
  return baselines::plan_best_of_all(dag, planner, others);
}

/// Points evenly spread over time; the first, the last, the default and the straggler's always.
std::vector<int> representative_points(const model::Frontier& frontier, const report::ReportSummary& summary) {
  const Seconds slowest = frontier.points.front().time;
  const Seconds fastest = frontier.points.back().time;
  std::vector<int> rows{0, static_cast<int>(frontier.points.size()) - 1, summary.default_point};
  for (int row = 1; row + 1 < kRowsShown; ++row) {
    rows.push_back(report::point_for(frontier, slowest + (double(row) / (kRowsShown - 1)) * (fastest - slowest)));
  }
  if (summary.straggler) rows.push_back(summary.straggler->point);
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

/// Rounding may leave a gap of -1e-13 %: print it, and what rounds to -0.000 %, as 0.
std::string gap_text(double pct) { return fmt::format("{:.3f} %", std::abs(pct) < 0.0005 ? 0 : pct); }

/// The default plan, T_min beside it, and the saving for a little more time.
std::string default_text(const report::ReportSummary& s) {
  const auto slower = [&](Seconds time) {
    const double pct = 100 * ((time - s.all_max.time) / s.all_max.time);
    return std::abs(pct) < 0.0005
               ? std::string("as fast as maximum clock")
               : fmt::format("{:.3f} % {} than maximum clock", std::abs(pct), pct < 0 ? "faster" : "slower");
  };
  std::string text = fmt::format("default plan: point {}, {}, {}; saves {:.2f} %\n", s.default_point,
                                 report::text_of(s.default_plan.time), slower(s.default_plan.time), s.saving_pct);
  if (s.default_plan.time != s.fastest.time) {
    text += fmt::format("fastest plan: {}, {}; saves {:.2f} %\n", report::text_of(s.fastest.time),
                        slower(s.fastest.time), s.fastest_saving_pct);
  }
  for (const report::ToleranceAdvice& a : s.tolerances) {
    if (a.more_pct < kLeastAdvised_pct) continue;
    text +=
        fmt::format("with --slowdown {0:g}%: {0:g} % of time saves {1:.2f} points more\n", a.slowdown_pct, a.more_pct);
  }
  return text;
}

std::string text_report(const Pipeline& pipeline, const model::Frontier& frontier, const report::ReportSummary& summary,
                        const std::vector<PointFigures>& figures) {
  std::string text;
  for (const report::ReportFact& fact : pipeline.facts) text += fmt::format("{}: {}\n", fact.name, fact.value);
  report::TextTable table({"point", "time", "slowdown", "energy", "saving", "gap", "power", "changes"});
  for (const int point : representative_points(frontier, summary)) {
    const PointFigures& f = figures[point];
    table.add({std::to_string(f.point), report::text_of(f.time), fmt::format("{:.2f} %", f.slowdown_pct),
               report::text_of(f.energy), fmt::format("{:.2f} %", f.saving_pct), gap_text(f.gap_pct),
               report::text_of(f.average_power), std::to_string(f.clock_changes)});
  }
  text += "\n" + table.to_string() + "\n";
  text += fmt::format("everything at maximum clock: {}, {} (the reference of 'saving')\n",
                      report::text_of(summary.all_max.time), report::text_of(summary.all_max.energy));
  text += default_text(summary);
  if (summary.straggler) {
    text += fmt::format(
        "straggler at T' = {}: point {} needs {} while it waits for it, {:.2f} % less than everything at "
        "maximum clock\n",
        report::text_of(summary.straggler->deadline), summary.straggler->point,
        report::text_of(summary.straggler->energy), summary.straggler->saving_pct);
  }
  if (const PointFigures& chosen = figures[summary.default_point]; chosen.error_bars.energy_stddev > Joules(0)) {
    text +=
        fmt::format("the default plan is known to +- {} and +- {}, by the spread of the profile's measurements\n",
                    report::text_of(chosen.error_bars.time_stddev), report::text_of(chosen.error_bars.energy_stddev));
  }
  if (const Seconds late = figures[summary.default_point].lateness; late != Seconds(0)) {
    text += fmt::format(
        "its time is the expected one; the means of the noisy profile alone would claim {}, {:.3f} % less\n",
        report::text_of(summary.default_plan.time - late), 100 * (late / summary.default_plan.time));
  }
  if (const auto dearest = std::ranges::max_element(figures, {}, &PointFigures::clock_limit_cost);
      dearest->clock_limit_cost > Joules(0)) {
    Joules sum;
    for (const PointFigures& f : figures) sum += f.clock_limit_cost;
    text +=
        fmt::format("slow clocks cost {} an iteration in the mean, {} ({:.2f} %) at point {}, where they cost most\n",
                    report::text_of(sum / double(figures.size())), report::text_of(dearest->clock_limit_cost),
                    100 * (dearest->clock_limit_cost / dearest->energy), dearest->point);
  }
  text += fmt::format("{} points from {} to {}; gap to the bound: mean {}, largest {}\n", figures.size(),
                      report::text_of(figures.back().time), report::text_of(figures.front().time),
                      gap_text(summary.gap_mean_pct), gap_text(summary.gap_max_pct));
  return text;
}

json::object json_of(const report::IterationCost& cost) {
  return {{"time_s", cost.time.value()},
          {"energy_j", cost.energy.value()},
          {"effective_energy_j", cost.effective_energy.value()}};
}

/// Times and energies are expected ones; beside them those of the means of a noisy profile.
json::object default_json(const report::ReportSummary& summary, const PointFigures& figures) {
  json::object plan = json_of(summary.default_plan);
  plan["time_of_means_s"] = (summary.default_plan.time - figures.lateness).value();
  plan["time_stddev_s"] = figures.error_bars.time_stddev.value();
  plan["energy_stddev_j"] = figures.error_bars.energy_stddev.value();
  plan["point"] = summary.default_point;
  plan["slowdown_pct"] = 100 * summary.rule.slowdown;
  plan["saving_pct"] = summary.saving_pct;
  return plan;
}

json::object json_report(const Pipeline& pipeline, const report::ReportSummary& summary,
                         const std::vector<PointFigures>& figures) {
  json::array points;
  for (const PointFigures& f : figures) {
    json::object point;
    for (const Column& column : point_columns()) {
      const double value = column.value(f);
      point[column.name] = column.is_count ? json::value(static_cast<int>(value)) : json::value(value);
    }
    for (const RankColumn& column : rank_columns()) {
      json::array values;
      for (const checker::ClockChanges& rank : f.per_rank) {
        const double value = column.value(rank);
        values.push_back(column.is_count ? json::value(static_cast<int>(value)) : json::value(value));
      }
      point[column.name] = std::move(values);
    }
    points.push_back(std::move(point));
  }
  json::object inputs;
  for (const report::ReportFact& fact : pipeline.facts) inputs[fact.name] = fact.value;
  json::object fastest = json_of(summary.fastest);
  fastest["saving_pct"] = summary.fastest_saving_pct;
  json::array tolerances;
  for (const report::ToleranceAdvice& a : summary.tolerances) {
    tolerances.push_back(json::object{
        {"slowdown_pct", a.slowdown_pct}, {"point", a.point}, {"saving_pct", a.saving_pct}, {"more_pct", a.more_pct}});
  }
  json::object all{{"inputs", std::move(inputs)},
                   {"blocking_power_w", pipeline.dag.blocking_power.value()},
                   {"blocking_power_is_a_guess", pipeline.default_blocking},
                   {"t_min_s", summary.t_min.value()},
                   {"t_star_s", summary.t_star.value()},
                   {"gap_mean_pct", summary.gap_mean_pct},
                   {"gap_max_pct", summary.gap_max_pct},
                   {"saving_pct", summary.saving_pct},
                   {"t_max_s", summary.all_max.time.value()},
                   {"default_plan", default_json(summary, figures[summary.default_point])},
                   {"fastest_plan", std::move(fastest)},
                   {"tolerances", std::move(tolerances)},
                   {"all_maximum_clock", json_of(summary.all_max)},
                   {"minimum_energy", json_of(summary.min_energy)},
                   {"points", std::move(points)}};
  if (summary.straggler) {
    all["straggler"] = json::object{{"deadline_s", summary.straggler->deadline.value()},
                                    {"point", summary.straggler->point},
                                    {"energy_j", summary.straggler->energy.value()},
                                    {"all_maximum_clock_energy_j", summary.straggler->all_max_energy.value()},
                                    {"saving_pct", summary.straggler->saving_pct}};
  }
  return all;
}

void print_bound(const model::ComputationDag& dag, const model::LowerBound& bound, bool as_json) {
  const auto energy_at = [&](const model::BoundVertex& v) {
    return v.effective_energy + dag.total_blocking_power() * v.time;
  };
  if (as_json) {
    json::array vertices;
    for (const model::BoundVertex& v : bound.vertices) {
      vertices.push_back(json::object{{"time_s", v.time.value()},
                                      {"energy_j", energy_at(v).value()},
                                      {"effective_energy_j", v.effective_energy.value()}});
    }
    print(formats::json_text(json::object{{"bound", std::move(vertices)}}) + "\n");
    return;
  }
  std::string text = "time_s,energy_j,effective_energy_j\n";
  for (const model::BoundVertex& v : bound.vertices) {
    text += fmt::format("{:.12g},{:.12g},{:.12g}\n", v.time.value(), energy_at(v).value(), v.effective_energy.value());
  }
  print(text);
}

formats::Metadata metadata_of(const PlanOptions& options, const model::DefaultRule& rule) {
  return {{"method", options.method},
          {"switch_latency_s", fmt::format("{}", options.switch_latency_s)},
          {"min_dwell_s", fmt::format("{}", options.min_dwell_s)},
          {kSlowdownKey, fmt::format("{}", rule.slowdown)}};
}

Result<int> search_configurations(const PlanOptions& options, const model::DefaultRule& rule, bool as_json) {
  if (options.bound_only || !options.straggler.empty()) {
    return Error{ErrorCode::usage,
                 "--bound-only, --straggler: not supported with several configurations; plan one configuration"};
  }
  SearchPlanner planner;
  planner.rule = rule;
  planner.switch_latency = Seconds(options.switch_latency_s);
  planner.metadata = metadata_of(options, rule);
  planner.out = options.out;
  // All are planned for the time of the first one, the reference, too.
  std::vector<Seconds> deadlines;
  planner.plan = [&](const model::ComputationDag& dag, const std::string& name) {
    if (deadlines.empty()) {
      const Seconds t_max = report::timeline_of(dag, model::all_maximum_clock(dag)).makespan;
      deadlines = {t_max, (1 + rule.slowdown) * t_max};
    }
    return make_frontier(dag, options, rule, "planning " + name, deadlines);
  };
  return run_plan_search(options.pipeline, options.search, planner, as_json);
}

/// T' as a time.
std::optional<Seconds> deadline_of(const Straggler& straggler, const model::ComputationDag& dag,
                                   const model::Frontier& frontier, const model::DefaultRule& rule) {
  if (!straggler.ratio) return straggler.deadline;
  const Seconds t_max = report::t_max_of(dag, frontier);
  const Seconds slowed = *straggler.ratio * time_without_straggler(frontier, t_max, rule);
  return std::max(slowed, model::planned_time(frontier, t_max, rule, slowed));
}

Result<int> run_plan(const PlanOptions& options, bool as_json) {
  const Result<Straggler> straggler = parse_straggler(options.straggler);
  if (!straggler) return straggler.error();
  if (options.method == "perseus" && (options.switch_latency_s > 0 || options.min_dwell_s > 0)) {
    return Error{ErrorCode::usage,
                 "--switch-latency, --min-dwell: not supported by the published method; use --method exact"};
  }
  const Result<double> slowdown = slowdown_of(options.slowdown);
  if (!slowdown) return slowdown.error();
  const model::DefaultRule rule = default_rule(options.method, *slowdown);
  if (is_search(options.pipeline, options.search)) return search_configurations(options, rule, as_json);
  const Result<Pipeline> pipeline = read_pipeline(options.pipeline);
  if (!pipeline) return pipeline.error();
  const model::ComputationDag& dag = pipeline->dag;
  if (pipeline->default_blocking) {
    note(fmt::format("no --blocking-power was given: {:.3g} W is assumed, a fifth of the highest power in the profile",
                     dag.blocking_power.value()));
  }
  if (options.bound_only) {
    print_bound(dag, planner::compute_lower_bound(dag).bound, as_json);
    return 0;
  }
  if (!options.out.empty()) {
    if (Status writable = check_plan_output(options.out); !writable) return writable.error();
  }

  const auto began = std::chrono::steady_clock::now();
  Result<model::Frontier> frontier = make_frontier(dag, options, rule);
  if (!frontier) return frontier.error();
  StopCheck never;
  frontier = profiling::expected_frontier(dag, pipeline->drawn, *std::move(frontier), never);
  if (!frontier) return frontier.error();
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

  const std::optional<Seconds> deadline = deadline_of(*straggler, dag, *frontier, rule);
  const report::ReportSummary summary = report::summarize(dag, *frontier, deadline, rule);
  const std::vector<PointFigures> figures = figures_of(dag, *frontier, Seconds(options.switch_latency_s));
  if (!options.out.empty()) {
    formats::Metadata metadata = metadata_of(options, rule);
    for (const report::ReportFact& fact : pipeline->facts) metadata[fact.name] = fact.value;
    const Status written = write_plan_output(options.out, *pipeline, *frontier, figures, deadline, rule, metadata);
    die_if_interrupted();
    if (!written) return written.error();
  }
  if (as_json) {
    json::object all = json_report(*pipeline, summary, figures);
    all["planning_s"] = took_s;
    if (!options.out.empty()) all["out"] = options.out;
    print(formats::json_text(all) + "\n");
    return 0;
  }
  print(text_report(*pipeline, *frontier, summary, figures));
  print(fmt::format("planned in {}\n", report::text_of(Seconds(took_s))));
  if (!options.out.empty()) print(fmt::format("written to {0}; to look at: {0}/report.html\n", options.out));
  return 0;
}

void add_planner_options(CLI::App& plan, PlanOptions& options) {
  const std::string planner = "The planner";
  plan.add_option("--method", options.method, "Planner: exact, or perseus, the published algorithm")
      ->capture_default_str()
      ->check(CLI::IsMember({"exact", "perseus"}).description(""))
      ->type_name("NAME")
      ->group(planner);
  plan.add_option("--tau", options.tau_s,
                  "Time unit of the published method, in seconds (with --method perseus or --effort high)")
      ->capture_default_str()
      ->check(number_within(1e-9, 1e6, "s"))
      ->type_name("S")
      ->group(planner);
  add_effort_option(plan, options.effort,
                    "Effort of the exact planner: low, normal or high; more takes longer and narrows the gap")
      ->group(planner);
  plan.add_option("--deadlines", options.deadlines, "Number of deadlines to plan")
      ->capture_default_str()
      ->check(whole_number_within(1, 1000000))
      ->type_name("N")
      ->group(planner);
  plan.add_option("--switch-latency", options.switch_latency_s, "Time until a clock change takes effect, in seconds")
      ->capture_default_str()
      ->check(number_within(0, 1e6, "s"))
      ->type_name("S")
      ->group(planner);
  plan.add_option("--min-dwell", options.min_dwell_s, "Shortest time between two clock changes of a rank, in seconds")
      ->capture_default_str()
      ->check(number_within(0, 1e6, "s"))
      ->type_name("S")
      ->group(planner);
}

void add_output_options(CLI::App& plan, PlanOptions& options) {
  const std::string output = "The output";
  add_slowdown_option(plan, options.slowdown)->group(output);
  plan.add_option("--straggler", options.straggler,
                  "Show the plan for a straggler's iteration time T': T'/T like 1.2, or T' like 3.5s")
      ->type_name("T'")
      ->group(output);
  auto* out = plan.add_option("--out", options.out,
                              "Write frontier.csv, plans/, plans.json, report.html, pictures and a trace to this "
                              "directory, whole or not at all; replaces an earlier plan")
                  ->type_name("DIR")
                  ->group(output);
  plan.add_flag("--bound-only", options.bound_only, "Print the lower bound as CSV, without planning")
      ->excludes(out)
      ->group(output);
  add_progress_flag(plan, options.progress)->group(output);
}

}  // namespace

void add_plan(CLI::App& app, Command& command) {
  auto* plan =
      app.add_subcommand("plan", "Plan the frontier of a profile, from the fastest plan to the one of least energy");
  auto options = std::make_shared<PlanOptions>();
  plan->add_option("PROFILE.csv", options->pipeline.profile,
                   "Profile: CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J)");
  add_pipeline_options(
      *plan, options->pipeline,
      "; several, separated by commas; or best: all of them. The frontier of several schedules is that of "
      "their union");
  add_search_options(*plan, options->search);

  add_planner_options(*plan, *options);
  add_output_options(*plan, *options);
  add_json_flag(*plan, command);
  plan->footer(
      help_footer("  perseus plan gpt3.csv --schedule 1f1b --microbatches 12 --blocking-power 83.64 --out plans\n"
                  "  perseus plan gpt3.csv --schedule interleaved-1f1b --chunks 2 -m 16 --straggler 1.2\n"
                  "  perseus plan gpt3.csv --slowdown 0.3% --out plans\n"
                  "  perseus plan gpt3.csv --schedule best --memory memory.csv --memory-limit 80 --out plans\n"
                  "  perseus plan gpt3.csv --recompute best --measured-with recomputation\n"
                  "  perseus plan gpt3.csv --schedule best --stage-layers 12 --slowdown 0.3%\n"
                  "  perseus plan gpt3.csv --bound-only > bound.csv\n"));
  plan->callback(
      [options, &command] { command.run = [options, &command] { return run_plan(*options, command.json); }; });
}

}  // namespace perseus::cli
