// A traced job as the input of planning: profile, schedule, transfers.
//
// Problem: a timeline has times but no energies, and one clock.
// Method:  a computation takes the usual pipeline's median. With a measured profile of the same kind of GPU, its curves
//          are scaled to these times; without, a computation draws the modeled GPU's power at its highest clock, and
//          the model gives the other clocks with their range (server/profiling/modeled_profile.h).
// Output:  the options of a pipeline for this job; its files for `trace --out`: profile.csv, constants.json and, where
//          the order has no name, schedule.csv.
// Errors:  those of reading the profile; an unknown GPU; usage: a profile without one of the job's instructions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/pipeline.h"
#include "plan/trace_input.h"

namespace perseus::cli {

/// Sets profile, schedule and transfers. `gpu`: the modeled one, if `profile` is empty.
Status set_traced_pipeline(const UnderstoodTrace& trace, const std::string& profile, const std::string& gpu,
                           PipelineOptions& pipeline);
/// The measured curves, scaled so that the highest clock takes the traced time. Another number of stages is stretched.
Result<model::Profile> scaled_profile(const UnderstoodTrace& trace, const std::string& path);
model::TransferLatency latency_of(const UnderstoodTrace& trace);
/// Ranks wait for their sends.
bool senders_wait(const UnderstoodTrace& trace);
/// What the times above leave out.
std::string assumption_of(const UnderstoodTrace& trace);
/// Time of the slow pipeline, or that of the slowest worker, over that of the others; some, where none is slow.
std::vector<double> stragglers_of(const UnderstoodTrace& trace);
/// The slowest pipeline of the median step, as measured and as replayed.
std::string traced_timelines(const UnderstoodTrace& trace, const PipelineOptions& pipeline);
/// Names and contents.
Result<std::vector<std::pair<std::string, std::string>>> traced_files(const PipelineOptions& pipeline);

}  // namespace perseus::cli
