#include "plan_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cmath>

#include "command.h"
#include "interrupt.h"
#include "io/formats/frequency_plan.h"
#include "io/formats/memory_csv.h"
#include "io/formats/number.h"
#include "io/report/format.h"
#include "io/report/timeline.h"
#include "output_directory.h"
#include "plan_output.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"
#include "planning/partitioner/model_zoo.h"
#include "planning/search/configuration.h"
#include "planning/search/repartition.h"
#include "point_figures.h"
#include "search_output.h"
#include "slowdown.h"

namespace perseus::cli {
namespace {

using search::Configuration;
using search::ConfigurationChoice;
using search::MeasuredWith;
using search::Recomputing;
using search::SearchedJob;

constexpr int kChunks = 2;  ///< of a schedule that leaves the number to the caller

Error usage(std::string message) { return {ErrorCode::usage, std::move(message)}; }

std::vector<std::string> schedules_of(const PipelineOptions& options) {
  if (options.schedule == kBestSchedule) return model::schedule_names();
  return names_in_list(options.schedule);
}

search::Recomputing recomputing_named(const std::string& name) {
  if (name == "none") return search::Recomputing::none;
  if (name == "all") return search::Recomputing::all;
  return name == "best" ? search::Recomputing::best : search::Recomputing::as_measured;
}

/// The configurations to try, the reference first.
Result<std::vector<search::ConfigurationChoice>> choices_of(const PipelineOptions& options,
                                                            const SearchOptions& search) {
  std::vector<std::string> schedules = schedules_of(options);
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    if (std::find(schedules.begin(), schedules.begin() + i, schedules[i]) != schedules.begin() + i) {
      return usage(fmt::format("--schedule: {} is named twice; allowed: once", schedules[i]));
    }
  }
  std::string reference = search.reference_schedule;
  if (reference.empty()) reference = options.schedule == kBestSchedule ? "1f1b" : schedules.front();
  const auto found = std::ranges::find(schedules, reference);
  if (found == schedules.end()) {
    return usage(
        fmt::format("--reference-schedule: {} is not tried; allowed: {}", reference, fmt::join(schedules, ", ")));
  }
  std::rotate(schedules.begin(), found, found + 1);
  const search::Recomputing recomputing = recomputing_named(search.recompute);
  if (recomputing != search::Recomputing::as_measured && search.measured_with.empty()) {
    return usage(
        fmt::format("--recompute {}: --measured-with recomputation or no-recomputation is needed", search.recompute));
  }
  std::vector<search::ConfigurationChoice> choices;
  for (const std::string& schedule : schedules) {
    const int fixed = model::chunks_fixed_by(schedule);
    const int chunks = fixed != 0 ? fixed : options.chunks.value_or(kChunks);
    // The reference is the job's current configuration.
    const bool also = recomputing == search::Recomputing::best || choices.empty();
    if (also || recomputing == search::Recomputing::as_measured)
      choices.push_back({schedule, chunks, search::Recomputing::as_measured});
    if (recomputing != search::Recomputing::as_measured) choices.push_back({schedule, chunks, recomputing});
  }
  return choices;
}

/// From the file or the model; nullopt if neither is given.
Result<std::vector<model::StageMemory>> memory_of(const SearchOptions& search, int stages) {
  if (!search.memory.empty()) {
    Result<std::vector<model::StageMemory>> memory = formats::read_memory_csv(search.memory);
    if (!memory || static_cast<int>(memory->size()) == stages) return memory;
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: {} stages; the profile has {}", search.memory, memory->size(), stages)};
  }
  if (search.memory_model.empty()) return std::vector<model::StageMemory>();
  const auto entry = partitioner::zoo_entry(search.memory_model);
  if (!entry) return entry.error();
  partitioner::Workload workload = entry->workload;
  if (search.microbatch_size) workload.microbatch_size = *search.microbatch_size;
  if (search.sequence_length) workload.sequence_length = *search.sequence_length;
  if (search.tensor_parallel) workload.tensor_parallel = *search.tensor_parallel;
  if (!search.precision.empty())
    workload.precision = search.precision == "tf32" ? partitioner::Precision::tf32 : partitioner::Precision::bf16;
  std::vector<int> layers = search.memory_layers;
  if (layers.empty()) {
    const auto work = partitioner::zoo_layers(search.memory_model, workload);
    if (!work) return work.error();
    const auto all =
        static_cast<int>(std::ranges::count(*work, model::LayerKind::transformer, &partitioner::LayerWork::kind));
    if (all % stages != 0) {
      return usage(fmt::format("--memory-model: {} has {} layers, the profile {} stages; --memory-layers is needed",
                               search.memory_model, all, stages));
    }
    layers = {all / stages};
  }
  return partitioner::zoo_memory(search.memory_model, workload, stages, layers);
}

Result<search::SearchedJob> job_of(Measurements& measured, const SearchOptions& search) {
  search::SearchedJob job;
  job.profile = std::move(measured.profile);
  job.num_ranks = search.ranks.value_or(0);
  job.microbatches = measured.options.microbatches;
  job.costs = measured.costs;
  job.input_gradient_fraction = measured.options.split_backward;
  if (search.measured_with == "recomputation") job.measured_with = search::MeasuredWith::recomputation;
  if (search.measured_with == "no-recomputation") job.measured_with = search::MeasuredWith::no_recomputation;
  Result<std::vector<model::StageMemory>> memory = memory_of(search, job.profile.num_stages());
  if (!memory) return memory.error();
  job.memory = *std::move(memory);
  job.memory_limit_gib = search.memory_limit_gib;
  if (!search.memory_model.empty()) {
    job.assumptions.push_back(
        fmt::format("memory as computed for {}: weights and Adam's state at 16 bytes a "
                    "parameter, no sharded optimizer",
                    search.memory_model));
  }
  return job;
}

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
  std::string text = fmt::format("{}, {} ranks, {} stages, {} microbatches", c.choice.schedule, c.dag.num_ranks(),
                                 c.dag.num_ranks() * c.choice.chunks, c.microbatches);
  if (!c.recomputes.empty()) text += ", " + stages_text(c.recomputes);
  return text;
}

