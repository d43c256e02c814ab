// The continuous relaxation of energy minimization, solved for every deadline by one sweep from T* down to T_min.
//
// Problem: durations may vary continuously along each computation's effective-energy hull (planning/planner/choices.h);
//          find the least total effective energy for each deadline. Its value is a lower bound on every real plan.
// Input:   a valid DAG and its kinds.
// Output:  after lower_deadline(T): event times (a window per computation that fits its relaxed duration), the dual
//          flow, and the bound's curve over all deadlines passed so far.
// Method:  one parametric flow. On a large DAG the prices of hulls are rounded to multiples of a step, and the curve is
//          what its flows prove of the true hulls: the largest of their lines, a little below the linear program
//          (docs/decisions/0005).
// Units:   ticks inside (an integer quantum of time chosen from T*, 2^-46 of it), seconds outside.
// Errors:  none.
// Cost:    O(1) amortized pivots of planning/graph/parametric_longest_path.h per vertex of the curve; with a step, one
//          search of planning/graph/successive_longest_paths.h.
// Threads: one thread per object.
// Source:  paper section 4.1 and appendix on continuous relaxation, which uses an exponential fit instead of the hull;
//          Phillips & Dessouky 1977.
#pragma once

#include <cmath>
#include <variant>
#include <vector>

#include "base/stop_check.h"
#include "base/units.h"
#include "planning/graph/parametric_longest_path.h"
#include "planning/graph/successive_longest_paths.h"
#include "planning/model/certificate.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/planner/choices.h"

namespace perseus::planner {

/// The step of prices with which a DAG is relaxed: 0, any price, unless it is large.
Watts price_step_of(const model::ComputationDag& dag, const Kinds& kinds);

class Relaxation {
  // Ahead of its uses, as its result is deduced.
  template <class Get>
  auto of_sweep(Get get) const {
    const auto* const paths = std::get_if<graph::SuccessiveLongestPaths>(&sweep_);
    return paths != nullptr ? get(*paths) : get(*std::get_if<graph::ParametricLongestPath>(&sweep_));
  }

 public:
  Relaxation(const model::ComputationDag& dag, const Kinds& kinds)
      : Relaxation(dag, kinds, price_step_of(dag, kinds)) {}
  Relaxation(const model::ComputationDag& dag, const Kinds& kinds, Watts price_step);
  Relaxation(const Relaxation&) = delete;
  Relaxation& operator=(const Relaxation&) = delete;

  /// Makespan with every computation at its least effective energy: the start of the sweep.
  [[nodiscard]] Seconds t_star() const { return t_star_; }
  [[nodiscard]] Seconds deadline() const { return seconds(deadline_ticks()); }

  /// Continues the sweep down to T, or to T_min if that comes first; false in the second case. T only ever falls.
  /// If `check` stops the sweep, deadline() is still above T.
  bool lower_deadline(Seconds deadline, StopCheck& check = StopCheck::never());

  /// Earliest start and latest end of a computation in the relaxed optimum at the current deadline.
  [[nodiscard]] graph::Integer start_ticks(int computation) const { return time(start_node_[computation]); }
  [[nodiscard]] graph::Integer end_ticks(int computation) const { return time(end_node_[computation]); }
  [[nodiscard]] graph::Integer deadline_ticks() const {
    return of_sweep([](const auto& sweep) { return sweep.deadline(); });
  }
  [[nodiscard]] graph::Integer ticks(Seconds t) const {
    return static_cast<graph::Integer>(std::llround(t.value() / seconds_per_tick_));
  }
  [[nodiscard]] Seconds seconds(graph::Integer ticks) const {
    return Seconds(static_cast<double>(ticks) * seconds_per_tick_);
  }
  /// The relaxed optimum of a computation: one choice, or a mix of two (indices into ChoiceSet::pareto).
  struct Mix {
    int slower, faster;
  };
  [[nodiscard]] Mix mix(int computation) const {
    const int arc = arc_of_computation_[computation];
    const auto [longer, shorter] = of_sweep([arc](const auto& sweep) { return sweep.position(arc); });
    const std::vector<int>& choices = choices_[kind_of_computation_[computation]];
    return {choices[longer], choices[shorter]};
  }
  /// The price of time for a computation.
  [[nodiscard]] Watts price(int computation) const {
    return Watts(watts_per_unit_ * static_cast<double>(flow(arc_of_computation_[computation])));
  }
  /// The price of time for a computation, per tick.
  [[nodiscard]] double joules_per_tick(int computation) const {
    return watts_per_unit_ * seconds_per_tick_ * static_cast<double>(flow(arc_of_computation_[computation]));
  }
  /// Proves the curve's piece at deadline(), with a step of prices that at the deadlines whose proven_at() this is.
  [[nodiscard]] model::BoundCertificate certificate() const;
  /// The deadline at whose flow certificate() proves what the curve, complete, says at T.
  [[nodiscard]] Seconds proven_at(Seconds deadline) const;

