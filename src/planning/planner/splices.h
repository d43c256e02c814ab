// Plans between two plans of a frontier: the beginning of one and the rest of the other.
//
// Problem: rounding a deadline costs three passes over the DAG and gives one plan; a frontier needs a thousand, and
//          each more is another chance to come close to the bound.
// Method:  a cut parts the computations, in the order of their starts at the fastest choices, into a beginning and a
//          rest. The splice of two plans at a cut ends with the longest path over a dependency across it: what leads
//          there in the one plan and away from it in the other. Both are known for each plan, so a pass over the
//          dependencies that cross a cut gives the times of all splices of two plans at up to 64 cuts, and sums of
//          energies up to each cut give their energies. Points near each other in time are spliced, both ways.
// Input:   a valid DAG; its Pareto set of some plans, slowest first.
// Output:  see the declarations.
// Errors:  none; if the check stops it, points are missing.
// Cost:    two passes over the DAG per point, one over part of its dependencies per pair, one per plan that is kept.
// Threads: one thread per object.
// Source:  docs/decisions/0006-prices-guide-the-rounding.md ("Splices").
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/stop_check.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/neighbors.h"
#include "planning/planner/realize.h"

namespace perseus::planner {

class Splices {
 public:
  Splices(const model::ComputationDag& dag, const model::Plan& fastest, Realizer& realizer);

  /// Adds the best splice, by its distance from the bound, of each of `most` equal spans of time, and the cheapest one
  /// of each wanted deadline; keeps the Pareto set.
  void add_to(std::vector<model::FrontierPoint>& points, const model::LowerBound& bound, int most,
              const std::vector<Seconds>& wanted, StopCheck& check);

 private:
  static constexpr std::size_t kReach = 3;  // points spliced with each, on either side

  // A dependency, or the beginning or end of the iteration, across the cuts from first_cut to before last_cut.
  struct Crossing {
    int before, after, first_cut, last_cut;
    double latency_s;
  };
  // Paths of a plan: to the end and from the start of each computation, and for Crossing's ends of the iteration, 0.
  struct Paths {
    std::vector<double> to_end_s, from_start_s;
    std::vector<double> energy_before_j;  // of the computations before each cut
    double energy_j = 0;
  };
  struct Splice {
    double worse = 0;  // the less, the better; valid if cut >= 0
    std::size_t first = 0, second = 0;
    int cut = -1;
  };

  void set_paths(const model::Plan& plan, Paths& paths);
  /// Sets makespan_s_ of every cut.
  void splice(const Paths& first, const Paths& second);
  [[nodiscard]] model::Plan plan_of(const model::Plan& first, const model::Plan& second, int cut) const;

  Realizer& realizer_;
  model::Neighbors<double> before_, after_;
  std::vector<int> order_;
  std::vector<int> cuts_;  // computations before each
  std::vector<Crossing> crossings_;
  std::array<Paths, kReach + 1> paths_;  // of the last points, in turn
  std::vector<double> makespan_s_;
};

}  // namespace perseus::planner