/// A configuration that equals an earlier one adds nothing: `best` may choose the measured one.
bool is_repeated(const search::Configuration& c, const std::vector<search::Configuration>& earlier) {
  return std::ranges::any_of(earlier, [&](const search::Configuration& e) {
    return e.choice.schedule == c.choice.schedule && e.recomputes == c.recomputes && e.microbatches == c.microbatches;
  });
}

struct MicrobatchProfile {
  int count = 0;  ///< microbatches per iteration
  std::string file;
};
Result<MicrobatchProfile> microbatch_profile_of(const std::string& text) {
  const auto equals = text.find('=');
  const auto count = formats::number_in<int>(text.substr(0, equals));
  if (equals == std::string::npos || !count || *count < 1 || *count > (1 << 20) || equals + 1 == text.size()) {
    return usage(
        fmt::format("--microbatch-profile: '{}'; expected COUNT=FILE.csv, COUNT microbatches per iteration (1 to {})",
                    text, 1 << 20));
  }
  return MicrobatchProfile{*count, text.substr(equals + 1)};
}

/// The job with microbatches of another size, at the same global batch.
Result<search::SearchedJob> with_microbatches(const search::SearchedJob& job, const MicrobatchProfile& other,
                                              const PipelineOptions& pipeline, const SearchOptions& search) {
  PipelineOptions options = pipeline;
  options.profile = other.file;
  options.microbatches = other.count;
  options.constants.clear();
  options.blocking_power_w = job.costs.blocking_power.value();
  Result<Measurements> measured = read_measurements(options);
  if (!measured) return measured.error();
  if (measured->profile.accelerators != job.profile.accelerators) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: stages of {} accelerators; {} has {}: both must be profiles of the same ranks",
                             other.file, fmt::join(measured->profile.accelerators, " "), pipeline.profile,
                             fmt::join(job.profile.accelerators, " "))};
  }
  Result<search::SearchedJob> changed = job_of(*measured, search);
  if (!changed) return changed.error();
  const double size = static_cast<double>(job.microbatches) / other.count;  // of a microbatch, against the given one
  for (model::StageMemory& stage : changed->memory) {
    stage.activations_gib *= size;
    stage.checkpoint_gib *= size;
    if (stage.recompute_gib) *stage.recompute_gib *= size;
  }
  changed->variant = fmt::format("+microbatches-{}", other.count);
  changed->assumptions.push_back(fmt::format(
      "{} microbatches of {:g} times the size, as measured in {}: the same samples per iteration{}", other.count, size,
      other.file, changed->memory.empty() ? "" : "; activations take memory in proportion to the size"));
  changed->is_derived = true;  // not from the profile that verify compares
  return changed;
}

