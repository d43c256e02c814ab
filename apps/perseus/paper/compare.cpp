// perseus compare: the planner, the published method and the baselines on one pipeline.
//
// Output:  --out DIR holds, whole or not at all:
//           DIR/frontiers.csv          method,point,...: every method's realized frontier, 0 is the slowest
//           DIR/pairs.csv              which method is better than which, over which share of T, and by how much
//           DIR/comparison.html, .svg  charts and tables
//           DIR/METHOD/plans.json      each method's plans: the input of lookup, verify and show
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <iterator>
#include <memory>

#include "command_line/command.h"
#include "command_line/exit_codes.h"
#include "command_line/interrupt.h"
#include "command_line/output_directory.h"
#include "command_line/progress.h"
#include "command_line/terminal_size.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/plan_file.h"
#include "io/report/comparison.h"
#include "io/report/comparison_html.h"
#include "io/report/comparison_svg.h"
#include "io/report/comparison_text.h"
#include "io/report/timeline.h"
#include "plan/effort.h"
#include "plan/pipeline.h"
#include "plan/slowdown.h"
#include "planning/baselines/best_of_all.h"
#include "planning/baselines/methods.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/perseus_method.h"
#include "server/profiling/expected_frontier.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

struct CompareOptions {
  PipelineOptions pipeline;
  double tau_s = 0.001;
  std::string effort = "normal";
  std::vector<std::string> methods;  ///< none: all
  std::string slowdown = "0%";
  std::string out;
  std::optional<bool> progress;
};

std::vector<std::string> method_names() {
  std::vector<std::string> names{"exact", "perseus"};
  for (const baselines::BaselineMethod& baseline : baselines::baseline_methods()) names.emplace_back(baseline.name);
  return names;
}

/// The requested methods, in the order of method_names(); every frontier has the lower bound.
Result<std::vector<report::ComparedMethod>> run_methods(const model::ComputationDag& dag, const CompareOptions& options,
                                                        double slowdown) {
  const auto wanted = [&](std::string_view name) {
    return options.methods.empty() || std::ranges::find(options.methods, name) != options.methods.end();
  };
  std::vector<model::Plan> published;
  if (wanted("perseus")) {
    ProgressLine progress("planning, as published", options.progress);
    Result<planner::PerseusRun> run = planner::plan_perseus(dag, {Seconds(options.tau_s), progress.callback()});
    if (!run) return run.error();
    model::Frontier frontier = run->frontier();
    for (model::FrontierPoint& point : frontier.points) published.push_back(std::move(point.plan));
  }
  std::vector<report::ComparedMethod> methods;
  model::LowerBound bound;
  if (wanted("exact")) {
    planner::PlannerOptions planner;
    planner.effort = effort_named(options.effort);
    if (slowdown > 0)
      planner.also = {(1 + slowdown) * report::timeline_of(dag, model::all_maximum_clock(dag)).makespan};
    planner.candidates = published;
    ProgressLine progress("planning, exact", options.progress);
    planner.progress = progress.callback();
    Result<model::Frontier> frontier = baselines::plan_best_of_all(dag, planner);
    if (!frontier) return frontier.error();
    methods.push_back({"exact", "lower bound by parametric flow, rounded to real clocks", "", *std::move(frontier)});
    bound = methods.front().frontier.bound;
  } else {
    bound = planner::compute_lower_bound(dag).bound;
  }
  if (wanted("perseus")) {
    methods.push_back({"perseus", "the published method", fmt::format("tau {:g} s", options.tau_s),
                       baselines::judge(dag, std::move(published), bound)});
  }
  for (const baselines::BaselineMethod& baseline : baselines::baseline_methods()) {
    if (!wanted(baseline.name)) continue;
    Result<baselines::BaselinePlans> found = baseline.plans(dag);
    if (!found) {
      note(fmt::format("{} is left out: {}", baseline.name, found.error().message));
      continue;
    }
    methods.push_back({std::string(baseline.name), std::string(baseline.description), std::move(found->note),
                       baselines::judge(dag, std::move(found->plans), bound)});
  }
  if (methods.empty()) {
    return Error{ErrorCode::usage, "--methods: none of them is defined for this pipeline; see the notes"};
  }
  for (const std::string& name : method_names()) {
    if (!wanted(name)) note(fmt::format("{} is skipped: --methods does not name it", name));
  }
  return methods;
}

