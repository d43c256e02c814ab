// Reads traces of training runs from two CSV files: every computation, and the iterations as a whole.
//
// Header lines and columns in any order, others ignored, gzip allowed:
//
//   OPS    plan, stage, op, instruction, microbatch, frequency_mhz, time_s: one row per computation; `op` counts from 0
//          within (plan, stage), in execution order, and the rows of one stage come in that order.
//   ITERS  plan, stage, iter_time_s, iter_energy_j, and where known kind, load_total_s, n_iters: one row per stage, and
//          one with stage -1 for the whole pipeline (its time counts; without it, the longest of the stages').
//
// Output:  a valid RunTrace, plans ordered by id. A plan of one file that the other lacks is an error.
// Errors:  "file:line: column: value; what is allowed"; errors without a line name the file and the plan. Limits:
//          plan < 1e6, stage < 65536, microbatch < 2^20.
// Cost:    O(rows log plans).
// Source:  the published artifact of the paper; docs/formats.md.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "planning/model/run_trace.h"

namespace perseus::formats {

/// A file's content, and its name in messages.
struct NamedText {
  std::string_view text;
  std::string name;
};

Result<model::RunTrace> parse_run_trace(const NamedText& ops, const NamedText& iterations);
Result<model::RunTrace> read_run_trace(const std::string& ops_path, const std::string& iterations_path);

}  // namespace perseus::formats