/// The job as it is, then with microbatches of each other size.
Result<std::vector<search::SearchedJob>> jobs_of(const search::SearchedJob& job, const PipelineOptions& pipeline,
                                                 const SearchOptions& search) {
  std::vector<search::SearchedJob> jobs{job};
  for (const std::string& text : search.microbatch_profiles) {
    const auto other = microbatch_profile_of(text);
    if (!other) return other.error();
    const auto same = std::ranges::find(jobs, other->count, &search::SearchedJob::microbatches);
    if (same != jobs.end()) {
      return usage(fmt::format("--microbatch-profile: {} microbatches are given twice{}; allowed: once", other->count,
                               same == jobs.begin() ? " (--microbatches)" : ""));
    }
    Result<search::SearchedJob> changed = with_microbatches(job, *other, pipeline, search);
    if (!changed) return changed.error();
    jobs.push_back(*std::move(changed));
  }
  return jobs;
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

/// Adds every configuration once more, on the partition that is best at the default plan's deadline.
void add_partitions(const search::SearchedJob& job, std::vector<int> stage_layers, const model::DefaultRule& rule,
                    std::vector<search::Configuration>& configurations, std::vector<SkippedConfiguration>& left_out) {
  if (stage_layers.size() == 1) stage_layers.resize(job.profile.num_stages(), stage_layers.front());
  const model::ComputationDag& reference = configurations.front().dag;
  const Seconds deadline =
      (1 + rule.slowdown) * report::timeline_of(reference, model::all_maximum_clock(reference)).makespan;
  const std::size_t measured = configurations.size();
  for (std::size_t c = 0; c < measured; ++c) {
    const search::ConfigurationChoice choice = configurations[c].choice;
    const auto cut = search::with_best_partition(job, choice, stage_layers, deadline);
    Result<search::Configuration> made = cut ? search::configure(cut->job, choice) : cut.error();
    if (made) {
      configurations.push_back(*std::move(made));
    } else {
      left_out.push_back({search::name_of(choice) + search::kPartitionVariant, made.error().message});
    }
  }
}

Status write_search(const SearchPlanner& planner, const SearchReport& report,
                    const std::vector<search::Configuration>& configurations, const Measurements& measured) {
  const InterruptGuard guard;
  Result<OutputDirectory> out = OutputDirectory::create(planner.out, is_plan_output);
  if (!out) return out.error();
  const auto file = [&](std::string_view name, const std::function<void(const report::Sink&)>& fill) -> Status {
    if (InterruptGuard::interrupted()) return Ok{};
    return write_output_file(*out, name, fill);
  };
  const auto& planned = report.configurations;
  for (const Status& written :
       {file("configurations.csv",
             [&](const report::Sink& sink) { sink(configurations_csv(planned, report.summary)); }),
        file("frontier.csv", [&](const report::Sink& sink) { sink(union_csv(planned, report.summary)); }),
        file("configurations.svg", [&](const report::Sink& sink) { write_search_svg(report, sink); }),
        file("configurations.html", [&](const report::Sink& sink) { write_search_html(report, sink); })}) {
    if (!written) return written.error();
  }
  for (std::size_t c = 0; c < planned.size(); ++c) {
    Pipeline pipeline;
    pipeline.dag = configurations[c].dag;
    pipeline.title = fmt::format("{}, {}", report.title, planned[c].name);
    pipeline.default_blocking = measured.default_blocking;
    pipeline.facts = measured.facts;
    pipeline.facts.insert(pipeline.facts.begin() + 1, {"schedule", planned[c].description});
    for (const std::string& assumption : planned[c].assumptions) pipeline.facts.push_back({"assumed", assumption});
    formats::Metadata metadata = planner.metadata;
    if (configurations[c].is_derived) metadata[kDerivedKey] = "yes";
    for (const report::ReportFact& fact : pipeline.facts) {
      std::string& text = metadata[fact.name];
      text += (text.empty() ? "" : "; ") + fact.value;
    }
    const Status written = write_plan_files(*out, planned[c].name + "/", pipeline, planned[c].frontier,
                                            figures_of(pipeline.dag, planned[c].frontier, planner.switch_latency), {},
                                            planner.rule, metadata);
    if (!written) return written.error();
  }
  return InterruptGuard::interrupted() ? Status(Ok{}) : out->commit();
}

}  // namespace

