#include "search/searched_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/split.h"
#include "command_line/command.h"
#include "io/formats/memory_csv.h"
#include "io/formats/number.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"
#include "planning/partitioner/model_zoo.h"

namespace perseus::cli {
namespace {

constexpr int kChunks = 2;  ///< of a schedule that leaves the number to the caller

Error usage(std::string message) { return {ErrorCode::usage, std::move(message)}; }

std::vector<std::string> schedules_of(const PipelineOptions& options) {
  if (options.schedule == kBestSchedule) return model::schedule_names();
  const std::vector<std::string_view> names = split(options.schedule, ',');
  return {names.begin(), names.end()};
}

search::Recomputing recomputing_named(const std::string& name) {
  if (name == "none") return search::Recomputing::none;
  if (name == "all") return search::Recomputing::all;
  return name == "best" ? search::Recomputing::best : search::Recomputing::as_measured;
}

/// The schedules to try, the reference first.
Result<std::vector<std::string>> ordered_schedules(const PipelineOptions& options, const SearchOptions& search) {
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
  return schedules;
}

/// Transformer layers of each stage of that model: those given, or equally many.
Result<std::vector<int>> layers_of(const SearchOptions& search, const partitioner::Workload& workload, int stages) {
  const std::vector<int> of_memory = layers_per_stage(search.memory_layers, stages);
  const std::vector<int> of_profile = layers_per_stage(search.stage_layers, stages);
  if (!of_memory.empty() && !of_profile.empty() && of_memory != of_profile) {
    return usage(fmt::format("--memory-layers {}: --stage-layers are {}; allowed: the same layers, or one of them",
                             fmt::join(of_memory, ","), fmt::join(of_profile, ",")));
  }
  if (!of_memory.empty()) return of_memory;
  if (!of_profile.empty()) return of_profile;
  const auto work = partitioner::zoo_layers(search.memory_model, workload);
  if (!work) return work.error();
  const auto all =
      static_cast<int>(std::ranges::count(*work, model::LayerKind::transformer, &partitioner::LayerWork::kind));
  if (all % stages != 0) {
    return usage(fmt::format("--memory-model: {} has {} layers, the profile {} stages; --memory-layers is needed",
                             search.memory_model, all, stages));
  }
  return std::vector<int>(stages, all / stages);
}

Status read_memory(const SearchOptions& search, search::SearchedJob& job) {
  Result<std::vector<model::StageMemory>> memory = formats::read_memory_csv(search.memory);
  if (!memory) return memory.error();
  if (static_cast<int>(memory->size()) != job.profile.num_stages()) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: {} stages; the profile has {}", search.memory,
                                                       memory->size(), job.profile.num_stages())};
  }
  job.memory = *std::move(memory);
  return Ok{};
}

/// The training setup for which the memory of a model is computed.
Result<partitioner::Workload> workload_of(const SearchOptions& search) {
  const auto entry = partitioner::zoo_entry(search.memory_model);
  if (!entry) return entry.error();
  partitioner::Workload workload = entry->workload;
  if (search.microbatch_size) workload.microbatch_size = *search.microbatch_size;
  if (search.sequence_length) workload.sequence_length = *search.sequence_length;
  if (search.tensor_parallel) workload.tensor_parallel = *search.tensor_parallel;
  if (!search.precision.empty())
    workload.precision = search.precision == "tf32" ? partitioner::Precision::tf32 : partitioner::Precision::bf16;
  return workload;
}

std::string text_of(const partitioner::Workload& workload) {
  return fmt::format("microbatch size {}, sequence length {}, {}, tensor parallelism {}", workload.microbatch_size,
                     workload.sequence_length, partitioner::precision_name(workload.precision),
                     workload.tensor_parallel);
}

std::string text_of(search::MeasuredWith measured_with) {
  if (measured_with == search::MeasuredWith::unknown) return "it is unknown whether the profile recomputes";
  return measured_with == search::MeasuredWith::recomputation ? "the profile recomputes"
                                                              : "the profile does not recompute";
}

