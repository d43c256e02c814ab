// EnvPipe: pin an outer envelope to maximum clock, slow everything else down, then speed critical paths up again.
//
// Problem: save energy in the bubbles of a pipeline without making it slower, assuming that the last stage is the
//          heaviest.
// Method:  the envelope is the whole last stage, each stage's first forward and the last of each of its other
//          instructions (of its backward); it runs at maximum clock. All other computations start at the slowest clock
//          of their *raw*-energy Pareto set. Then, repeatedly: of the first critical path, the computations with the
//          lowest clock go one measured clock up; until that path lies within the envelope, no computation on it can go
//          up (a final state: the last stage was not the heaviest), or max_steps is reached. "First" path: at each
//          computation the successor that a breadth-first walk from the start meets first, the rank's own before
//          others'. EnvPipe sees neither transfers nor computations without a clock: they take no time while it plans.
// Input:   a valid DAG of a pipeline.
// Output:  one plan, and why the method ended.
// Errors:  usage: the DAG has no stages (EnvPipe is undefined without), unit_time is not a finite number >= 0.
// Cost:    O(steps * (computations + dependencies)).
// Threads: single-threaded.
// Source:  Choi et al., EnvPipe, ATC'23; paper section 6; docs/baselines.md compares with the published numbers.
#pragma once

#include <string>

#include "base/result.h"
#include "base/stop_check.h"
#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::baselines {

struct EnvPipeOptions {
  int max_steps = 10000;  ///< as published
  Seconds unit_time;      ///< to compare paths, EnvPipe floors durations to it; 0: it compares measured durations
};

enum class EnvPipeEnd { envelope, stuck, step_limit };

struct EnvPipeRun {
  model::Plan plan;
  EnvPipeEnd end = EnvPipeEnd::envelope;
  int steps = 0;  ///< number of steps that raised a clock
};

/// ErrorCode::unavailable if `check` stops it.
Result<EnvPipeRun> plan_envpipe(const model::ComputationDag& dag, const EnvPipeOptions& options = {},
                                StopCheck& check = StopCheck::never());

/// One sentence on how the run ended.
std::string text_of(const EnvPipeRun& run);

}  // namespace perseus::baselines
