#include "search/plan_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "base/count_text.h"
#include "command_line/command.h"
#include "command_line/origin.h"
#include "command_line/output_directory.h"
#include "io/formats/frequency_plan.h"
#include "io/report/format.h"
#include "io/report/timeline.h"
#include "plan/plan_output.h"
#include "plan/point_figures.h"
#include "planning/model/make_schedule.h"
#include "planning/search/configuration.h"
#include "planning/search/repartition.h"
#include "search/search_output.h"
#include "search/searched_jobs.h"
#include "server/profiling/expected_frontier.h"

namespace perseus::cli {
namespace {

std::string stages_text(const std::vector<bool>& recomputes) {
  std::vector<std::size_t> stages;
  for (std::size_t s = 0; s < recomputes.size(); ++s) {
    if (recomputes[s]) stages.push_back(s);
  }
  if (stages.empty()) return "no stage recomputes";
  if (stages.size() == recomputes.size()) return "every stage recomputes";
  return fmt::format("stages {} recompute", fmt::join(stages, " "));
}

std::string description_of(const search::Configuration& c) {
  std::string text =
      fmt::format("{}, {}, {}, {}", c.choice.schedule, count_text(c.dag.num_ranks(), "rank"),
                  count_text(c.dag.num_ranks() * c.choice.chunks, "stage"), count_text(c.microbatches, "microbatch"));
  if (!c.recomputes.empty()) text += ", " + stages_text(c.recomputes);
  return text;
}

/// A configuration that equals an earlier one adds nothing: `best` may choose the measured one.
bool is_repeated(const search::Configuration& c, const std::vector<search::Configuration>& earlier) {
  return std::ranges::any_of(earlier, [&](const search::Configuration& e) {
    return e.choice.schedule == c.choice.schedule && e.recomputes == c.recomputes && e.microbatches == c.microbatches &&
           e.layers == c.layers;
  });
}

void add_configurations(const search::SearchedJob& job, const std::vector<search::ConfigurationChoice>& choices,
                        std::vector<search::Configuration>& configurations,
                        std::vector<SkippedConfiguration>& left_out) {
  for (const search::ConfigurationChoice& choice : choices) {
    Result<search::Configuration> made = search::configure(job, choice);
    if (!made) {
      // Where no recomputation helps, report one reason, not two.
      if (std::ranges::find(left_out, made.error().message, &SkippedConfiguration::reason) != left_out.end()) continue;
      left_out.push_back({search::name_of(choice) + job.variant, made.error().message});
    } else if (!is_repeated(*made, configurations)) {
      configurations.push_back(*std::move(made));
    }
  }
}

/// Adds every configuration once more, on the partition that is best at the default plan's deadline. Where the memory
/// of other partitions is limited, also those that do not fit, or do not differ, on the measured one.
void add_partitions(const search::SearchedJob& job, const std::vector<search::ConfigurationChoice>& choices,
                    const std::vector<int>& stage_layers, const model::DefaultRule& rule,
                    std::vector<search::Configuration>& configurations, std::vector<SkippedConfiguration>& left_out) {
  const std::vector<int> layers = layers_per_stage(stage_layers, job.profile.num_stages());
  const model::ComputationDag& reference = configurations.front().dag;
  const Seconds deadline =
      (1 + rule.slowdown) * report::timeline_of(reference, model::all_maximum_clock(reference)).makespan;
  std::vector<search::Configuration> moved;
  for (const search::ConfigurationChoice& choice : choices) {
    const bool is_measured = std::ranges::find(configurations, search::name_of(choice), &search::Configuration::name) !=
                             configurations.end();
    if (!is_measured && !(job.layer_memory && job.memory_limit_gib)) continue;
    const auto cut = search::with_best_partition(job, choice, layers, deadline);
    Result<search::Configuration> made = cut ? search::configure(cut->job, choice) : cut.error();
    if (!made && is_measured) {
      left_out.push_back({search::name_of(choice) + search::kPartitionVariant, made.error().message});
    } else if (made && !is_repeated(*made, moved)) {
      moved.push_back(*std::move(made));
    }
  }
  std::ranges::move(moved, std::back_inserter(configurations));
}

Status write_search(const SearchPlanner& planner, const SearchReport& report,
                    const std::vector<search::Configuration>& configurations, const Measurements& measured) {
  const auto& planned = report.configurations;
  std::vector<ResultFile> files{
      {"configurations.csv", configurations_csv(report)},
      {"frontier.csv", points_of(report).csv()},
      {"configurations.svg", [&](const report::Sink& sink) { write_search_svg(report, sink); }},
      {"configurations.html", [&](const report::Sink& sink) { write_search_html(report, sink); }}};
  std::vector<Pipeline> pipelines(planned.size());
  for (std::size_t c = 0; c < planned.size(); ++c) {
    Pipeline& pipeline = pipelines[c];
    pipeline.dag = configurations[c].dag;
    pipeline.title = fmt::format("{}, {}", report.title, planned[c].name);
    pipeline.default_blocking = measured.default_blocking;
    pipeline.facts = measured.facts;
    pipeline.origin = report.origin;
    pipeline.facts.insert(pipeline.facts.begin() + 1, {"schedule", planned[c].description});
    for (const std::string& assumption : planned[c].assumptions) pipeline.facts.push_back({"assumed", assumption});
    formats::Metadata metadata = planner.metadata;
    if (configurations[c].is_derived) metadata[kDerivedKey] = "yes";
    for (const report::ReportFact& fact : pipeline.facts) {
      std::string& text = metadata[fact.name];
      text += (text.empty() ? "" : "; ") + fact.value;
    }
    std::ranges::move(plan_files(planned[c].name + "/", pipeline, planned[c].frontier,
                                 figures_of(pipeline.dag, planned[c].frontier, planner.switch_latency), {},
                                 planner.rule, planner.switch_latency, metadata),
                      std::back_inserter(files));
  }
  return write_output(planner.out, is_plan_output, files);
}

/// Reports what is assumed about the measurements.
void note_assumptions(const Measurements& measured) {
  if (measured.default_blocking) note_assumed_blocking(measured.costs.blocking_power);
  if (!measured.draws.empty()) {
    note(
        "the profile is noisy: times and energies are expected values; partitions and recomputation are chosen by the "
        "pooled means");
  }
}

Status check_memory(const SearchOptions& options) {
  const bool knows_memory = !options.memory.empty() || !options.memory_model.empty();
  if (options.memory_limit_gib && !knows_memory) {
    return Error{ErrorCode::usage, "--memory-limit: --memory FILE.csv or --memory-model NAME is needed"};
  }
  if (!options.stage_layers.empty() && !options.memory.empty()) {
    return Error{ErrorCode::usage,
                 fmt::format("--stage-layers with --memory: {} has the memory of the measured stages, not that of "
                             "other partitions; allowed: --stage-layers with --memory-model NAME",
                             options.memory)};
  }
  return Ok{};
}

Status check_stage_layers(const SearchOptions& options, int stages) {
  const auto given = options.stage_layers.size();
  if (given <= 1 || static_cast<int>(given) == stages) return Ok{};
  return Error{ErrorCode::usage,
               fmt::format("--stage-layers: {} numbers; allowed: one, or one for each of the profile's {} stages",
                           given, stages)};
}

/// Some schedule of the search uses every transfer latency; impossible schedules are left out of the search, so of this
/// too.
Status check_transfers(const search::SearchedJob& job, const std::vector<search::ConfigurationChoice>& choices,
                       const PipelineOptions& pipeline) {
  const int ranks = job.num_ranks > 0 ? job.num_ranks : job.profile.num_stages();
  std::vector<model::Schedule> schedules;
  for (const search::ConfigurationChoice& choice : choices) {
    Result<model::Schedule> made = model::make_schedule(choice.schedule, {ranks, job.microbatches, choice.chunks});
    if (made) schedules.push_back(*std::move(made));
  }
  return check_transfer_count(job.costs.transfer_latency, schedules, latency_origin(pipeline));
}

/// What is searched, and the configurations of it that are possible.
struct SearchedConfigurations {
  search::SearchedJob job;
  std::vector<search::ConfigurationChoice> choices;  ///< the reference first
  std::vector<search::Configuration> configurations;
  std::vector<SkippedConfiguration> left_out;

