// perseus plan: computes the frontier of deployable clock plans from a profile and a schedule.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <chrono>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>

#include "command_line/command.h"
#include "command_line/output_directory.h"
#include "command_line/progress.h"
#include "io/formats/number.h"
#include "io/report/format.h"
#include "io/report/summary.h"
#include "io/report/timeline.h"
#include "plan/effort.h"
#include "plan/link_doubt.h"
#include "plan/pipeline.h"
#include "plan/plan_output.h"
#include "plan/plan_source.h"
#include "plan/point_figures.h"
#include "plan/slowdown.h"
#include "planning/baselines/best_of_all.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/perseus_method.h"
#include "planning/planner/robust_frontier.h"
#include "search/plan_search.h"
#include "server/profiling/expected_frontier.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

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
  std::string out;
  std::optional<bool> progress;
};

/// "1.2" is T'/T, where T is the time without stragglers, "3.5s" is T' itself.
struct StragglerTime {
  std::optional<double> ratio;
  std::optional<Seconds> deadline;
};

Result<StragglerTime> parse_straggler(const std::string& text) {
  if (text.empty()) return StragglerTime{};
  const bool in_seconds = text.ends_with('s');
  const auto value = formats::number_in<double>(std::string_view(text).substr(0, text.size() - (in_seconds ? 1 : 0)));
  if (!value || !std::isfinite(*value) || *value < (in_seconds ? 0 : 1)) {
    return Error{ErrorCode::usage,
                 fmt::format("--straggler: '{}' is neither a ratio T'/T of at least 1, like 1.2, nor a time with its "
                             "unit, like 3.5s",
                             text)};
  }
  return in_seconds ? StragglerTime{{}, Seconds(*value)} : StragglerTime{*value, {}};
}

std::string faster_choice(const PlanOptions& options) {
  return options.method == "perseus" ? "a larger --tau or --method exact is faster" : "--effort low is faster";
}

/// `deadline`: realized too, besides T_max and T_max stretched by the tolerance.
Result<model::Frontier> make_frontier(const model::ComputationDag& dag, const PlanOptions& options,
                                      const model::DefaultRule& rule, const std::string& what = "planning",
                                      const std::vector<Seconds>& deadlines = {}) {
  const bool is_fastest = options.method == "exact" && options.effort == "low";
  ProgressLine progress(what, options.progress, is_fastest ? "" : faster_choice(options));
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
  std::optional<Seconds> published_unit_time;
  if (planner.effort == planner::Effort::high) published_unit_time = Seconds(options.tau_s);
  return baselines::plan_best_of_all(dag, planner, published_unit_time);
}

formats::Metadata metadata_of(const PlanOptions& options, const model::DefaultRule& rule) {
  return {{"method", options.method},
          {kSwitchLatencyKey, fmt::format("{}", options.switch_latency_s)},
          {kMinDwellKey, fmt::format("{}", options.min_dwell_s)},
          {kSlowdownKey, fmt::format("{}", rule.slowdown)}};
}

/// Whether plans are changed so that they keep their times with all links of --constants.
bool keeps_links(const PlanOptions& options) {
  return options.method == "exact" && options.switch_latency_s == 0 && options.min_dwell_s == 0;
}

Result<int> search_configurations(const PlanOptions& options, const model::DefaultRule& rule, bool as_json) {
  if (!options.straggler.empty()) {
    return Error{ErrorCode::usage, "--straggler: not supported with several configurations; plan one configuration"};
  }
  const Result<PipelineOptions> pipeline = with_files(options.pipeline);
  if (!pipeline) return pipeline.error();
  SearchPlanner planner;
  planner.rule = rule;
  planner.switch_latency = Seconds(options.switch_latency_s);
  planner.metadata = metadata_of(options, rule);
  planner.out = options.out;
  // All are planned for the time of the first one, the reference, too.
  std::vector<Seconds> deadlines;
  planner.plan = [&](const model::ComputationDag& dag, const std::string& name) -> Result<model::Frontier> {
    if (deadlines.empty()) {
      const Seconds t_max = report::timeline_of(dag, model::all_maximum_clock(dag)).makespan;
      deadlines = {t_max, (1 + rule.slowdown) * t_max};
    }
    Result<model::Frontier> frontier = make_frontier(dag, options, rule, "planning " + name, deadlines);
    if (!frontier || !keeps_links(options)) return frontier;
    const auto links = other_latencies(*pipeline, dag);
    if (!links) return links.error();
    if (!links->empty()) planner.metadata[kOtherLinksKey] = std::to_string(links->size());
    return planner::robust_frontier(dag, *links, *std::move(frontier), std::array{rule.slowdown});
  };
  return run_plan_search(*pipeline, options.search, planner, as_json);
}

