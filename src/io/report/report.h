// The presentations of a plan, and their input.
//
// Problem: show a frontier and the iterations behind its points to people (here and in timeline_svg.h) and to tools.
// Input:   a valid DAG, and a Frontier with at least one point or plans that fit the DAG.
// Output:  UTF-8 text through a sink, in pieces of some tens of kB, so that memory use stays small.
// Errors:  none; the sink's owner writes and reports.
// Cost:    O(DAG) per drawn plan, plus O(points).
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

/// report.html: one self-contained page; works from file:// and without a network.
void write_html(const ReportInput& input, const Sink& sink);

/// The line of its list of inputs.
std::string fact_line(const ReportFact& fact);

/// frontier.svg: realized points, lower bound, everything at maximum clock and, if given, T'.
void write_frontier_svg(const ReportInput& input, const Sink& sink);

/// trace.json for Chrome and Perfetto: a process per plan, a thread per rank, power as counters.
void write_trace(const model::ComputationDag& dag, const std::vector<DrawnPlan>& plans, const Sink& sink);

// One iteration as text for terminals: a row per rank, block height and color by power.
enum class TerminalColor { none, ansi256, truecolor };

struct TerminalStyle {
  int width = 100;  ///< columns of the terminal
  TerminalColor color = TerminalColor::none;
};

std::string terminal_timeline(const model::ComputationDag& dag, const DrawnPlan& plan, const TerminalStyle& style);

}  // namespace perseus::report
