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
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <memory>

#include "command_line/command.h"
#include "command_line/output_directory.h"
#include "command_line/progress.h"
#include "command_line/records.h"
#include "command_line/terminal_size.h"
#include "io/formats/plan_file.h"
#include "io/report/comparison.h"
#include "io/report/timeline.h"
#include "plan/effort.h"
#include "plan/link_doubt.h"
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

/// The exact planner's plans keep their times with all links that the constants allow; of the others, by how much their
/// plans in time may be late. Per method.
std::vector<LinkDoubt> judge_links(const Pipeline& pipeline, double slowdown,
                                   std::vector<report::ComparedMethod>& methods) {
  std::vector<LinkDoubt> doubts;
  for (report::ComparedMethod& method : methods) {
    const bool keeps = method.name == "exact";
    doubts.push_back(keeps ? keep_with_all_links(pipeline, {slowdown}, method.frontier)
                           : doubt_about(pipeline, {slowdown}, method.frontier));
    std::string text = text_of(doubts.back());
    if (text.empty()) continue;
    text.pop_back();
    method.note += (method.note.empty() ? "" : "; ") + text;
  }
  return doubts;
}

json::object point_json(const model::FrontierPoint& p) {
  return {{"time_s", p.time.value()},
          {"energy_j", p.energy.value()},
          {"effective_energy_j", p.effective_energy.value()},
          {"bound_j", p.bound.value()},
          {"gap_pct", p.gap_pct()}};
}

std::string frontiers_csv(const std::vector<report::ComparedMethod>& methods) {
  json::array points;
  for (const report::ComparedMethod& method : methods) {
    for (std::size_t k = 0; k < method.frontier.points.size(); ++k) {
      json::object& point = points.emplace_back(point_json(method.frontier.points[k])).get_object();
      point["method"] = method.name;
      point["point"] = k;
    }
  }
  return csv_of("method,point,time_s,energy_j,effective_energy_j,bound_j,gap_pct", points, 12);
}

Table table_of_pairs(const std::vector<report::ComparedMethod>& methods,
                     const std::vector<report::PairComparison>& pairs) {
  using Pair = const report::PairComparison&;
  const auto winner = [&](Pair p) {
    if (p.of_first.dominates) return json::value(methods[p.first].name);
    return p.of_second.dominates ? json::value(methods[p.second].name) : json::value(nullptr);
  };
  return table_of<report::PairComparison>(
      pairs, {{"first", [&](Pair p) { return methods[p.first].name; }},
              {"second", [&](Pair p) { return methods[p.second].name; }},
              {"dominating", winner},
              {"first_better_pct", [](Pair p) { return p.of_first.better_pct; }},
              {"first_only_pct", [](Pair p) { return p.of_first.only_pct; }},
              {"second_better_pct", [](Pair p) { return p.of_second.better_pct; }},
              {"second_only_pct", [](Pair p) { return p.of_second.only_pct; }},
              {"equal_pct", &report::PairComparison::equal_pct},
              {"mean_saving_pct", &report::PairComparison::mean_saving_pct},
              {"first_largest_saving_pct", [](Pair p) { return p.of_first.largest_pct; }},
              {"first_largest_saving_at_s", [](Pair p) { return p.of_first.largest_at; }},
              {"second_largest_saving_pct", [](Pair p) { return p.of_second.largest_pct; }},
              {"second_largest_saving_at_s", [](Pair p) { return p.of_second.largest_at; }}});
}

json::object json_report(const Pipeline& pipeline, const std::vector<report::ComparedMethod>& methods,
                         const std::vector<report::PairComparison>& pairs, const std::vector<LinkDoubt>& doubts) {
  json::array all_methods;
  for (const report::ComparedMethod& method : methods) {
    json::array points;
    for (const model::FrontierPoint& p : method.frontier.points) points.push_back(point_json(p));
    all_methods.push_back(json::object{{"name", method.name},
                                       {"description", method.description},
                                       {"note", method.note},
                                       {"points", std::move(points)}});
    const LinkDoubt& doubt = doubts[all_methods.size() - 1];
    if (doubt.sets > 0) all_methods.back().as_object()["other_links"] = json_of(doubt);
  }
  const model::LowerBound& bound = methods.front().frontier.bound;
  return {{"inputs", object_of(pipeline.facts)},
          {"blocking_power_w", pipeline.dag.blocking_power.value()},
          {"blocking_power_is_a_guess", pipeline.default_blocking},
          {"t_min_s", bound.t_min().value()},
          {"t_star_s", bound.t_star().value()},
          {"methods", std::move(all_methods)},
          {"pairs", table_of_pairs(methods, pairs).json()}};
}

bool is_part_of_a_comparison(std::string_view name) {
  static const OutputDirectory::IsOurs table =
      one_of({"frontiers.csv", "pairs.csv", "comparison.html", "comparison.svg"});
  return table(name) ||
         std::ranges::any_of(method_names(), [&](const std::string& m) { return name == m + "/plans.json"; });
}