void add_search_options(CLI::App& app, SearchOptions& options) {
  const std::string group = "Several configurations";
  app.add_option("--ranks", options.ranks,
                 "Ranks of the pipeline, for each schedule. A rank with several chunks has a stage of the profile "
                 "divided among them, or several stages where there are as many. Unless given: of several schedules, a "
                 "rank for each stage; of one, the profile's stages are the chunks")
      ->check(whole_number_within(1, 65536))
      ->type_name("N")
      ->group(group);
  app.add_option("--reference-schedule", options.reference_schedule,
                 "The schedule that runs today, which savings and 'no slower' are against; the first of --schedule "
                 "unless given, 1f1b for best")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--recompute", options.recompute,
                 "Which stages recompute activations in their backward: as-measured, none, all, or best: besides as "
                 "measured, only those whose activations do not fit (--memory-limit); without a limit, all but stages "
                 "that hold one microbatch at a time")
      ->capture_default_str()
      ->check(CLI::IsMember({"as-measured", "none", "all", "best"}).description(""))
      ->type_name("WHICH")
      ->group(group);
  app.add_option("--measured-with", options.measured_with,
                 "Whether the profile's backward includes a recomputation of the forward: recomputation or "
                 "no-recomputation")
      ->check(CLI::IsMember({"recomputation", "no-recomputation"}).description(""))
      ->type_name("WHAT")
      ->group(group);
  auto* memory = app.add_option("--memory", options.memory,
                                "Memory of each stage: stage,weights_gib,activations_gib,checkpoint_gib,recompute_gib")
                     ->type_name("FILE.csv")
                     ->group(group);
  app.add_option("--memory-limit", options.memory_limit_gib, "Memory of one accelerator; more is left out")
      ->check(number_within(1e-3, 1e6, "GiB"))
      ->type_name("GIB")
      ->group(group);
  auto* model = app.add_option("--memory-model", options.memory_model,
                               "Instead of --memory: computed for a model of 'perseus partition --list', such as "
                               "gpt3-1b, as it is usually trained unless the options below say otherwise")
                    ->type_name("NAME")
                    ->excludes(memory)
                    ->group(group);
  app.add_option("--memory-layers", options.memory_layers,
                 "Transformer layers of each stage; equally many unless given")
      ->delimiter(',')
      ->check(whole_number_within(1, 10000))
      ->type_name("N,...")
      ->needs(model)
      ->group(group);
  app.add_option("--microbatch-size", options.microbatch_size, "Samples of a microbatch")
      ->check(whole_number_within(1, 1'000'000))
      ->type_name("N")
      ->needs(model)
      ->group(group);
  app.add_option("--sequence-length", options.sequence_length, "Tokens of a sample")
      ->check(whole_number_within(1, 10'000'000))
      ->type_name("N")
      ->needs(model)
      ->group(group);
  app.add_option("--tensor-parallel", options.tensor_parallel, "GPUs that share every layer")
      ->check(whole_number_within(1, 1024))
      ->type_name("N")
      ->needs(model)
      ->group(group);
  app.add_option("--precision", options.precision, "bf16 or tf32")
      ->check(CLI::IsMember({"bf16", "tf32"}).description(""))
      ->type_name("NAME")
      ->needs(model)
      ->group(group);
  app.add_option("--stage-layers", options.stage_layers,
                 "Layers of each measured stage (one number: of every stage; the last stage's time shows a head): "
                 "other partitions are tried too, for the least energy at the time of the default plan")
      ->delimiter(',')
      ->check(whole_number_within(1, 10000))
      ->type_name("N,...")
      ->group(group);
  app.add_option("--microbatch-profile", options.microbatch_profiles,
                 "A profile of the same stages measured with another microbatch size, and how many of those make the "
                 "same global batch; may be repeated")
      ->type_name("COUNT=FILE.csv")
      ->group(group);
}

bool is_search(const PipelineOptions& pipeline, const SearchOptions& options) {
  return options.ranks || pipeline.schedule == kBestSchedule || pipeline.schedule.find(',') != std::string::npos ||
         options.recompute != "as-measured" || !options.memory.empty() || !options.memory_model.empty() ||
         options.memory_limit_gib || !options.stage_layers.empty() || !options.reference_schedule.empty() ||
         !options.microbatch_profiles.empty();
}