std::string frontiers_csv(const std::vector<report::ComparedMethod>& methods) {
  std::string text = "method,point,time_s,energy_j,effective_energy_j,bound_j,gap_pct\n";
  for (const report::ComparedMethod& method : methods) {
    for (std::size_t k = 0; k < method.frontier.points.size(); ++k) {
      const model::FrontierPoint& p = method.frontier.points[k];
      fmt::format_to(std::back_inserter(text), "{},{},{:.12g},{:.12g},{:.12g},{:.12g},{:.12g}\n", method.name, k,
                     p.time.value(), p.energy.value(), p.effective_energy.value(), p.bound.value(), p.gap_pct());
    }
  }
  return text;
}

/// A figure of a pair, the same in CSV and JSON.
struct PairFigure {
  std::string_view name;
  double (*value)(const report::PairComparison&);
};
constexpr std::array kPairFigures{
    PairFigure{"first_better_pct", [](const report::PairComparison& p) { return p.of_first.better_pct; }},
    PairFigure{"first_only_pct", [](const report::PairComparison& p) { return p.of_first.only_pct; }},
    PairFigure{"second_better_pct", [](const report::PairComparison& p) { return p.of_second.better_pct; }},
    PairFigure{"second_only_pct", [](const report::PairComparison& p) { return p.of_second.only_pct; }},
    PairFigure{"equal_pct", [](const report::PairComparison& p) { return p.equal_pct; }},
    PairFigure{"mean_saving_pct", [](const report::PairComparison& p) { return p.mean_saving_pct; }},
    PairFigure{"first_largest_saving_pct", [](const report::PairComparison& p) { return p.of_first.largest_pct; }},
    PairFigure{"first_largest_saving_at_s",
               [](const report::PairComparison& p) { return p.of_first.largest_at.value(); }},
    PairFigure{"second_largest_saving_pct", [](const report::PairComparison& p) { return p.of_second.largest_pct; }},
    PairFigure{"second_largest_saving_at_s",
               [](const report::PairComparison& p) { return p.of_second.largest_at.value(); }}};

/// The name of the method that dominates, or nothing.
std::string dominating(const std::vector<report::ComparedMethod>& methods, const report::PairComparison& pair) {
  if (pair.of_first.dominates) return methods[pair.first].name;
  return pair.of_second.dominates ? methods[pair.second].name : "";
}

std::string pairs_csv(const std::vector<report::ComparedMethod>& methods,
                      const std::vector<report::PairComparison>& pairs) {
  std::string text = "first,second,dominating";
  for (const PairFigure& figure : kPairFigures) text += fmt::format(",{}", figure.name);
  text += '\n';
  for (const report::PairComparison& pair : pairs) {
    text += fmt::format("{},{},{}", methods[pair.first].name, methods[pair.second].name, dominating(methods, pair));
    for (const PairFigure& figure : kPairFigures) text += fmt::format(",{:.9g}", figure.value(pair));
    text += '\n';
  }
  return text;
}

