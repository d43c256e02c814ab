#include "plan/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>

#include "base/count_text.h"
#include "base/split.h"
#include "command_line/command.h"
#include "command_line/origin.h"
#include "io/formats/action_table.h"
#include "io/formats/dag_json.h"
#include "io/formats/pipeline_constants.h"
#include "io/formats/profile_csv.h"
#include "plan/traced_pipeline.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/make_schedule.h"
#include "planning/model/profile.h"
#include "planning/model/profile_doubts.h"
#include "planning/model/schedule.h"
#include "planning/partitioner/gpu_model.h"
#include "server/profiling/modeled_profile.h"

namespace perseus::cli {
namespace {

int chunks_of(const PipelineOptions& options) {
  return options.chunks ? *options.chunks : model::usual_chunks(options.schedule);
}

Result<model::Schedule> schedule_for(const PipelineOptions& options, int num_stages) {
  if (options.traced) return options.traced->schedule;
  if (!options.action_table.empty()) return formats::read_action_table(options.action_table);
  const int chunks = chunks_of(options);
  if (num_stages % chunks != 0) {
    return Error{ErrorCode::usage, fmt::format("{}: {} stages cannot be divided among ranks of {} chunks each",
                                               options.profile, num_stages, chunks)};
  }
  return model::make_schedule(options.schedule, {num_stages / chunks, options.microbatches, chunks});
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

Result<Pipeline> pipeline_from_dag(const PipelineOptions& options) {
  Result<formats::NamedDag> named = formats::read_dag_json(options.dag);
  if (!named) return named.error();
  Pipeline pipeline;
  pipeline.dag = std::move(named->dag);
  if (options.blocking_power_w) pipeline.dag.blocking_power = Watts(*options.blocking_power_w);
  pipeline.title = file_name(options.dag);
  pipeline.facts = {
      {"DAG", fmt::format("{}, {} computations on {} machines", pipeline.title, pipeline.dag.computations.size(),
                          pipeline.dag.num_ranks())},
      {"blocking power", fmt::format("{:g} W", pipeline.dag.blocking_power.value())},
  };
  pipeline.origin = origin_facts();
  return pipeline;
}

}  // namespace

void note_assumed_blocking(Watts assumed) {
  note(fmt::format("no --blocking-power was given: {:.3g} W is assumed, a fifth of the highest power in the profile",
                   assumed.value()));
}

std::vector<report::ReportFact> described_inputs(const Pipeline& pipeline) {
  std::vector<report::ReportFact> facts = pipeline.facts;
  facts.insert(facts.end(), pipeline.origin.begin(), pipeline.origin.end());
  return facts;
}

CLI::Option* add_noise_option(CLI::App& app, std::optional<double>& noise_pct) {
  return add_value(app, "--noise PERCENT", noise_pct,
                   "Noise of one sample of the profile, in percent; 0: use the profile as it is (default: "
                   "estimated; a profile above 0.25 %, with fewer than 20 clocks 0.35 %, is pooled over stages "
                   "and clocks)",
                   number_within(0, 50, "%"));
}

profiling::PooledProfile pooled_by(const model::Profile& profile, std::optional<double> noise_pct) {
  return profiling::pool(profile, noise_pct ? std::optional(*noise_pct / 100) : std::nullopt, profiling::kDraws);
}

std::optional<report::ReportFact> noise_fact(const profiling::PooledProfile& pooled) {
  if (!pooled.changed) return std::nullopt;
  return report::ReportFact{kNoiseKey, fmt::format("{:.2g} % of time, {:.2g} % of power: pooled",
                                                   100 * pooled.time_noise, 100 * pooled.power_noise)};
}

namespace {

/// The options that --action-table, --constants or --dag may exclude.
struct DeclaredOptions {
  CLI::Option *schedule = nullptr, *microbatches = nullptr, *chunks = nullptr;
  CLI::Option *power = nullptr, *latency = nullptr, *blocking = nullptr, *serial = nullptr;
  CLI::Option *split = nullptr, *noise = nullptr;
};

/// What is wrong with the value of --schedule; empty: nothing. `several`: a list and best are allowed too.
std::string schedule_fault(const std::string& text, bool several) {
  if (several && text == kBestSchedule) return {};
  for (const std::string_view name : several ? split(text, ',') : std::vector<std::string_view>{text}) {
    if (model::schedule_named(name)) continue;
    if (name.empty()) return fmt::format("'{}' has an empty name; allowed: names with one comma between two", text);
    if (several && name == kBestSchedule) {
      return fmt::format("'{}': best stands for every schedule; allowed: best alone, or names of schedules", text);
    }
    return fmt::format("{} not in {{{}{}}}", name, fmt::join(model::schedule_names(), ","),
                       several ? fmt::format(",{}", kBestSchedule) : "");
  }
  return {};
}

void add_schedule_options(CLI::App& app, PipelineOptions& options, const std::string& also_schedules,
                          DeclaredOptions& declared) {
  const auto fault = [several = !also_schedules.empty()](const std::string& text) {
    return schedule_fault(text, several);
  };
  declared.schedule = app.add_option("--schedule", options.schedule,
                                     fmt::format("Pipeline schedule: one of {}{}",
                                                 fmt::join(model::schedule_names(), ", "), also_schedules))
                          ->capture_default_str()
                          ->transform(schedule_names())
                          ->check(CLI::Validator(fault, ""))
                          ->type_name(also_schedules.empty() ? "NAME" : "NAME,...");
  declared.microbatches = add_default(app, "-m,--microbatches M", options.microbatches, "Microbatches per iteration",
                                      whole_number_within(1, 1 << 20));
  declared.chunks =
      add_value(app, "--chunks V", options.chunks,
                "Stages per rank (default: 1; 2 for interleaved-1f1b; zbv and dualpipev always have 2). With one "
                "--schedule, ranks = stages of the profile / chunks",
                whole_number_within(1, 1 << 10));
}

void add_cost_options(CLI::App& app, PipelineOptions& options, DeclaredOptions& declared) {
  declared.power = add_value(app, "--blocking-power W", options.blocking_power_w,
                             "Power of one waiting accelerator, in watts (default: 20 % of the profile's peak power)",
                             number_within(0, 1e6, "W"));
  declared.latency =
      add_transfer_latency(
          app,
          "Latency of transfers between ranks, in seconds: one number, or a comma-separated list with one "
          "entry per boundary (0-1, 1-2, ...), FORWARD/BACKWARD where directions differ",
          [&options](const model::TransferLatency& given) { options.transfer_latency = given; })
          ->default_str("0");
  declared.blocking = app.add_flag("--blocking-transfers", options.blocking_transfers,
                                   "A sending rank waits until the transfer ends (default: it computes meanwhile)");
  declared.serial = app.add_flag("--serial-transfers", options.serial_transfers,
                                 "A link carries one transfer per direction at a time; further ones wait (default: "
                                 "transfers do not delay each other)")
                        ->excludes(declared.blocking);
}

void add_profile_options(CLI::App& app, PipelineOptions& options, DeclaredOptions& declared) {
  declared.split =
      add_value(app, "--split-backward FRACTION", options.split_backward,
                "Derive input_gradient and weight_gradient, for schedules that split backward, from the profile's "
                "backward: input_gradient takes this fraction of it",
                number_within(1e-6, 1 - 1e-6, ""));
  declared.noise = add_noise_option(app, options.noise_pct);
}

void add_replacing_files(CLI::App& app, PipelineOptions& options, const DeclaredOptions& declared) {
  auto* table =
      add_value(app, "--action-table FILE.csv", options.action_table, "Action table of PyTorch; replaces --schedule")
          ->excludes(declared.schedule)
          ->excludes(declared.microbatches)
          ->excludes(declared.chunks);
  auto* constants =
      add_value(app, "--constants FILE.json", options.constants,
                "Constants fitted by 'perseus calibrate'; replaces schedule, microbatches, blocking power "
                "and transfers");
  for (auto* option :
       {declared.schedule, declared.microbatches, declared.power, declared.latency, declared.blocking, declared.serial})
    constants->excludes(option);
  add_value(app, "--dag FILE.json", options.dag,
            "DAG of computations, see docs/formats.md; replaces profile and schedule")
      ->excludes(declared.schedule)
      ->excludes(declared.microbatches)
      ->excludes(declared.chunks)
      ->excludes(declared.latency)
      ->excludes(declared.blocking)
      ->excludes(declared.serial)
      ->excludes(constants)
      ->excludes(table)
      ->excludes(declared.split)
      ->excludes(declared.noise);
}

}  // namespace

void add_pipeline_options(CLI::App& app, PipelineOptions& options, const std::string& also_schedules) {
  const OptionGroup group(app, kPipelineGroup);
  DeclaredOptions declared;
  add_schedule_options(app, options, also_schedules, declared);
  add_cost_options(app, options, declared);
  add_profile_options(app, options, declared);
  add_replacing_files(app, options, declared);
}

namespace {

Result<PipelineOptions> with_trace(PipelineOptions options) {
  auto trace = read_trace_input(options.trace);
  if (!trace) return trace.error();
  if (Status good = check_believable(*trace, options.trace); !good) return good.error();
  if (Status set = set_traced_pipeline(*trace, options.profile, {}, options); !set) return set.error();
  options.traced->origin = origin_of(*trace, options.trace);
  return options;
}

}  // namespace

Result<PipelineOptions> with_files(PipelineOptions options) {
  if (!options.trace.files.empty() && !options.traced) return with_trace(std::move(options));
  if (options.constants.empty() || options.other_links) return options;
  const auto constants = formats::read_pipeline_constants(options.constants);
  if (!constants) return constants.error();
  if (!constants->schedule && options.action_table.empty()) {
    return Error{ErrorCode::usage,
                 fmt::format("{}: names no schedule; --action-table FILE.csv is needed", options.constants)};
  }
  if (constants->schedule) options.schedule = *constants->schedule;
  options.microbatches = constants->microbatches;
  options.blocking_power_w = constants->costs.blocking_power.value();
  options.transfer_latency = constants->costs.transfer_latency;
  options.blocking_transfers = constants->costs.blocking_transfers;
  options.serial_transfers = constants->costs.serial_transfers;
  options.other_links.emplace();
  if (!options.serial_transfers) options.other_links = constants->other_links;
  return options;
}

namespace {

/// The pooled profile and its draws; or, of a profile of one clock, those of a model of the GPU.
Status take_profile(const model::Profile& profile, const PipelineOptions& options, Measurements& measured) {
  if (options.modeled_gpu.empty()) {
    profiling::PooledProfile pooled = pooled_by(profile, options.noise_pct);
    if (const auto noise = noise_fact(pooled)) measured.facts.push_back(*noise);
    measured.profile = std::move(pooled.profile);
    measured.draws = std::move(pooled.draws);
    return Ok{};
  }
  const auto gpu = partitioner::gpu_named(options.modeled_gpu);
  if (!gpu) return gpu.error();
  auto modeled = profiling::model_clocks(profile, partitioner::clocks_of(*gpu));
  if (!modeled) return Error{modeled.error().code, fmt::format("{}: {}", options.profile, modeled.error().message)};
  measured.profile = std::move(modeled->profile);
  measured.draws = std::move(modeled->draws);
  measured.modeled = true;
  measured.facts.push_back({"clocks", fmt::format("one measured, the other clocks of {} modeled", gpu->name)});
  return Ok{};
}

}  // namespace

Result<Measurements> read_measurements(const PipelineOptions& given) {
  Result<PipelineOptions> completed = with_files(given);
  if (!completed) return completed.error();
  Measurements measured;
  measured.options = *std::move(completed);
  const PipelineOptions& options = measured.options;
  Result<model::Profile> profile =
      options.traced ? options.traced->profile : formats::read_profile_csv(options.profile);
  if (!profile) return profile.error();
  const std::optional<Watts> blocking_power =
      options.blocking_power_w ? std::optional(Watts(*options.blocking_power_w)) : std::nullopt;
  if (Status taken = take_profile(*profile, options, measured); !taken) return taken.error();
  for (const std::string& doubt :
       model::profile_doubts(measured.modeled ? measured.profile : *profile, blocking_power)) {
    note(fmt::format("{}: {}", options.profile, doubt));
  }
  const Watts blocking =
      options.blocking_power_w ? Watts(*options.blocking_power_w) : model::guessed_blocking_power(measured.profile);
  measured.costs = {blocking, options.transfer_latency, options.blocking_transfers, options.serial_transfers};
  measured.default_blocking = !options.blocking_power_w;
  measured.facts.insert(
      measured.facts.begin(),
      {{"profile", file_name(options.profile)},
       {"blocking power", fmt::format("{:g} W{}", blocking.value(), measured.default_blocking ? kGuessed : "")}});
  if (options.traced && !options.traced->origin.empty()) {
    measured.facts.push_back({"timeline", options.traced->origin});
    measured.facts.push_back({"assumed", options.traced->assumption});
  }
  if (!options.transfer_latency.is_zero()) {
    measured.facts.push_back({"transfer latency", fmt::format("{}{}", model::text_of(options.transfer_latency),
                                                              options.blocking_transfers ? ", the sender waits"
                                                              : options.serial_transfers ? ", transfers queue"
                                                                                         : "")});
  }
  return measured;
}

Result<planner::LatencySets> other_latencies(const PipelineOptions& options, const model::ComputationDag& dag) {
  planner::LatencySets sets;
  if (!options.other_links) return sets;
  for (const model::OtherLinks& links : *options.other_links) {
    auto latencies = model::dependency_latencies(dag, links);
    if (!latencies) {
      return Error{latencies.error().code,
                   fmt::format("{}: $.other_links[{}]: {}", options.constants, sets.size(), latencies.error().message)};
    }
    sets.push_back(*std::move(latencies));
  }
  return sets;
}

Result<Pipeline> read_pipeline(const PipelineOptions& given) {
  if (given.profile.empty() == given.dag.empty()) {
    return Error{ErrorCode::usage, !given.dag.empty()          ? "a profile and --dag exclude each other"
                                   : given.trace.files.empty() ? "a profile or --dag FILE.json is needed"
                                                               : "--trace: a measured profile of the same kind of GPU "
                                                                 "is needed before it"};
  }
  if (!given.dag.empty()) return pipeline_from_dag(given);
  Result<Measurements> measured = read_measurements(given);
  if (!measured) return measured.error();
  const PipelineOptions& options = measured->options;
  Result<model::Profile> profile = std::move(measured->profile);
  if (options.split_backward) {
    profile = model::split_backward(*std::move(profile), *options.split_backward);
    if (!profile) return profile.error();
  }
  Result<model::Schedule> schedule = schedule_for(options, profile->num_stages());
  if (!schedule) return schedule.error();
  const Status counted = check_transfer_count(options.transfer_latency, {*schedule}, latency_origin(options));
  if (!counted) return counted.error();
  Result<model::ComputationDag> dag = model::build_dag(*profile, *schedule, measured->costs);
  if (!dag) return Error{dag.error().code, fmt::format("{}: {}", options.profile, dag.error().message)};

  Pipeline pipeline;
  pipeline.dag = *std::move(dag);
  auto drawn =
      profiling::drawn_types(measured->draws, options.split_backward, *schedule, measured->costs, StopCheck::never());
  if (!drawn) return Error{drawn.error().code, fmt::format("{}: {}", options.profile, drawn.error().message)};
  pipeline.drawn = *std::move(drawn);
  auto other_links = other_latencies(options, pipeline.dag);
  if (!other_links) return other_links.error();
  pipeline.other_links = *std::move(other_links);
  pipeline.title = file_name(options.profile);
  pipeline.default_blocking = measured->default_blocking;
  pipeline.modeled = measured->modeled;
  pipeline.facts = std::move(measured->facts);
  pipeline.origin = origin_facts();
  pipeline.facts.insert(
      pipeline.facts.begin() + 1,
      {"schedule",
       fmt::format("{}, {}, {}, {}", options.action_table.empty() ? schedule->name : file_name(options.action_table),
                   count_text(schedule->num_ranks(), "rank"), count_text(schedule->num_stages, "stage"),
                   count_text(schedule->num_microbatches, "microbatch"))});
  return pipeline;
}

Status check_transfer_count(const model::TransferLatency& latency, const std::vector<model::Schedule>& schedules,
                            const Error& given_in) {
  const int given = static_cast<int>(latency.boundaries.size());
  if (given == 0 || schedules.empty()) return Ok{};
  std::map<int, std::string> allowed;
  for (const model::Schedule& schedule : schedules) {
    const int count = model::boundary_count(schedule), ranks = schedule.num_ranks();
    allowed[count] = fmt::format("{} (one per boundary of {} ranks{})", count, ranks,
                                 count == ranks ? ", and one between the last and the first" : "");
  }
  if (allowed.contains(given)) return Ok{};
  std::string text = "one for all";
  for (const auto& [count, meaning] : allowed) text += " or " + meaning;
  return Error{given_in.code, fmt::format("{}: {} entries; allowed: {}", given_in.message, given, text)};
}

Error latency_origin(const PipelineOptions& options) {
  if (options.constants.empty()) return {ErrorCode::usage, "--transfer-latency"};
  return {ErrorCode::invalid_input, options.constants + ": transfer_latency_s"};
}

}  // namespace perseus::cli
