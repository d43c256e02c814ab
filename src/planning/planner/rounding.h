// Rounds the relaxed optimum at one deadline to real clocks.
//
// Problem: the relaxation mixes two clocks for some computations; a real plan takes one each.
// Method:  three sweeps over the DAG.
//          1. Forward: each computation starts as soon as it can and takes the slower of its two clocks if it
//             still ends by its relaxed end; later computations on its paths can use what it leaves of its window. If
//             that does not fit, it takes the choice with the least e + price * t, where ending late costs more than
//             the price (later computations must hurry) and ending early gains less (some of the remaining time is
//             never used). These two decide between the clocks of a mix, since at the price alone both cost the same.
//          2. Backward, from the deadline, or from the end of sweep 1 if that is later: it spends slack where
//             that saves more than a discounted price of time.
//          3. Forward again: it spends the remaining slack on any slower clock that fits.
// Input:   a Relaxation at its current deadline.
// Output:  a plan (a Pareto choice per computation, see planning/planner/choices.h) that ends at about that deadline;
//          no later if its weights is `kPunctual`.
// Errors:  none.
// Cost:    three passes over computations and dependencies, no allocation.
// Threads: one thread per object.
// Source:  paper section 4.3 "Converting Back to GPU Frequencies" takes only the slowest clock no slower than planned;
//          bench/ measures what the rest saves, docs/decisions/0006.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/neighbors.h"
#include "planning/planner/choices.h"
#include "planning/planner/relaxation.h"

namespace perseus::planner {

/// Parameters of a rounding: weights of time, relative to its price in the relaxation.
struct RoundingWeights {
  double late;      ///< extra cost of a second after the relaxed end
  double early;     ///< reduction of the gain of a second before the relaxed end
  double discount;  ///< share of the price that counts when a sweep spends slack
};

class Rounding {
 public:
  /// No computation ends after its relaxed end, so the plan keeps the deadline.
  static constexpr RoundingWeights kPunctual{1e6, 0, 0.7};

  Rounding(const model::ComputationDag& dag, const Kinds& kinds, const Relaxation& relaxation);

  /// Choices at the relaxation's current deadline; valid until the next call.
  const std::vector<int>& round(const RoundingWeights& weights);
  /// The same, but false, without a result, if the plan would end after `latest`.
  bool round_by(graph::Integer latest, const RoundingWeights& weights);

  /// Makespan and effective energy of the last result.
  [[nodiscard]] graph::Integer makespan_ticks() const { return makespan_; }
  [[nodiscard]] double effective_energy_j() const { return energy_j_; }

 private:
  using Integer = graph::Integer;
  // A computation's choices, slowest first, in one array for all kinds.
  struct TimedChoice {
    Integer time;
    double energy_j;
  };

  // What the relaxation says of a computation at its current deadline.
  struct Relaxed {
    Integer end;
    int slower, faster;
    double joules_per_tick;
  };

  void read_relaxation();
  // False as soon as a computation ends after `latest`: later sweeps only slow computations down.
  bool forward_to_relaxed_ends(const RoundingWeights& weights, Integer latest);
  void backward_from(Integer deadline, double discount);
  void forward_into_slack();
  [[nodiscard]] const TimedChoice* choices_of(int computation) const { return &choices_[first_choice_[computation]]; }
  // The cheapest of choices [first, last] at that price of a second.
  [[nodiscard]] static int cheapest(const TimedChoice* choices, int first, int last, double joules_per_tick);

  const Relaxation& relaxation_;
  std::vector<Relaxed> relaxed_;
  Integer read_at_ = -1;  // deadline and pivots of relaxed_
  long pivots_read_ = -1;
  std::vector<TimedChoice> choices_;
  std::vector<int> first_choice_, last_choice_;  // per computation; the last one counted from its first
  model::Neighbors<Integer> before_, after_;
  std::vector<int> choice_;
  std::vector<Integer> start_, end_, latest_start_, latest_end_;
  Integer makespan_ = 0;
  double energy_j_ = 0;
};

// ---- The weights of a deadline. None are best at every one (docs/decisions/0006, "Wanted deadlines").

/// Chosen by bench/planner_report: each wins at some deadlines. The first two are the best alone, and enough for a
/// curve of a thousand deadlines.
inline constexpr std::array<RoundingWeights, 4> kWeights{
    {{0.5, 0.15, 0.7}, {0.5, 0.3, 0.7}, {0.15, 0.2, 0.7}, {1.2, 0.05, 0.7}}};
inline constexpr int kWeightsInTurn = 2;

/// The k-th of a sequence of different weights, k from 0, for the few deadlines that jobs run at. Every other one is
/// punctual.
RoundingWeights varied_weights(int k);

/// Length of that sequence at such a deadline: 16 to 96, fewer for larger DAGs, whose roundings take longer. A longer
/// beginning of it contains every shorter one, so more of it is never worse.
int weights_at_wanted(std::size_t computations);

}  // namespace perseus::planner
