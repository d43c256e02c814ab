// The continuous relaxation of energy minimization, solved for every deadline by one sweep from T* down to T_min.
//
// Problem: durations may vary continuously along each computation's effective-energy hull (planning/planner/choices.h);
//          find the least total effective energy for each deadline. Its value is a lower bound on every real plan.
// Input:   a valid DAG and its kinds.
// Output:  after lower_deadline(T): event times (a window per computation that fits its relaxed duration), the dual
//          flow, and the bound's curve over all deadlines passed so far.
// Units:   ticks inside (an integer quantum of time chosen from T*, 2^-46 of it), seconds outside.
// Errors:  none.
// Cost:    O(1) amortized pivots of planning/graph/parametric_longest_path.h per vertex of the curve.
// Threads: one thread per object.
// Source:  paper section 4.1 and appendix on continuous relaxation, which uses an exponential fit instead of the hull;
//          Phillips & Dessouky 1977.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "base/stop_check.h"
#include "base/units.h"
#include "planning/graph/parametric_longest_path.h"
#include "planning/model/certificate.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/planner/choices.h"

namespace perseus::planner {

class Relaxation {
 public:
  Relaxation(const model::ComputationDag& dag, const Kinds& kinds);
  Relaxation(const Relaxation&) = delete;
  Relaxation& operator=(const Relaxation&) = delete;

  /// Makespan with every computation at its least effective energy: the start of the sweep.
  [[nodiscard]] Seconds t_star() const { return t_star_; }
  [[nodiscard]] Seconds deadline() const { return seconds(sweep_->deadline()); }

  /// Continues the sweep down to T, or to T_min if that comes first; false in the second case. T only ever falls.
  /// If `check` stops the sweep, deadline() is still above T.
  bool lower_deadline(Seconds deadline, StopCheck& check);
  bool lower_deadline(Seconds deadline) {
    StopCheck never;
    return lower_deadline(deadline, never);
  }

  /// Earliest start and latest end of a computation in the relaxed optimum at the current deadline.
  [[nodiscard]] graph::Integer start_ticks(int computation) const { return sweep_->time(start_node_[computation]); }
  [[nodiscard]] graph::Integer end_ticks(int computation) const { return sweep_->time(end_node_[computation]); }
  [[nodiscard]] graph::Integer deadline_ticks() const { return sweep_->deadline(); }
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
    const auto [longer, shorter] = sweep_->position(arc_of_computation_[computation]);
    const std::vector<int>& vertices = vertices_[kind_of_computation_[computation]];
    return {vertices[longer], vertices[shorter]};
  }
  /// The price of time for a computation.
  [[nodiscard]] Watts price(int computation) const {
    return Watts(watts_per_unit_ * static_cast<double>(sweep_->flow(arc_of_computation_[computation])));
  }
  /// The price of time for a computation, per tick.
  [[nodiscard]] double joules_per_tick(int computation) const {
    return watts_per_unit_ * seconds_per_tick_ * static_cast<double>(sweep_->flow(arc_of_computation_[computation]));
  }
  [[nodiscard]] model::BoundCertificate certificate() const;

  /// The curve over all deadlines passed so far, by increasing time; complete once lower_deadline() returned false.
  [[nodiscard]] model::LowerBound curve() const;
  [[nodiscard]] long pivots() const { return sweep_->pivots(); }

 private:
  /// Vertices of a kind's hull in ticks and units of price, as its arcs have them.
  struct Vertices {
    std::vector<graph::Integer> lengths, thresholds;
  };
  /// Chooses the quanta of time and price; sets vertices_.
  std::vector<Vertices> quantized_hulls(const Kinds& kinds);
  /// Numbers the nodes of the network.
  void number_events();
  void add_arcs(const std::vector<Vertices>& vertices);

  graph::ParametricNetwork network_;
  std::optional<graph::ParametricLongestPath> sweep_;
  std::vector<int> start_node_, end_node_, arc_of_computation_;
  const std::vector<int>& kind_of_computation_;
  const model::ComputationDag& dag_;
  std::vector<std::vector<int>> vertices_;  // per kind: the choice at each length of its arcs
  std::vector<int> arc_of_dependency_;      // -1: contracted away
  Seconds t_star_;
  double seconds_per_tick_ = 1;
  double watts_per_unit_ = 1;
  struct Piece {  // of the curve: from `end` up to the previous piece's end the slope is -flow
    graph::Integer end;
    graph::Integer flow;
  };
  std::vector<Piece> pieces_;  // by falling deadline
  graph::Integer first_deadline_ = 0;
  Joules least_energy_;
};

}  // namespace perseus::planner