Status compute_memory(const SearchOptions& search, search::SearchedJob& job) {
  const Result<partitioner::Workload> workload = workload_of(search);
  if (!workload) return workload.error();
  Result<std::vector<int>> layers = layers_of(search, *workload, job.profile.num_stages());
  if (!layers) return layers.error();
  const auto memory_of = [model = search.memory_model, workload = *workload](const std::vector<int>& each) {
    return partitioner::zoo_memory(model, workload, static_cast<int>(each.size()), each);
  };
  const Status known = search::set_memory({*std::move(layers), memory_of}, job);
  if (!known) return known.error();
  job.assumptions.push_back(
      fmt::format("memory as computed for {}, {}; {}; weights and Adam's state at 16 bytes a parameter, no sharded "
                  "optimizer",
                  search.memory_model, text_of(*workload), text_of(job.measured_with)));
  return Ok{};
}

/// Memory of microbatches of another size.
std::vector<model::StageMemory> with_size(std::vector<model::StageMemory> memory, double size) {
  for (model::StageMemory& stage : memory) {
    stage.activations_gib *= size;
    stage.checkpoint_gib *= size;
    if (stage.recompute_gib) *stage.recompute_gib *= size;
  }
  return memory;
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
  changed->memory = with_size(std::move(changed->memory), size);
  if (changed->layer_memory) {
    changed->layer_memory->of = [size, given = job.layer_memory->of](const std::vector<int>& layers) {
      Result<std::vector<model::StageMemory>> memory = given(layers);
      return memory ? with_size(*std::move(memory), size) : memory;
    };
  }
  changed->variant = fmt::format("+microbatches-{}", other.count);
  changed->assumptions.push_back(fmt::format(
      "{} microbatches of {:g} times the size, as measured in {}: the same samples per iteration{}", other.count, size,
      other.file, changed->memory.empty() ? "" : "; activations take memory in proportion to the size"));
  changed->is_derived = true;  // not from the profile that verify compares
  return changed;
}

}  // namespace

std::vector<int> layers_per_stage(std::vector<int> given, int stages) {
  if (given.size() == 1) given.resize(stages, given.front());
  return given;
}

Result<std::vector<search::ConfigurationChoice>> choices_of(const PipelineOptions& options,
                                                            const SearchOptions& search) {
  const Result<std::vector<std::string>> schedules = ordered_schedules(options, search);
  if (!schedules) return schedules.error();
  const search::Recomputing recomputing = recomputing_named(search.recompute);
  if (recomputing != search::Recomputing::as_measured && search.measured_with.empty()) {
    return usage(
        fmt::format("--recompute {}: --measured-with recomputation or no-recomputation is needed", search.recompute));
  }
  std::vector<search::ConfigurationChoice> choices;
  for (const std::string& schedule : *schedules) {
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

Result<search::SearchedJob> job_of(Measurements& measured, const SearchOptions& search) {
  search::SearchedJob job;
  job.profile = std::move(measured.profile);
  job.draws = std::move(measured.draws);
  job.num_ranks = search.ranks.value_or(0);
  job.microbatches = measured.options.microbatches;
  job.costs = measured.costs;
  job.input_gradient_fraction = measured.options.split_backward;
  if (search.measured_with == "recomputation") job.measured_with = search::MeasuredWith::recomputation;
  if (search.measured_with == "no-recomputation") job.measured_with = search::MeasuredWith::no_recomputation;
  job.memory_limit_gib = search.memory_limit_gib;
  Status known = Ok{};
  if (!search.memory.empty()) known = read_memory(search, job);
  if (!search.memory_model.empty()) known = compute_memory(search, job);
  if (!known) return known.error();
  return job;
}

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

Error reference_error(Error error, search::SearchedJob job, const search::ConfigurationChoice& reference,
                      const SearchOptions& search) {
  error.message = "the reference configuration is not possible: " + error.message;
  if (search.memory_model.empty() || !job.memory_limit_gib) return error;
  job.memory_limit_gib.reset();
  if (!search::configure(job, reference).ok()) return error;
  const bool recomputes = job.measured_with == search::MeasuredWith::recomputation;
  error.message += fmt::format(
      "; the memory is computed for {}, {}; to change it: --microbatch-size, --sequence-length, --precision, "
      "--tensor-parallel, --memory-layers{}",
      text_of(workload_of(search).value()), recomputes ? "recomputation" : "no recomputation",
      job.measured_with == search::MeasuredWith::unknown ? ", --measured-with recomputation" : "");
  return error;
}

}  // namespace perseus::cli