  [[nodiscard]] Change change_of(const search::Configuration& c) const {
    if (c.microbatches != job.microbatches) return Change::microbatches;
    if (c.name.ends_with(search::kPartitionVariant)) return Change::partition;
    if (c.choice.schedule != choices.front().schedule) return Change::schedule;
    return c.choice.recomputing == choices.front().recomputing ? Change::clocks : Change::recomputation;
  }
};

Result<SearchedConfigurations> configurations_of(Measurements& measured, const SearchOptions& options,
                                                 const SearchPlanner& planner) {
  const int stages = measured.profile.num_stages();
  Result<std::vector<search::ConfigurationChoice>> choices = choices_of(measured.options, options);
  if (!choices) return choices.error();
  Result<search::SearchedJob> job = job_of(measured, options);
  if (!job) return job.error();
  if (Status fits = check_stage_layers(options, stages); !fits) return fits.error();
  if (Status counted = check_transfers(*job, *choices, measured.options); !counted) return counted.error();
  const Result<std::vector<search::SearchedJob>> jobs = jobs_of(*job, measured.options, options);
  if (!jobs) return jobs.error();
  if (Status writable = check_plan_output(planner.out); !writable) return writable.error();
  if (const auto reference = search::configure(*job, choices->front()); !reference) {
    return reference_error(reference.error(), *job, choices->front(), options);
  }
  SearchedConfigurations searched{*std::move(job), *std::move(choices), {}, {}};
  add_configurations(searched.job, searched.choices, searched.configurations, searched.left_out);
  if (!options.stage_layers.empty()) {
    add_partitions(searched.job, searched.choices, options.stage_layers, planner.rule, searched.configurations,
                   searched.left_out);
  }
  for (std::size_t j = 1; j < jobs->size(); ++j) {
    add_configurations((*jobs)[j], searched.choices, searched.configurations, searched.left_out);
  }
  return searched;
}

Result<std::vector<model::Frontier>> plan_each(const std::vector<search::Configuration>& configurations,
                                               const SearchPlanner& planner) {
  std::vector<model::Frontier> frontiers;
  for (const search::Configuration& c : configurations) {
    Result<model::Frontier> frontier =
        planner.plan(c.dag, fmt::format("{} ({} of {})", c.name, frontiers.size() + 1, configurations.size()));
    if (!frontier) return frontier.error();
    frontier = profiling::expected_frontier(c.dag, c.drawn, *std::move(frontier), StopCheck::never());
    if (!frontier) return frontier.error();
    frontiers.push_back(*std::move(frontier));
  }
  return frontiers;
}

/// Both must outlive the result.
std::vector<PlannedConfiguration> described(const SearchedConfigurations& searched,
                                            const std::vector<model::Frontier>& frontiers) {
  std::vector<PlannedConfiguration> planned;
  for (const search::Configuration& c : searched.configurations) {
    planned.push_back({c.name, description_of(c), c.dag, frontiers[planned.size()],
                       c.memory_gib.empty() ? std::nullopt : std::optional(std::ranges::max(c.memory_gib)),
                       c.assumptions, searched.change_of(c)});
  }
  return planned;
}

void print_search(const SearchReport& report, const std::string& out, double took_s, bool as_json) {
  if (as_json) {
    boost::json::object all = search_json(report);
    all["planning_s"] = took_s;
    if (!out.empty()) all["out"] = out;
    print_json(all);
    return;
  }
  print(search_text(report));
  print(fmt::format("planned in {}\n", report::text_of(Seconds(took_s))));
  if (out.empty()) return;
  const search::Origin chosen = report.summary.all.origins[report.summary.default_point];
  print(fmt::format(
      "written to {0}; to look at: {0}/configurations.html\nthe default plan's clocks: {0}/{1}/plans/{2}\n", out,
      report.configurations[chosen.configuration].name, formats::frequency_plan_file_name(chosen.point)));
}

}  // namespace

Result<int> run_plan_search(const PipelineOptions& pipeline, const SearchOptions& options, const SearchPlanner& planner,
                            bool as_json) {
  if (pipeline.profile.empty() || !pipeline.dag.empty() || !pipeline.action_table.empty() ||
      (pipeline.traced && !model::schedule_named(pipeline.schedule))) {
    return Error{ErrorCode::usage,
                 "several configurations need a profile, and schedules that have a name: no --dag, no --action-table, "
                 "no timeline of another order"};
  }
  Result<Measurements> measured = read_measurements(pipeline);
  if (!measured) return measured.error();
  note_assumptions(*measured);
  if (Status known = check_memory(options); !known) return known.error();
  const Result<SearchedConfigurations> searched = configurations_of(*measured, options, planner);
  if (!searched) return searched.error();

  const auto began = std::chrono::steady_clock::now();
  const Result<std::vector<model::Frontier>> frontiers = plan_each(searched->configurations, planner);
  if (!frontiers) return frontiers.error();
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

  const std::vector<PlannedConfiguration> planned = described(*searched, *frontiers);
  const std::string title = measured->facts.front().value;
  const std::optional<double>& limit_gib = searched->job.memory_limit_gib;
  measured->facts.push_back(
      {kConfigurationsKey, fmt::format("{} planned, {} left out; {}", planned.size(), searched->left_out.size(),
                                       limit_gib ? fmt::format("at most {:g} GiB on each rank", *limit_gib)
                                                 : std::string("without a memory limit: see --memory-limit"))});
  const SearchSummary summary = summarize_search(planned, planner.rule);
  const SearchReport report{title, measured->facts, planned, searched->left_out, summary, origin_facts()};
  if (!planner.out.empty()) {
    const Status written = write_search(planner, report, searched->configurations, *measured);
    if (!written) return written.error();
  }
  print_search(report, planner.out, took_s, as_json);
  return 0;
}

}  // namespace perseus::cli
