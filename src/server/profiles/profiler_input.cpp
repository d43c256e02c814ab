#include "server/profiles/profiler_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "planning/model/make_schedule.h"
#include "server/jobs/job_shapes.h"
#include "server/jobs/pipeline_input.h"
#include "server/profiles/known_profile.h"

namespace perseus::profiles {

Result<std::vector<int>> common_clocks(const jobs::Job& job, int pipeline, int stage_rank) {
  std::optional<std::vector<int>> common;
  for (int tp = 0; tp < job.spec.degrees.tp; ++tp) {
    const int rank = job.rank_at[job.coordinate(pipeline, stage_rank, tp)];
    const std::vector<int>& own = job.clock_sets[job.ranks[rank]->clock_set];
    if (own.empty()) {
      return Error{ErrorCode::not_found, fmt::format("rank {} has not reported which clocks it supports", rank)};
    }
    if (!common) {
      common = own;
      continue;
    }
    std::vector<int> both;
    std::set_intersection(common->begin(), common->end(), own.begin(), own.end(), std::back_inserter(both),
                          std::greater{});
    common = std::move(both);
  }
  if (!common->empty()) return *std::move(common);
  return Error{ErrorCode::not_found,
               fmt::format("the ranks of stage rank {} of pipeline {} have no clock in common", stage_rank, pipeline)};
}

jobs::PipelineShape own_shape(const jobs::Job& job) {
  if (job.spec.shape) return *job.spec.shape;
  jobs::PipelineShape shape;
  shape.schedule = job.schedule;
  shape.microbatches = job.microbatches;
  return shape;
}

jobs::PipelineShape profiling_shape(const jobs::Job& job) {
  jobs::PipelineShape shape = with_measurements(own_shape(job), job);
  if (shape.chunks == 0) shape.chunks = model::usual_chunks(shape.schedule);
  shape.split_backward.reset();  // the pieces themselves are measured
  return shape;
}

Result<jobs::PipelineShape> profiling_shape(const jobs::Job& job, int microbatches) {
  const auto steps = std::ranges::find(job.shapes, microbatches, &jobs::JobShape::microbatches);
  if (microbatches == 0) return profiling_shape(job);
  return jobs::with_shape(profiling_shape(job), steps == job.shapes.end() ? jobs::JobShape{microbatches, ""} : *steps);
}

Result<profiling::ProfilingJob> profiling_job(const jobs::Job& job, std::vector<std::vector<Megahertz>> clocks) {
  const jobs::PipelineShape shape = profiling_shape(job);
  Result<model::Schedule> schedule = jobs::schedule_of(shape, job.spec.degrees.pp);
  if (!schedule) return schedule.error();
  if (schedule->num_ranks() != job.spec.degrees.pp) {
    return Error{ErrorCode::invalid_input, fmt::format("the schedule has {} ranks, the job's pp degree is {}",
                                                       schedule->num_ranks(), job.spec.degrees.pp)};
  }
  profiling::ProfilingJob profiled;
  profiled.schedule = *std::move(schedule);
  profiled.clocks = std::move(clocks);
  profiled.replicas.assign(job.spec.degrees.pp, job.spec.degrees.tp);
  // Not the ranks' newer measurements: a restarted server must reach the same state.
  profiled.blocking_power = own_shape(job).blocking_power;
  profiled.transfer_latency = shape.transfer_latency.value_or(model::TransferLatency());
  profiled.blocking_transfers = shape.blocking_transfers;
  profiled.serial_transfers = shape.serial_transfers;
  profiled.measure_links = !shape.transfer_latency;
  // This may differ after a restart: it only affects future windows.
  profiled.switch_latency = shape.switch_latency.value_or(Seconds(0));
  return profiled;
}

Status check_instructions(const jobs::Job& job, int rank, const model::Schedule& schedule) {
  std::vector<std::string> wanted;
  for (const model::Action& action : schedule.ranks[job.ranks[rank]->pp_rank]) {
    if (!model::is_constant_time(action.instruction)) wanted.emplace_back(name_of(action.instruction));
  }
  const std::vector<std::string>& named = job.instruction_sets[job.ranks[rank]->instruction_set];
  std::vector<std::string> own;
  std::ranges::copy_if(named, std::back_inserter(own), [](const std::string& name) {
    const auto known = model::instruction_named(name);
    return known && !model::is_constant_time(*known);
  });
  if (named.empty() || own == wanted) return Ok{};
  return Error{
      ErrorCode::invalid_input,
      fmt::format("rank {} runs other instructions than schedule {} gives it: {} instructions, expected {}, or another "
                  "order; give an action table instead",
                  rank, schedule.name, own.size(), wanted.size())};
}

namespace {

/// True for instructions of a rank that the client names and that have no clock to choose.
bool is_known_besides(const jobs::Job& job, const jobs::Rank& rank, const std::string& instruction) {
  const std::vector<std::string>& own = job.instruction_sets[rank.instruction_set];
  return std::ranges::find(own, instruction) != own.end();
}

}  // namespace

profiling::RankResult rank_result(const jobs::Job& job, const jobs::ResultReported& reported,
                                  const model::Schedule& schedule) {
  const jobs::Rank& rank = *job.ranks[reported.rank];
  profiling::RankResult result;
  result.rank = rank.pp_rank;
  result.replica = rank.tp_rank;
  result.window = reported.window;
  for (const double time_s : reported.iteration_time_s) result.iteration_time.emplace_back(time_s);
  for (const double energy_j : reported.iteration_energy_j) result.iteration_energy.emplace_back(energy_j);
  result.time_s = reported.time_s;
  result.energy_j = reported.energy_j;
  // Where the GPU chooses its clock, its limits are part of what is measured.
  if (!job.profiling || !job.profiling->keeps_clocks) result.throttled = reported.throttled;
  const auto no_plan_for = [&](const auto& member) {
    const std::vector<model::Action>& actions = schedule.ranks[rank.pp_rank];
    const bool planned = std::ranges::any_of(
        actions, [&](const model::Action& action) { return name_of(action.instruction) == member.first; });
    return !planned && is_known_besides(job, rank, member.first);
  };
  result.begin_s = reported.begin_s;
  result.end_s = reported.end_s;
  for (auto* breakdown : {&result.time_s, &result.energy_j, &result.begin_s, &result.end_s}) {
    std::erase_if(*breakdown, no_plan_for);
  }
  return result;
}

}  // namespace perseus::profiles