  /// The curve over all deadlines passed so far, by increasing time; complete once lower_deadline() returned false.
  [[nodiscard]] model::LowerBound curve() const;
  [[nodiscard]] long pivots() const {
    return of_sweep([](const auto& sweep) { return sweep.pivots(); });
  }

 private:
  /// Vertices of a kind's hull in ticks and units of price.
  struct Vertices {
    std::vector<graph::Integer> lengths, thresholds;
  };
  /// What a flow proves: effective energy beyond the least one is at least `at_zero` - `flow` times the deadline, in
  /// units of price times ticks.
  struct Line {
    graph::Integer flow;
    double at_zero;
    graph::Integer end;  ///< the least deadline of the sweep with this flow
  };
  /// Chooses the quanta of time and price; sets choices_.
  std::vector<Vertices> quantized_hulls(const Kinds& kinds);
  /// The hulls with prices in whole steps; changes choices_.
  std::vector<Vertices> coarsened(graph::Integer step);
  /// Numbers the nodes of the network.
  void number_events();
  void add_arcs(const std::vector<Vertices>& vertices);

  /// The integral of an arc's true length over the prices of a changed flow.
  [[nodiscard]] double proven_by(const graph::SuccessiveLongestPaths::FlowChange& change) const;
  void add_line(Line line);
  /// Ticks from which on, towards faster plans, the later one of two lines proves more.
  static double crossing(const Line& earlier, const Line& later) {
    return (later.at_zero - earlier.at_zero) / static_cast<double>(later.flow - earlier.flow);
  }
  [[nodiscard]] model::LowerBound curve_of_lines() const;

  [[nodiscard]] graph::Integer time(int node) const {
    return of_sweep([node](const auto& sweep) { return sweep.time(node); });
  }
  [[nodiscard]] graph::Integer flow(int arc) const {
    return of_sweep([arc](const auto& sweep) { return sweep.flow(arc); });
  }

  graph::ParametricNetwork network_;
  std::variant<std::monostate, graph::ParametricLongestPath, graph::SuccessiveLongestPaths> sweep_;
  std::vector<int> start_node_, end_node_, arc_of_computation_;
  const std::vector<int>& kind_of_computation_;
  const model::ComputationDag& dag_;
  std::vector<std::vector<int>> choices_;  // per kind: at each length of its arcs
  std::vector<int> arc_of_dependency_;     // -1: contracted away
  Seconds t_star_;
  double seconds_per_tick_ = 1;
  double watts_per_unit_ = 1;
  struct Piece {  // of the curve: from `end` up to the previous piece's end the slope is -flow
    graph::Integer end;
    graph::Integer flow;
  };
  std::vector<Piece> pieces_;  // by falling deadline; without a step of prices
  // With one: the true hulls; the kind of each arc, or -1; the lines that are largest somewhere, by falling deadline;
  // at_zero of the last flow.
  std::vector<Vertices> hulls_;
  std::vector<int> kind_of_arc_;
  std::vector<Line> lines_;
  double at_zero_ = 0;
  graph::Integer first_deadline_ = 0;
  Joules least_energy_;
};

}  // namespace perseus::planner
