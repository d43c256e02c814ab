// A traced job as the input of planning: profile, schedule, transfers.
//
// Problem: a timeline has times but no energies, and one clock.
// Method:  a computation takes the usual pipeline's median. With a measured profile of the same kind of GPU, its curves
//          are scaled to these times; without, a computation draws the modeled GPU's power at its highest clock, and
//          the model gives the other clocks with their range (server/profiling/modeled_profile.h).
// Output:  the options of `perseus advise` for this job; its files for --out: profile.csv, constants.json and, where
//          the order has no name, schedule.csv.
// Errors:  those of reading the profile; an unknown GPU; usage: a profile without one of the job's instructions.
// Threads: pure but for the files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "advise.h"
#include "trace_answer.h"

namespace perseus::cli {

/// `gpu`: the modeled one, if `profile` is empty.
Status set_traced_pipeline(const TraceAnswer& answer, const std::string& profile, const std::string& gpu,
                           AdviseOptions& options);
/// The slowest pipeline of the median step, as measured and as replayed.
std::string traced_timelines(const TraceAnswer& answer, const AdviseOptions& options);
/// Names and contents.
Result<std::vector<std::pair<std::string, std::string>>> traced_files(const AdviseOptions& options);

}  // namespace perseus::cli