Status write_comparison(const std::string& directory, const Pipeline& pipeline, const report::ComparisonInput& input,
                        const std::vector<report::PairComparison>& pairs) {
  std::vector<ResultFile> files{
      {"frontiers.csv", frontiers_csv(input.methods)},
      {"pairs.csv", table_of_pairs(input.methods, pairs).csv({}, 9)},
      {"comparison.svg", [&](const report::Sink& sink) { report::write_comparison_svg(input, sink); }},
      {"comparison.html", [&](const report::Sink& sink) { report::write_comparison_html(input, pairs, sink); }}};
  formats::Metadata metadata{{kSlowdownKey, fmt::format("{}", input.slowdown)}};
  for (const report::ReportFact& fact : input.inputs) metadata[fact.name] = fact.value;
  for (const report::ComparedMethod& method : input.methods) {
    metadata["method"] = method.name;
    metadata.erase(kOtherLinksKey);
    if (method.name == "exact" && !pipeline.other_links.empty()) {
      metadata[kOtherLinksKey] = std::to_string(pipeline.other_links.size());
    }
    files.emplace_back(method.name + "/plans.json", formats::format_plan_file(pipeline.dag, method.frontier, metadata));
  }
  return write_output(directory, is_part_of_a_comparison, files);
}

Result<int> run_compare(const CompareOptions& options, bool as_json) {
  const Result<double> slowdown = slowdown_of(options.slowdown);
  if (!slowdown) return slowdown.error();
  const Result<Pipeline> pipeline = read_pipeline(options.pipeline);
  if (!pipeline) return pipeline.error();
  const model::ComputationDag& dag = pipeline->dag;
  if (pipeline->default_blocking) note_assumed_blocking(dag.blocking_power);
  if (Status writable = check_output(options.out, is_part_of_a_comparison); !writable) return writable.error();
  Result<std::vector<report::ComparedMethod>> methods = run_methods(dag, options, *slowdown);
  if (!methods) return methods.error();
  const std::vector<LinkDoubt> doubts = judge_links(*pipeline, *slowdown, *methods);
  for (report::ComparedMethod& method : *methods) {
    Result<model::Frontier> expected =
        profiling::expected_frontier(dag, pipeline->drawn, std::move(method.frontier), StopCheck::never());
    if (!expected) return expected.error();
    method.frontier = *std::move(expected);
  }
  const std::vector<report::PairComparison> pairs = report::compare_pairs(dag, *methods);
  const report::ComparisonInput input{dag, *methods, pipeline->title, described_inputs(*pipeline), *slowdown};
  if (Status written = write_comparison(options.out, *pipeline, input, pairs); !written) return written.error();
  if (as_json) {
    json::object all = json_report(*pipeline, *methods, pairs, doubts);
    if (!options.out.empty()) all["out"] = options.out;
    print_json(all);
    return 0;
  }
  print(lines_of(pipeline->facts) + "\n" + text_of(report::method_rows(input), output_columns()) + "\n" +
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
  if (!options.out.empty()) print(written_text(options.out, "comparison.html"));
  return 0;
}

}  // namespace

void add_compare(CLI::App& app, Command& command) {
  auto* compare = app.add_subcommand("compare", "Compare the planner with EnvPipe, Zeus and others on one pipeline");
  auto options = std::make_shared<CompareOptions>();
  compare->add_option("PROFILE.csv", options->pipeline.profile,
                      "Profile: CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J)");
  add_pipeline_options(*compare, options->pipeline);
  {
    const OptionGroup group(*compare, "The methods");
    add_value(*compare, "--methods NAME,...", options->methods,
              fmt::format("Methods to compare, of {} (default: all). On large pipelines exact takes longest",
                          fmt::join(method_names(), ", ")),
              CLI::IsMember(method_names()).description(""))
        ->delimiter(',');
    add_effort_option(*compare, options->effort,
                      "Effort of the exact planner: low, normal or high; more takes longer and narrows the gap");
    add_default(*compare, "--tau S", options->tau_s, "Time unit of the published method, in seconds",
                number_within(1e-9, 1e6, "s"));
  }
  {
    const OptionGroup group(*compare, "The output");
    add_slowdown_option(*compare, options->slowdown);
    add_value(*compare, "--out DIR", options->out,
              "Write the frontiers, pairwise comparisons, an HTML page and every method's plans to this directory, "
              "whole or not at all; replaces an earlier comparison");
    add_progress_flag(*compare, options->progress);
  }
  compare->footer(
      help_footer(kFileErrors,
                  "  perseus compare gpt3.csv --schedule 1f1b -m 12 --blocking-power 83.64 --out comparison\n"
                  "  perseus verify comparison/envpipe\n"
                  "  perseus compare huge.csv -m 512 --methods exact,zeus-per-stage,all-max --effort low\n"));
  set_run(*compare, command, options, run_compare);
}

}  // namespace perseus::cli