/// T' as a time.
std::optional<Seconds> deadline_of(const StragglerTime& straggler, const model::ComputationDag& dag,
                                   const model::Frontier& frontier, const model::DefaultRule& rule) {
  if (!straggler.ratio) return straggler.deadline;
  const Seconds t_max = report::t_max_of(dag, frontier);
  const Seconds slowed = *straggler.ratio * time_without_straggler(frontier, t_max, rule);
  return std::max(slowed, model::planned_time(frontier, t_max, rule, slowed));
}

Result<int> run_plan(const PlanOptions& options, bool as_json) {
  const Result<StragglerTime> straggler = parse_straggler(options.straggler);
  if (!straggler) return straggler.error();
  if (options.method == "perseus" && (options.switch_latency_s > 0 || options.min_dwell_s > 0)) {
    return Error{ErrorCode::usage,
                 "--switch-latency, --min-dwell: not supported by the published method; use --method exact"};
  }
  const Result<double> slowdown = slowdown_of(options.slowdown);
  if (!slowdown) return slowdown.error();
  const model::DefaultRule rule = default_rule(options.method, *slowdown);
  if (is_search(options.pipeline, options.search) && !options.pipeline.dag.empty()) {
    return Error{ErrorCode::usage, "--dag: one pipeline; not supported with options of several configurations"};
  }
  if (is_search(options.pipeline, options.search)) return search_configurations(options, rule, as_json);
  const Result<Pipeline> pipeline = read_pipeline(options.pipeline);
  if (!pipeline) return pipeline.error();
  const model::ComputationDag& dag = pipeline->dag;
  if (pipeline->default_blocking) note_assumed_blocking(dag.blocking_power);
  if (Status writable = check_plan_output(options.out); !writable) return writable.error();

  const auto began = std::chrono::steady_clock::now();
  Result<model::Frontier> frontier = make_frontier(dag, options, rule);
  if (!frontier) return frontier.error();
  const LinkDoubt links =
      keeps_links(options) ? keep_with_all_links(*pipeline, rule, *frontier) : doubt_about(*pipeline, rule, *frontier);
  frontier = profiling::expected_frontier(dag, pipeline->drawn, *std::move(frontier), StopCheck::never());
  if (!frontier) return frontier.error();
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

  const std::optional<Seconds> deadline = deadline_of(*straggler, dag, *frontier, rule);
  const report::ReportSummary summary = report::summarize(dag, *frontier, deadline, rule);
  const std::vector<PointFigures> figures = figures_of(dag, *frontier, Seconds(options.switch_latency_s));
  if (!options.out.empty()) {
    formats::Metadata metadata = metadata_of(options, rule);
    for (const report::ReportFact& fact : pipeline->facts) metadata[fact.name] = fact.value;
    if (links.sets > 0 && keeps_links(options)) metadata[kOtherLinksKey] = std::to_string(links.sets);
    const Status written = write_output(
        options.out, is_plan_output,
        plan_files("", *pipeline, *frontier, figures, deadline, rule, Seconds(options.switch_latency_s), metadata));
    if (!written) return written.error();
  }
  if (as_json) {
    json::object all = plan_json(*pipeline, summary, figures);
    all["planning_s"] = took_s;
    if (links.sets > 0) all["other_links"] = json_of(links);
    if (!options.out.empty()) all["out"] = options.out;
    print_json(all);
    return 0;
  }
  print(plan_text(*pipeline, *frontier, summary, figures) + text_of(links));
  print(fmt::format("planned in {}\n", report::text_of(Seconds(took_s))));
  if (!options.out.empty()) print(written_text(options.out, "report.html"));
  return 0;
}

