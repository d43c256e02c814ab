#include "plan/traced_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/median.h"
#include "io/formats/action_table.h"
#include "io/formats/pipeline_constants.h"
#include "io/formats/profile_csv.h"
#include "io/report/timeline_svg.h"
#include "planning/model/make_schedule.h"
#include "planning/model/profile.h"
#include "planning/partitioner/gpu_model.h"

namespace perseus::cli {
namespace {

model::Measurement scaled(model::Measurement m, double factor, int accelerators) {
  m.time = factor * m.time;
  m.time_stddev = factor * m.time_stddev;
  m.energy = factor * accelerators * m.energy;
  m.energy_stddev = factor * accelerators * m.energy_stddev;
  return m;
}

model::Profile one_clock_profile(const UnderstoodTrace& trace, const partitioner::GpuModel& gpu) {
  model::Profile profile;
  const int tensor = trace.job.tensor_parallel;
  profile.accelerators.assign(trace.job.stages, tensor);
  const Watts power = std::min(gpu.power_limit, gpu.static_power + gpu.dynamic_power);
  for (const what_if::TypeTimes& type : trace.slowdown.types) {
    model::Measurement m;
    m.clock = gpu.highest;
    m.time = Seconds(type.usual_s);
    m.energy = tensor * power * m.time;
    profile.entries.push_back({type.stage, std::string(name_of(type.instruction)), {m}});
  }
  return profile;
}

std::vector<int> ranks_of_stages(const model::Schedule& schedule) {
  std::vector<int> ranks(schedule.num_stages);
  for (int r = 0; r < schedule.num_ranks(); ++r) {
    for (const model::Action& action : schedule.ranks[r]) ranks[action.stage] = r;
  }
  return ranks;
}

/// Bars that end at `end` after `origin`, in the DAG's order; powers are those of the profile's highest clocks.
template <class EndOf>
report::Timeline timeline_with(const model::ComputationDag& dag, const what_if::PipelineStep& step,
                               const model::Profile& profile, EndOf end_of) {
  report::Timeline timeline;
  timeline.bars.resize(dag.computations.size());
  for (int r = 0; r < dag.num_ranks(); ++r) {
    for (std::size_t k = 0; k < dag.rank_order[r].size(); ++k) {
      const what_if::TracedOp& op = step.ranks[r].ops[k];
      const int i = dag.rank_order[r][k];
      const model::Measurement& fastest =
          profile.find(op.action.stage, name_of(op.action.instruction))->measurements.front();
      report::TimelineBar& bar = timeline.bars[i];
      bar.end = Seconds(end_of(i, op));
      bar.start = bar.end - Seconds(op.duration_s);
      bar.power = fastest.energy / fastest.time;
      bar.energy = bar.power * Seconds(op.duration_s);
      timeline.makespan = std::max(timeline.makespan, bar.end);
      timeline.effective_energy += bar.energy - dag.blocking_power_of(i) * Seconds(op.duration_s);
    }
  }
  timeline.energy = timeline.effective_energy + dag.total_blocking_power() * timeline.makespan;
  return timeline;
}

}  // namespace

Result<model::Profile> scaled_profile(const UnderstoodTrace& trace, const std::string& path) {
  const auto measured = formats::read_profile_csv(path);
  if (!measured) return measured.error();
  model::Profile profile;
  const int stages = trace.job.stages, tensor = trace.job.tensor_parallel;
  profile.accelerators.assign(stages, tensor);
  for (const what_if::TypeTimes& type : trace.slowdown.types) {
    const int like = type.stage * measured->num_stages() / stages;
    const model::ProfileEntry* entry = measured->find(like, name_of(type.instruction));
    if (entry == nullptr)
      return Error{ErrorCode::usage, fmt::format("{}: no {} of stage {}; expected the instructions of the timeline",
                                                 path, name_of(type.instruction), like)};
    model::ProfileEntry own{type.stage, entry->instruction, {}};
    const double factor = type.usual_s / entry->measurements.front().time.value();
    const int per_accelerator = std::max(1, tensor / measured->accelerators[like]);
    for (const model::Measurement& m : entry->measurements)
      own.measurements.push_back(scaled(m, factor, per_accelerator));
    profile.entries.push_back(std::move(own));
  }
  return profile;
}

model::TransferLatency latency_of(const UnderstoodTrace& trace) {
  const int ranks = trace.job.ranks;
  const std::vector<int> rank_of = ranks_of_stages(trace.job.schedule());
  std::vector<double> all_seconds;
  bool neighbors = true;
  std::map<std::pair<int, bool>, std::vector<double>> seconds;  // by boundary, forward: of several stages
  for (const what_if::TransferTimes& link : trace.slowdown.links) {
    const int from = rank_of[link.boundary + (link.forward ? 0 : 1)];
    const int to = rank_of[link.boundary + (link.forward ? 1 : 0)];
    if (from == to) continue;
    const bool around = std::abs(to - from) > 1;
    neighbors = neighbors && (!around || std::abs(to - from) == ranks - 1);
    all_seconds.push_back(link.median_s);
    seconds[{around ? ranks - 1 : std::min(from, to), (to > from) != around}].push_back(link.median_s);
  }
  if (seconds.empty()) return {};
  if (!neighbors) return Seconds(lower_median(all_seconds));  // one for all
  std::vector<model::BoundaryLatency> boundaries(std::max(ranks - 1, seconds.rbegin()->first.first + 1));
  for (const auto& [link, of_stages] : seconds)
    (link.second ? boundaries[link.first].forward : boundaries[link.first].backward) = Seconds(lower_median(of_stages));
  return model::TransferLatency(std::move(boundaries));
}

bool senders_wait(const UnderstoodTrace& trace) { return trace.job.senders_wait && !latency_of(trace).is_zero(); }

std::string assumption_of(const UnderstoodTrace& trace) {
  return fmt::format(
      "computations{} take their median times in the timeline, each stage as on its usual worker: what varies from "
      "step "
      "to step or with the microbatch is not in this{}",
      trace.job.has_transfers ? " and transfers" : "",
      trace.job.has_transfers || trace.job.ranks == 1 ? "" : "; transfers take no time, since the timeline has none");
}

std::vector<double> stragglers_of(const UnderstoodTrace& trace) {
  for (const what_if::SlowdownCause& cause : trace.slowdown.causes) {
    const std::vector<double>& times = trace.slowdown.pipeline_s;
    if (cause.kind == what_if::CauseKind::worker || cause.kind == what_if::CauseKind::pipeline)
      return {times[cause.worker.pipeline] / lower_median(times)};
  }
  return {1.05, 1.1, 1.2};
}

std::string traced_timelines(const UnderstoodTrace& trace, const PipelineOptions& pipeline) {
  std::vector<const what_if::TracedStep*> steps;
  for (const what_if::TracedStep& step : trace.job.steps) steps.push_back(&step);
  std::ranges::sort(steps, {}, [](const auto* step) { return step->time_s(); });
  const what_if::TracedStep& step = *steps[steps.size() / 2];
  const auto slowest = std::ranges::max_element(step.pipelines, {}, &what_if::measured_span);
  model::ComputationDag dag = trace.job.dag_of(*slowest);
  dag.blocking_power = Watts(*pipeline.blocking_power_w);
  dag.accelerators.assign(dag.num_ranks(), trace.job.tensor_parallel);
  double origin = step.end_s();
  for (const what_if::RankStep& rank : slowest->ranks) origin = std::min(origin, rank.ops.front().start_s);
  const int number = static_cast<int>(slowest - step.pipelines.begin());
  const std::vector<double> end = what_if::replay_pipeline(trace.job, *slowest, number, what_if::measured_times());
  const model::Profile& profile = pipeline.traced->profile;
  std::string svg;
  report::write_timeline_svg(
      dag,
      {{fmt::format("step {}, pipeline {}, as measured", step.number, number),
        timeline_with(dag, *slowest, profile, [&](int, const what_if::TracedOp& op) { return op.end_s() - origin; })},
       {"as replayed", timeline_with(dag, *slowest, profile, [&](int i, const what_if::TracedOp&) { return end[i]; })}},
      [&](std::string_view piece) { svg += piece; });
  return svg;
}

Status set_traced_pipeline(const UnderstoodTrace& trace, const std::string& profile, const std::string& gpu,
                           PipelineOptions& pipeline) {
  TracedPipeline traced{{}, trace.job.schedule(), assumption_of(trace), {}};
  if (profile.empty()) {
    const auto modeled = partitioner::gpu_named(gpu);
    if (!modeled) return modeled.error();
    pipeline.modeled_gpu = gpu;
    pipeline.profile = fmt::format("the timeline's times, {} at its highest clock", gpu);
    traced.profile = one_clock_profile(trace, *modeled);
    pipeline.blocking_power_w = modeled->blocking_power.value();
  } else {
    auto own = scaled_profile(trace, profile);
    if (!own) return own.error();
    pipeline.profile = profile + ", scaled to the timeline's times";
    traced.profile = *std::move(own);
  }
  pipeline.traced = std::move(traced);
  pipeline.schedule = trace.job.schedule().name;
  pipeline.microbatches = trace.job.microbatches;
  pipeline.chunks = trace.job.stages / trace.job.ranks;
  pipeline.transfer_latency = latency_of(trace);
  pipeline.blocking_transfers = senders_wait(trace);
  return Ok{};
}

Result<std::vector<std::pair<std::string, std::string>>> traced_files(const PipelineOptions& pipeline) {
  formats::PipelineConstants constants;
  constants.schedule = model::schedule_named(pipeline.schedule);
  constants.microbatches = pipeline.microbatches;
  constants.costs = {Watts(*pipeline.blocking_power_w), pipeline.transfer_latency, pipeline.blocking_transfers, false};
  std::vector<std::pair<std::string, std::string>> files{
      {"profile.csv", formats::format_profile_csv(pipeline.traced->profile)},
      {"constants.json", formats::format_pipeline_constants(constants)}};
  if (!constants.schedule) {
    auto table = formats::format_action_table(pipeline.traced->schedule);
    if (!table) return table.error();
    files.emplace_back("schedule.csv", *std::move(table));
  }
  return files;
}

}  // namespace perseus::cli