Result<int> run_plan_search(const PipelineOptions& pipeline, const SearchOptions& options, const SearchPlanner& planner,
                            bool as_json) {
  if (pipeline.profile.empty() || !pipeline.dag.empty() || !pipeline.action_table.empty()) {
    return usage("several configurations need a profile, and schedules that have a name: no --dag, no --action-table");
  }
  Result<Measurements> measured = read_measurements(pipeline);
  if (!measured) return measured.error();
  if (measured->default_blocking) {
    note(fmt::format("no --blocking-power was given: {:.3g} W is assumed, a fifth of the highest power in the profile",
                     measured->costs.blocking_power.value()));
  }
  if (!measured->draws.empty()) {
    note(
        "the profile is noisy: configurations are compared by its pooled means, and a plan's expected time is later; "
        "plan the one that is chosen by itself to see by how much (--schedule NAME alone takes the profile's stages "
        "as chunks, so zbv and dualpipev need a profile of their chunks for that)");
  }
  const bool knows_memory = !options.memory.empty() || !options.memory_model.empty();
  if (options.memory_limit_gib && !knows_memory) {
    return usage("--memory-limit: --memory FILE.csv or --memory-model NAME is needed");
  }
  if (!options.stage_layers.empty() && knows_memory) {
    return usage(
        "--stage-layers, --memory, --memory-model: the memory of other partitions is not known; allowed: one of them");
  }
  const Result<std::vector<search::ConfigurationChoice>> choices = choices_of(measured->options, options);
  if (!choices) return choices.error();
  const Result<search::SearchedJob> job = job_of(*measured, options);
  if (!job) return job.error();
  if (const auto given = options.stage_layers.size();
      given > 1 && static_cast<int>(given) != job->profile.num_stages()) {
    return usage(fmt::format("--stage-layers: {} numbers; allowed: one, or one for each of the profile's {} stages",
                             given, job->profile.num_stages()));
  }
  const Result<std::vector<search::SearchedJob>> jobs = jobs_of(*job, measured->options, options);
  if (!jobs) return jobs.error();
  if (!planner.out.empty()) {
    if (Status writable = check_plan_output(planner.out); !writable) return writable.error();
  }

  std::vector<search::Configuration> configurations;
  std::vector<SkippedConfiguration> left_out;
  if (const auto reference = search::configure(*job, choices->front()); !reference) {
    return Error{reference.error().code, "the reference is not possible: " + reference.error().message};
  }
  add_configurations(*job, *choices, configurations, left_out);
  if (!options.stage_layers.empty()) {
    add_partitions(*job, options.stage_layers, planner.rule, configurations, left_out);
  }
  for (std::size_t j = 1; j < jobs->size(); ++j) add_configurations((*jobs)[j], *choices, configurations, left_out);
  const auto change_of = [&](const search::Configuration& c) {
    if (c.microbatches != job->microbatches) return Change::microbatches;
    if (c.name.ends_with(search::kPartitionVariant)) return Change::partition;
    if (c.choice.schedule != choices->front().schedule) return Change::schedule;
    return c.choice.recomputing == choices->front().recomputing ? Change::clocks : Change::recomputation;
  };
  const auto began = std::chrono::steady_clock::now();
  std::vector<model::Frontier> frontiers;
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    Result<model::Frontier> frontier = planner.plan(
        configurations[c].dag, fmt::format("{} ({} of {})", configurations[c].name, c + 1, configurations.size()));
    if (!frontier) return frontier.error();
    frontiers.push_back(*std::move(frontier));
  }
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

  std::vector<PlannedConfiguration> planned;
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    const search::Configuration& configuration = configurations[c];
    planned.push_back(
        {configuration.name, description_of(configuration), configuration.dag, frontiers[c],
         configuration.memory_gib.empty() ? std::nullopt : std::optional(std::ranges::max(configuration.memory_gib)),
         configuration.assumptions, change_of(configuration)});
  }
  const SearchSummary summary = summarize_search(planned, planner.rule);
  const std::string title = measured->facts.front().value;
  measured->facts.push_back(
      {kConfigurationsKey,
       fmt::format("{} planned, {} left out; {}", planned.size(), left_out.size(),
                   job->memory_limit_gib ? fmt::format("at most {:g} GiB on each rank", *job->memory_limit_gib)
                                         : std::string("without a memory limit: see --memory-limit"))});
  const SearchReport report{title, measured->facts, planned, left_out, summary};
  if (!planner.out.empty()) {
    const Status written = write_search(planner, report, configurations, *measured);
    die_if_interrupted();
    if (!written) return written.error();
  }
  if (as_json) {
    boost::json::object all = search_json(report);
    all["planning_s"] = took_s;
    if (!planner.out.empty()) all["out"] = planner.out;
    print(boost::json::serialize(all) + "\n");
    return 0;
  }
  print(search_text(report));
  print(fmt::format("planned in {}\n", report::text_of(Seconds(took_s))));
  if (!planner.out.empty()) {
    const search::Origin chosen = summary.all.origins[summary.default_point];
    print(fmt::format(
        "written to {0}; to look at: {0}/configurations.html\nthe default plan's clocks: {0}/{1}/plans/{2}\n",
        planner.out, planned[chosen.configuration].name, formats::frequency_plan_file_name(chosen.point)));
  }
  return 0;
}

}  // namespace perseus::cli