json::object json_report(const Pipeline& pipeline, const std::vector<report::ComparedMethod>& methods,
                         const std::vector<report::PairComparison>& pairs) {
  json::object inputs;
  for (const report::ReportFact& fact : pipeline.facts) inputs[fact.name] = fact.value;
  json::array all_methods;
  for (const report::ComparedMethod& method : methods) {
    json::array points;
    for (const model::FrontierPoint& p : method.frontier.points) {
      points.push_back(json::object{{"time_s", p.time.value()},
                                    {"energy_j", p.energy.value()},
                                    {"effective_energy_j", p.effective_energy.value()},
                                    {"bound_j", p.bound.value()},
                                    {"gap_pct", p.gap_pct()}});
    }
    all_methods.push_back(json::object{{"name", method.name},
                                       {"description", method.description},
                                       {"note", method.note},
                                       {"points", std::move(points)}});
  }
  json::array all_pairs;
  for (const report::PairComparison& pair : pairs) {
    json::object object{{"first", methods[pair.first].name}, {"second", methods[pair.second].name}};
    const std::string winner = dominating(methods, pair);
    object["dominating"] = winner.empty() ? json::value(nullptr) : json::value(winner);
    for (const PairFigure& figure : kPairFigures) object[figure.name] = figure.value(pair);
    all_pairs.push_back(std::move(object));
  }
  const model::LowerBound& bound = methods.front().frontier.bound;
  return {{"inputs", std::move(inputs)},
          {"blocking_power_w", pipeline.dag.blocking_power.value()},
          {"blocking_power_is_a_guess", pipeline.default_blocking},
          {"t_min_s", bound.t_min().value()},
          {"t_star_s", bound.t_star().value()},
          {"methods", std::move(all_methods)},
          {"pairs", std::move(all_pairs)}};
}

bool is_part_of_a_comparison(std::string_view name) {
  constexpr std::array<std::string_view, 4> files{"frontiers.csv", "pairs.csv", "comparison.html", "comparison.svg"};
  if (std::ranges::find(files, name) != files.end() || name == "exact/plans.json" || name == "perseus/plans.json") {
    return true;
  }
  return std::ranges::any_of(baselines::baseline_methods(), [&](const baselines::BaselineMethod& m) {
    return name == fmt::format("{}/plans.json", m.name);
  });
}

Status write_comparison(const std::string& directory, const Pipeline& pipeline, const report::ComparisonInput& input,
                        const std::vector<report::PairComparison>& pairs) {
  const InterruptGuard guard;
  Result<OutputDirectory> out = OutputDirectory::create(directory, is_part_of_a_comparison);
  if (!out) return out.error();
  const auto file = [&](std::string_view name, const std::function<void(const report::Sink&)>& fill) -> Status {
    if (InterruptGuard::interrupted()) return Ok{};
    return write_output_file(*out, name, fill);
  };
  for (const Status& written : {
           file("frontiers.csv", [&](const report::Sink& sink) { sink(frontiers_csv(input.methods)); }),
           file("pairs.csv", [&](const report::Sink& sink) { sink(pairs_csv(input.methods, pairs)); }),
           file("comparison.svg", [&](const report::Sink& sink) { report::write_comparison_svg(input, sink); }),
           file("comparison.html",
                [&](const report::Sink& sink) { report::write_comparison_html(input, pairs, sink); }),
       }) {
    if (!written) return written.error();
  }
  for (const report::ComparedMethod& method : input.methods) {
    formats::Metadata metadata{{"method", method.name}, {kSlowdownKey, fmt::format("{}", input.slowdown)}};
    for (const report::ReportFact& fact : input.inputs) metadata[fact.name] = fact.value;
    const Status written = file(method.name + "/plans.json", [&](const report::Sink& sink) {
      sink(formats::format_plan_file(pipeline.dag, method.frontier, metadata));
    });
    if (!written) return written.error();
  }
  return InterruptGuard::interrupted() ? Status(Ok{}) : out->commit();
}

