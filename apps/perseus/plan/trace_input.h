// Timelines as the input of a command: the options that say how to read them, and the job that they show.
//
// Output:  a job, what slows it down, and how far its replay is from the timeline.
// Errors:  those of the readers and of understand(); usage: a file given twice.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "evaluation/what_if/replay_step.h"
#include "evaluation/what_if/slowdown_causes.h"
#include "io/trace/span.h"

namespace perseus::cli {

struct TraceInput {
  std::vector<std::string> files;
  std::string names;  ///< a ready mapping or a file; empty: the ready one that knows the first event
  what_if::JobDegrees degrees;
};

struct UnderstoodTrace {
  trace::TraceSpans timeline;  ///< without its spans
  what_if::TracedJob job;
  what_if::ReplayErrors errors;
  what_if::Slowdown slowdown;
};

/// --names, --pipeline-parallel.
void add_trace_names_options(CLI::App& app, TraceInput& input);
/// --trace and those, for commands that take the job in place of a schedule. Returns --trace.
CLI::Option* add_trace_option(CLI::App& app, TraceInput& input);
Result<UnderstoodTrace> read_trace_input(const TraceInput& input);

/// False: the replay differs so much from the timeline that nothing may be concluded from it.
bool believable(const UnderstoodTrace& understood);
/// Why it is not.
std::string doubt_about(const UnderstoodTrace& understood);
/// The same as an error that names the first file.
Status check_believable(const UnderstoodTrace& understood, const TraceInput& input);
/// "t.json.gz, 44 steps, replayed within 0.018 %"
std::string origin_of(const UnderstoodTrace& understood, const TraceInput& input);

}  // namespace perseus::cli
