// Compares several methods on one pipeline: which is better, over which share of T, and by how much.
//
// Problem: frontiers of different methods end at different times and cross.
// Input:   a valid DAG and the methods' frontiers, each with at least one point and all with the same lower bound. At
//          equal T each runs its slowest point that is no slower and waits for the rest (paper eq. (1)).
// Output:  for every unordered pair, in the order of the list, the shares of T where either is better, and the
//          savings. T runs from T_min to T*, the range of useful deadlines. Units: s, J, %.
// Cost:    O(methods^2 * points).
// Source:  paper section 6.4 and figure 9.
#pragma once

#include <string>
#include <vector>

#include "io/report/report.h"
#include "io/report/table.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::report {

struct ComparedMethod {
  std::string name;
  std::string description;
  std::string note;  ///< about this result; may be empty
  model::Frontier frontier;
};

/// Advantage of one method of a pair over the other.
struct Advantage {
  bool dominates = false;  ///< at every T at least as good, at some better; T past T* included
  double better_pct = 0;   ///< share of T where it needs less energy, or the other cannot be that fast
  double only_pct = 0;     ///< part of better_pct where the other cannot be that fast
  double largest_pct = 0;  ///< largest saving at one T, in % of the other's energy; 0 if there is none
  Seconds largest_at;      ///< the T of that saving
};

struct PairComparison {
  int first = 0;  ///< indices into the methods
  int second = 0;
  Advantage of_first;
  Advantage of_second;
  double equal_pct = 0;        ///< share of T where both need the same, or neither is that fast
  double mean_saving_pct = 0;  ///< of the first against the second, mean over the T that both reach; may be negative
};

std::vector<PairComparison> compare_pairs(const model::ComputationDag& dag, const std::vector<ComparedMethod>& methods);

struct ComparisonInput {
  const model::ComputationDag& dag;
  const std::vector<ComparedMethod>& methods;
  std::string title;
  std::vector<ReportFact> inputs;
  double slowdown = 0;  ///< tolerated beyond T_max for the plan shown as "in time"
};

/// One self-contained page without scripts: the drawing and both tables.
void write_comparison_html(const ComparisonInput& input, const std::vector<PairComparison>& pairs, const Sink& sink);

/// The frontiers in one drawing, as in the paper's figure 9.
void write_comparison_svg(const ComparisonInput& input, const Sink& sink);

/// A line per method: its points, its slowest plan in time (no slower than everything at maximum clock plus the
/// tolerance), its ends, and their savings against everything at maximum clock.
TextRows method_rows(const ComparisonInput& input);
/// A line per pair.
TextRows pair_rows(const ComparisonInput& input, const std::vector<PairComparison>& pairs);

}  // namespace perseus::report
