// The input of all presentations of a plan.
//
// Problem: show a frontier and the iterations behind its points to people (html.h, frontier_svg.h, timeline_svg.h,
//          terminal.h) and to tools (trace.h).
// Input:   a valid DAG, and a Frontier with at least one point or plans that fit the DAG.
// Output:  UTF-8 text through a sink, in pieces of some tens of kB, so that memory use stays small.
// Errors:  none; the sink's owner writes and reports.
// Cost:    O(DAG) per drawn plan, plus O(points).
// Threads: pure functions.
// Source:  paper figures 1, 4 and 9; docs/decisions (0004).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "io/report/summary.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::report {

using Sink = std::function<void(std::string_view)>;

/// A line of the list of inputs: {"schedule", "1f1b"}, {"profile", "gpt3.csv"}.
struct ReportFact {
  std::string name;
  std::string value;
};

struct ReportInput {
  const model::ComputationDag& dag;
  const model::Frontier& frontier;
  std::string title;                 ///< for example the profile's file name
  std::vector<ReportFact> inputs;    ///< in the order in which they are shown
  std::optional<Seconds> straggler;  ///< T', drawn if given
  model::DefaultRule rule = {};      ///< of the default plan
  Seconds switch_latency = {};       ///< that the figures of the frontier include
};

/// One iteration to draw: "before" is everything at maximum clock, "after" some point's plan.
struct DrawnPlan {
  std::string name;
  const model::Plan& plan;
};

}  // namespace perseus::report
