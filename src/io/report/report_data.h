// The data of the pages as JSON for their scripts: a whole report, or the two parts that the server sends its
// dashboard.
//
// Input:   as write_html().
// Output:  one JSON object, safe inside <script>; web/src/iteration.js reads it. The reader computes everything that
//          can be derived: durations from options, starts from durations. `computations` and `dependencies` are
//          columns (the dependencies along a rank's order are left out; the others sorted by `after`, each column a
//          difference); `plans.runs` are, for some evenly spread points, run lengths [count, option, count, option
//          ...] over the computations sorted by (type, index).
// Cost:    O(DAG + points + drawn plans); a few MB at most.
#pragma once

#include <vector>

#include "io/report/report.h"

namespace perseus::report {

void write_report_data(const ReportInput& input, const ReportSummary& summary, const Sink& sink);

/// Its frontier: `points`, `bound`, `summary` without a straggler, and `waiting_w`, the power of all ranks waiting.
void write_frontier_data(const model::ComputationDag& dag, const model::Frontier& frontier, const Sink& sink);
/// Its iteration, with one plan as `runs`.
void write_timeline_data(const model::ComputationDag& dag, const model::Plan& plan, Seconds switch_latency,
                         const Sink& sink);

/// The points whose plans are sent: all if the iteration is small, otherwise evenly spread ones, first and last always,
/// and `wanted` if it is a point. Ascending.
std::vector<int> points_with_plan(int points, std::size_t computations, const std::vector<int>& wanted);

}  // namespace perseus::report