/// The options given that have no effect beside others are refused: the result would not be what they promise.
Status check_effect(const CLI::App& plan, const PlanOptions& options) {
  const auto refuse = [&](std::initializer_list<const char*> without_effect, const std::string& beside) -> Status {
    for (const char* name : without_effect) {
      if (plan.count(name) > 0) {
        return Error{ErrorCode::usage, fmt::format("{}: has no effect with {}; leave out one of them", name, beside)};
      }
    }
    return Ok{};
  };
  if (options.search.tensor_parallel && options.search.memory_model.empty() && options.pipeline.trace.files.empty())
    return Error{ErrorCode::usage, "--tensor-parallel: has no effect without --memory-model or --trace"};
  if (options.method == "perseus") return refuse({"--effort", "--deadlines"}, "--method perseus");
  if (options.effort != "high") return refuse({"--tau"}, "--method exact without --effort high");
  return Ok{};
}

void add_planner_options(CLI::App& plan, PlanOptions& options) {
  const OptionGroup group(plan, "The planner");
  add_default(plan, "--method NAME", options.method, "Planner: exact, or perseus, the published algorithm",
              CLI::IsMember({"exact", "perseus"}).description(""));
  add_default(plan, "--tau S", options.tau_s,
              "Time unit of the published method, in seconds (only with --method perseus or --effort high)",
              number_within(1e-9, 1e6, "s"));
  add_effort_option(plan, options.effort,
                    "Effort of the exact planner: low, normal or high; more takes longer and narrows the gap");
  add_default(plan, "--deadlines N", options.deadlines, "About this many deadlines to plan",
              whole_number_within(1, 1000000));
  add_switch_latency_option(plan, options.switch_latency_s);
  add_default(plan, "--min-dwell S", options.min_dwell_s,
              "Shortest time between two clock changes of a rank, in seconds", number_within(0, 1e6, "s"));
}

void add_output_options(CLI::App& plan, PlanOptions& options) {
  const OptionGroup group(plan, "The output");
  add_slowdown_option(plan, options.slowdown);
  add_value(plan, "--straggler T'", options.straggler,
            "Show the plan for a straggler's iteration time T': T'/T like 1.2, or T' like 3.5s");
  add_value(plan, "--out DIR", options.out,
            "Write frontier.csv, plans/, plans.json, report.html, pictures and a trace to this directory, whole or not "
            "at all; replaces an earlier plan");
  add_progress_flag(plan, options.progress);
}

}  // namespace

void add_plan(CLI::App& app, Command& command) {
  auto* plan = app.add_subcommand(
      "plan", "Plan the frontier of a profile, from the fastest plan to the one of least effective energy");
  auto options = std::make_shared<PlanOptions>();
  plan->add_option("PROFILE.csv", options->pipeline.profile,
                   "Profile: CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J)");
  add_pipeline_options(
      *plan, options->pipeline,
      "; several, separated by commas; or best: all of them. The frontier of several schedules is that of "
      "their union");
  add_search_options(*plan, options->search);
  CLI::Option* trace = nullptr;
  {
    const OptionGroup group(*plan, kPipelineGroup);
    trace = add_trace_option(*plan, options->pipeline.trace);
  }
  for (const char* const replaced :
       {"--schedule", "--microbatches", "--chunks", "--transfer-latency", "--blocking-transfers", "--serial-transfers",
        "--action-table", "--constants", "--dag", "--ranks", "--reference-schedule", "--microbatch-profile"})
    trace->excludes(plan->get_option(replaced));
  add_planner_options(*plan, *options);
  add_output_options(*plan, *options);
  add_json_flag(*plan, command);
  plan->footer(
      help_footer(kFileErrors,
                  "  perseus plan gpt3.csv --schedule 1f1b --microbatches 12 --blocking-power 83.64 --out plans\n"
                  "  perseus plan gpt3.csv --schedule interleaved-1f1b --chunks 2 -m 16 --straggler 1.2\n"
                  "  perseus plan gpt3.csv --slowdown 0.3% --out plans\n"
                  "  perseus plan gpt3.csv --schedule best --memory memory.csv --memory-limit 80 --out plans\n"
                  "  perseus plan gpt3.csv --recompute best --measured-with recomputation\n"
                  "  perseus plan gpt3.csv --schedule best --stage-layers 12 --slowdown 0.3%\n"
                  "  perseus plan gpt3.csv --trace timeline.json.gz --out plans\n"));
  set_run(*plan, command, [options, plan, &command]() -> Result<int> {
    if (const Status effective = check_effect(*plan, *options); !effective) return effective.error();
    options->pipeline.trace.degrees.tensor_parallel = options->search.tensor_parallel.value_or(1);
    return run_plan(*options, command.json);
  });
}

}  // namespace perseus::cli
