// Input of the online profiler from a job: its schedule and clocks, and the results of its ranks.
//
// Input:   a job whose shape is known and whose ranks have registered.
// Errors:  a Result that names the rank or the schedule.
// Cost:    linear in the ranks or the result.
// Threads: pure functions.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "server/jobs/job.h"
#include "server/profiling/online_profiler.h"

namespace perseus::profiles {

/// Clocks that all of these ranks support, highest first.
Result<std::vector<int>> common_clocks(const jobs::Job& job, int pipeline, int stage_rank);
/// The job's shape as it registered, or as its profile has it.
jobs::PipelineShape own_shape(const jobs::Job& job);
/// The job's shape as it is profiled: with all chunks, and backwards as the pieces that are measured.
jobs::PipelineShape profiling_shape(const jobs::Job& job);
/// The same for steps of that shape; 0: as the job registered. Error: it has no such steps.
Result<jobs::PipelineShape> profiling_shape(const jobs::Job& job, int microbatches);
/// `clocks`: per stage, highest first.
Result<profiling::ProfilingJob> profiling_job(const jobs::Job& job, std::vector<std::vector<Megahertz>> clocks);
/// Ok if the rank's instructions match the schedule, or if it named none.
Status check_instructions(const jobs::Job& job, int rank, const model::Schedule& schedule);
/// A rank's result in the profiler's form, without measurements of instructions that plans do not cover.
profiling::RankResult rank_result(const jobs::Job& job, const jobs::ResultReported& reported,
                                  const model::Schedule& schedule);

}  // namespace perseus::profiles
