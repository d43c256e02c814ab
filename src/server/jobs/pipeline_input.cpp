#include "server/jobs/pipeline_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cpu_time.h"
#include "io/formats/action_table.h"
#include "io/formats/file.h"
#include "io/formats/plan_file.h"
#include "io/formats/profile_csv.h"
#include "io/http/content_coding.h"
#include "planning/baselines/best_of_all.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/make_schedule.h"
#include "planning/model/profile.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/quick.h"
#include "planning/planner/realize.h"
#include "server/jobs/describe.h"
#include "server/profiling/expected_frontier.h"
#include "server/profiling/pooled_profile.h"

namespace perseus::jobs {

void describe(auto& f, MaybeConst<PipelineInput> auto& s) {
  f.always("profile_csv", s.profile_csv);
  f.always("shape", s.shape);
  f.always("stages", s.stages);
  f.always("ranks", s.ranks);
  f.always("microbatches", s.microbatches);
  f.always("deadlines", s.deadlines);
}

namespace {

constexpr std::string_view kQuickSuffix = ".quick";
constexpr int kMostPlannedClocks = 20'000'000, kLeastDeadlines = 20;  // of the plans of a frontier

/// The profile, with derived instructions that the schedule needs beyond the measured ones.
Result<model::Profile> profile_of(const std::string& csv, const PipelineShape& shape) {
  Result<model::Profile> profile = formats::parse_profile_csv(csv, "profile");
  if (profile && shape.split_backward) return model::split_backward(*std::move(profile), *shape.split_backward);
  return profile;
}

Error wrong(const std::string& message) { return {ErrorCode::invalid_input, message}; }

Status check_range(const char* name, std::optional<double> value, double most) {
  if (!value || (*value >= 0 && *value <= most)) return Ok{};
  return wrong(fmt::format("{}: {}; allowed: 0 to {}", name, *value, most));
}

Status check_latency(const std::optional<model::TransferLatency>& latency) {
  constexpr double most_s = 1e6;
  if (!latency) return Ok{};
  if (Status status = check_range("transfer_latency_s", latency->common.value(), most_s); !status) return status;
  for (const model::BoundaryLatency& boundary : latency->boundaries) {
    for (const Seconds value : {boundary.forward, boundary.backward}) {
      if (Status status = check_range("transfer_latency_s", value.value(), most_s); !status) return status;
    }
  }
  return Ok{};
}

Result<model::Schedule> table_of(const PipelineShape& shape) {
  return formats::parse_action_table(shape.action_table, "action table");
}

/// Sets chunks and ranks, from the number of stages.
Status complete_ranks(PipelineShape& shape, const InputLimits& limits, int stages, int& ranks) {
  if (shape.chunks == 0) shape.chunks = model::chunks_fixed_by(shape.schedule);
  if (shape.chunks == 0 && limits.ranks > 0 && stages % limits.ranks == 0) shape.chunks = stages / limits.ranks;
  if (shape.chunks == 0) shape.chunks = model::usual_chunks(shape.schedule);
  if (shape.chunks < 1 || stages % shape.chunks != 0) {
    return wrong(fmt::format("chunks: {}; the profile's {} stages cannot be divided among ranks of so many chunks each",
                             shape.chunks, stages));
  }
  ranks = stages / shape.chunks;
  return Ok{};
}

Result<model::ComputationDag> dag_of(const PipelineInput& input, const model::Profile& profile) {
  const Result<model::Schedule> schedule = schedule_of(input.shape, input.ranks);
  if (!schedule) return schedule.error();
  return model::build_dag(profile, *schedule, costs_of(input.shape));
}

void add_all_max(CharacterizedPipeline& pipeline) {
  const planner::Realizer::Outcome all_max =
      planner::Realizer(pipeline.dag).realize(model::all_maximum_clock(pipeline.dag));
  pipeline.all_max_time = all_max.time + pipeline.frontier.maximum_clock_noise.lateness;
  pipeline.all_max_effective_energy = all_max.effective_energy;
}

}  // namespace

model::PipelineCosts costs_of(const PipelineShape& shape) {
  return {shape.blocking_power.value_or(Watts(0)), shape.transfer_latency.value_or(model::TransferLatency()),
          shape.blocking_transfers, shape.serial_transfers};
}

Status check_shape(const PipelineShape& shape, int max_computations) {
  if (shape.split_backward && !(*shape.split_backward > 0 && *shape.split_backward < 1)) {
    return wrong(fmt::format("split_backward: {}; allowed: between 0 and 1", *shape.split_backward));
  }
  for (const Status& status :
       {check_range("blocking_power_w", number_of(shape.blocking_power), 1e6), check_latency(shape.transfer_latency),
        check_range("switch_latency_s", number_of(shape.switch_latency), 1e6),
        check_range("min_dwell_s", number_of(shape.min_dwell), 1e6)}) {
    if (!status) return status;
  }
  if (shape.chunks < 0 || shape.chunks > max_computations) {
    return wrong(fmt::format("chunks: {}; allowed: 0 to {}", shape.chunks, max_computations));
  }
  if (!shape.action_table.empty()) {
    constexpr std::size_t computation_bytes = 32;
    const std::size_t most = computation_bytes * static_cast<std::size_t>(max_computations);
    if (shape.action_table.size() > most) {
      return Error{ErrorCode::too_large,
                   fmt::format("action table: {} bytes; allowed: {}", shape.action_table.size(), most)};
    }
    const Result<model::Schedule> table = table_of(shape);
    return table ? Status(Ok{}) : Status(table.error());
  }
  if (!model::schedule_named(shape.schedule)) {
    return wrong(fmt::format("schedule: '{}'; allowed: {}", shape.schedule, fmt::join(model::schedule_names(), ", ")));
  }
  if (shape.microbatches < 1 || shape.microbatches > max_computations) {
    return wrong(fmt::format("microbatches: {}; allowed: 1 to {}", shape.microbatches, max_computations));
  }
  return Ok{};
}

Result<PipelineInput> complete(const std::string& profile_csv, PipelineShape shape, const InputLimits& limits) {
  if (Status checked = check_shape(shape, limits.max_computations); !checked) return checked.error();
  const Result<model::Profile> profile = profile_of(profile_csv, shape);
  if (!profile) return profile.error();
  PipelineInput input{profile_csv, std::move(shape), profile->num_stages(), 0, 0, limits.deadlines};
  if (!input.shape.blocking_power) input.shape.blocking_power = model::guessed_blocking_power(*profile);
  if (!input.shape.action_table.empty()) {
    const Result<model::Schedule> table = table_of(input.shape);
    if (!table) return table.error();
    input.ranks = table->num_ranks();
    input.microbatches = table->num_microbatches;
    if (table->num_stages != input.stages) {
      return wrong(fmt::format("the action table has {} stages, the profile {}", table->num_stages, input.stages));
    }
  } else {
    input.microbatches = input.shape.microbatches;
    if (Status completed = complete_ranks(input.shape, limits, input.stages, input.ranks); !completed) {
      return completed.error();
    }
  }
  if (limits.ranks > 0 && input.ranks != limits.ranks) {
    return wrong(fmt::format("the pipeline has {} ranks ({} stages, {} on each), the job's pp degree is {}",
                             input.ranks, input.stages, input.stages / std::max(1, input.ranks), limits.ranks));
  }
  // Each microbatch passes each stage in up to three pieces.
  if (3.0 * input.stages * input.microbatches > limits.max_computations) {
    return Error{ErrorCode::too_large,
                 fmt::format("{} stages times {} microbatches make more than the {} computations that are allowed",
                             input.stages, input.microbatches, limits.max_computations)};
  }
  const Result<model::ComputationDag> dag = dag_of(input, *profile);
  if (!dag) return dag.error();
  return input;
}

Result<model::Schedule> schedule_of(const PipelineShape& shape, int ranks) {
  if (!shape.action_table.empty()) return table_of(shape);
  return model::make_schedule(shape.schedule, {ranks, shape.microbatches, std::max(1, shape.chunks)});
}

Result<model::ComputationDag> dag_of(const PipelineInput& input) {
  const Result<model::Profile> profile = profile_of(input.profile_csv, input.shape);
  if (!profile) return profile.error();
  return dag_of(input, *profile);
}

std::string format_input(const PipelineInput& input) { return json_text(input); }

Result<PipelineInput> parse_input(std::string_view text, const std::string& name) {
  return parse_json_as<PipelineInput>(text, name);
}

std::string quick_frontier_key(std::string_view input_key) {
  return std::string(input_key) + std::string(kQuickSuffix);
}
bool is_quick_frontier_key(std::string_view frontier_key) { return frontier_key.ends_with(kQuickSuffix); }
std::string_view input_of_frontier(std::string_view frontier_key) {
  if (is_quick_frontier_key(frontier_key)) frontier_key.remove_suffix(kQuickSuffix.size());
  return frontier_key;
}

Result<CharacterizedPipeline> characterize(const std::string& input_key, const PipelineInput& input,
                                           const CharacterizationEffort& effort, StopCheck& check) {
  const Result<model::Profile> measured = formats::parse_profile_csv(input.profile_csv, "profile");
  if (!measured) return measured.error();
  const Result<model::Schedule> schedule = schedule_of(input.shape, input.ranks);
  if (!schedule) return schedule.error();
  profiling::PooledProfile pooled = profiling::pool(*measured, std::nullopt, profiling::kDraws);
  const auto& split = input.shape.split_backward;
  const Result<model::Profile> profile =
      split ? model::split_backward(std::move(pooled.profile), *split) : std::move(pooled.profile);
  if (!profile) return profile.error();
  const model::PipelineCosts costs = costs_of(input.shape);
  Result<model::ComputationDag> dag = model::build_dag(*profile, *schedule, costs);
  if (!dag) return dag.error();
  const auto drawn = profiling::drawn_types(pooled.draws, split, *schedule, costs, check);
  if (!drawn) return drawn.error();
  planner::PlannerOptions options;
  // More plans of that many computations exceed memory and file limits.
  options.deadlines =
      std::clamp(kMostPlannedClocks / static_cast<int>(dag->computations.size()), kLeastDeadlines, input.deadlines);
  options.switch_latency = input.shape.switch_latency.value_or(Seconds(0));
  options.min_dwell = input.shape.min_dwell.value_or(Seconds(0));
  CharacterizedPipeline pipeline{input_key, *std::move(dag), {}, {}, {}};
  const auto quick_above_s = effort.quick_above_s;
  bool quick = quick_above_s && planner::estimated_planning_s(pipeline.dag, options) > *quick_above_s;
  if (!quick) {
    const double begin_s = thread_cpu_s();
    StopCheck check_estimate([&] {
      return check.stop(StopCheck::kCostBetweenQuestions) ||
             (quick_above_s && thread_cpu_s() - begin_s > effort.quick_after_s);
    });
    auto frontier = baselines::plan_best_of_all(pipeline.dag, options, {}, check_estimate);
    if (!frontier && check.stopped()) return frontier.error();
    quick = !frontier;
    if (frontier) pipeline.frontier = *std::move(frontier);
  }
  if (quick) {
    auto frontier = planner::plan_quick(pipeline.dag, options, check);
    if (!frontier) return frontier.error();
    pipeline.key = quick_frontier_key(input_key);
    pipeline.frontier = *std::move(frontier);
  }
  auto expected = profiling::expected_frontier(pipeline.dag, *drawn, std::move(pipeline.frontier), check);
  if (!expected) return expected.error();
  pipeline.frontier = *std::move(expected);
  if (pipeline.frontier.points.empty()) return Error{ErrorCode::internal, "the frontier has no point"};
  add_all_max(pipeline);
  return pipeline;
}

std::string format_frontier(const CharacterizedPipeline& pipeline) {
  constexpr int fast = 1;  // already a tenth of the size
  const std::string text = formats::format_plan_file(pipeline.dag, pipeline.frontier);
  return text.size() > formats::kMaxFileBytes ? "" : http::gzipped(text, fast);
}

Result<CharacterizedPipeline> parse_frontier(const std::string& key, std::string_view text) {
  const std::string name = "frontier/" + key;
  const auto plain = formats::gunzipped(text, name, formats::kMaxFileBytes);
  if (!plain) return plain.error();
  Result<formats::PlanFile> file = formats::parse_plan_file(*plain, name);
  if (!file) return file.error();
  CharacterizedPipeline pipeline{key, std::move(file->dag), std::move(file->frontier), {}, {}};
  add_all_max(pipeline);
  return pipeline;
}

}  // namespace perseus::jobs