Result<int> run_compare(const CompareOptions& options, bool as_json) {
  const Result<double> slowdown = slowdown_of(options.slowdown);
  if (!slowdown) return slowdown.error();
  const Result<Pipeline> pipeline = read_pipeline(options.pipeline);
  if (!pipeline) return pipeline.error();
  const model::ComputationDag& dag = pipeline->dag;
  if (pipeline->default_blocking) note_assumed_blocking(dag.blocking_power);
  if (!options.out.empty()) {
    const Result<OutputDirectory> probe = OutputDirectory::create(options.out, is_part_of_a_comparison);
    if (!probe) return probe.error();
  }
  Result<std::vector<report::ComparedMethod>> methods = run_methods(dag, options, *slowdown);
  if (!methods) return methods.error();
  for (report::ComparedMethod& method : *methods) {
    StopCheck never;
    Result<model::Frontier> expected =
        profiling::expected_frontier(dag, pipeline->drawn, std::move(method.frontier), never);
    if (!expected) return expected.error();
    method.frontier = *std::move(expected);
  }
  const std::vector<report::PairComparison> pairs = report::compare_pairs(dag, *methods);
  const report::ComparisonInput input{dag, *methods, pipeline->title, described_inputs(*pipeline), *slowdown};
  if (!options.out.empty()) {
    const Status written = write_comparison(options.out, *pipeline, input, pairs);
    die_if_interrupted();
    if (!written) return written.error();
  }
  if (as_json) {
    json::object all = json_report(*pipeline, *methods, pairs);
    if (!options.out.empty()) all["out"] = options.out;
    print(formats::json_text(all) + "\n");
    return 0;
  }
  for (const report::ReportFact& fact : pipeline->facts) print(fmt::format("{}: {}\n", fact.name, fact.value));
  print("\n" + text_of(report::method_rows(input), output_columns()) + "\n" +
        text_of(report::pair_rows(input, pairs), output_columns(), 2));
  print(fmt::format(
      "\nsaving: against everything at maximum clock, each at its own time. In time: the slowest plan that is at most "
      "{:g} % slower than\neverything at maximum clock. ",
      100 * *slowdown));
  print(
      "Shares are of T from the fastest iteration to\nthe slowest that still saves energy; at equal T each method runs "
      "its slowest plan that is no slower, and waits.\nMean saving: of the first, over the T that both reach.\n");
  for (const report::ComparedMethod& method : *methods) {
    if (!method.note.empty()) print(fmt::format("{}: {}\n", method.name, method.note));
  }
  if (!options.out.empty()) print(fmt::format("written to {0}; to look at: {0}/comparison.html\n", options.out));
  return 0;
}

}  // namespace

void add_compare(CLI::App& app, Command& command) {
  auto* compare = app.add_subcommand("compare", "Compare the planner with EnvPipe, Zeus and others on one pipeline");
  auto options = std::make_shared<CompareOptions>();
  compare->add_option("PROFILE.csv", options->pipeline.profile,
                      "Profile: CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J)");
  add_pipeline_options(*compare, options->pipeline);
  const std::string methods = "The methods";
  compare
      ->add_option("--methods", options->methods,
                   fmt::format("Methods to compare, of {} (default: all). On large pipelines exact takes longest",
                               fmt::join(method_names(), ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(method_names()).description(""))
      ->type_name("NAME,...")
      ->group(methods);
  add_effort_option(*compare, options->effort,
                    "Effort of the exact planner: low, normal or high; more takes longer and narrows the gap")
      ->group(methods);
  compare->add_option("--tau", options->tau_s, "Time unit of the published method, in seconds")
      ->capture_default_str()
      ->check(number_within(1e-9, 1e6, "s"))
      ->type_name("S")
      ->group(methods);
  const std::string output = "The output";
  add_slowdown_option(*compare, options->slowdown)->group(output);
  compare
      ->add_option(
          "--out", options->out,
          "Write the frontiers, pairwise comparisons, an HTML page and every method's plans to this directory, "
          "whole or not at all; replaces an earlier comparison")
      ->type_name("DIR")
      ->group(output);
  add_progress_flag(*compare, options->progress)->group(output);
  add_json_flag(*compare, command);
  compare->footer(
      help_footer(kFileErrors,
                  "  perseus compare gpt3.csv --schedule 1f1b -m 12 --blocking-power 83.64 --out comparison\n"
                  "  perseus verify comparison/envpipe\n"
                  "  perseus compare huge.csv -m 512 --methods exact,zeus-per-stage,all-max --effort low\n"));
  compare->callback(
      [options, &command] { command.run = [options, &command] { return run_compare(*options, command.json); }; });
}

}  // namespace perseus::cli
