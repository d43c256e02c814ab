// Plans clocks that stay for a minimum dwell: the cheapest clock per run of computations.
//
// Problem: hardware and drivers cannot follow a clock that alternates every few milliseconds. Given the relaxed optimum
//          at a deadline (the price of a second of each computation), give each rank a sequence of clocks with at least
//          `min_dwell` between two changes.
// Method:  cheapest(): per rank, dynamic programming over its order for the least sum of e + price * t. A run of
//          computations at one clock lasts at least min_dwell by the relaxed event times, and a clock that arrives late
//          costs the time that the next computation loses. Prices stand for the deadline; the plan may miss it
//          somewhat, so callers judge plans by their realized time and energy. lengthen_runs() merges runs that are
//          still shorter than min_dwell in realized time. A merge takes, if there is one, a clock at which no
//          computation of both runs gets slower, so that it costs energy and no time.
// Input:   every clock-controlled computation may run at any clock at which its type was measured.
// Output:  plans whose realized dwell is at least min_dwell on every rank, or that never change a rank's clock.
// Errors:  none; a rank whose types have no measured clock in common stays at the fastest option of each.
// Cost:    O(computations * clocks) per call.
// Threads: one thread per object.
// Source:  beyond the paper (its section 5 sets a clock per computation); docs/decisions on clock changes.
#pragma once

#include <vector>

#include "base/stop_check.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/planner/relaxation.h"

namespace perseus::planner {

class ClockRuns {
 public:
  explicit ClockRuns(const model::ComputationDag& dag);

  struct Limits {
    Seconds min_dwell;
    Seconds switch_latency;
    double price_factor = 1;  ///< scales the relaxation's prices of time; above 1: faster plans
  };
  /// The cheapest plan at the relaxation's current prices with runs of at least min_dwell; an arbitrary plan if `check`
  /// stops it.
  model::Plan cheapest(const Relaxation& relaxation, const Limits& limits, StopCheck& check) const;

  /// Every computation at its fastest option, without limits on changes.
  model::Plan fastest_everywhere() const;
  /// One clock for a whole rank and iteration, the fastest: the sum of times on each rank is least.
  model::Plan fastest_without_changes() const;

  /// A stretch of a rank's clock-controlled computations at one clock: positions [from, to) of their order. The last
  /// run of an iteration goes on in the next one, so `to` may exceed the order's length.
  struct Run {
    std::size_t from, to;
    double dwell_s;
  };
  /// The runs of a rank, or none if its clock never changes; `end_s` and `makespan` are realized times.
  [[nodiscard]] std::vector<Run> runs(int rank, const model::Plan& plan, const std::vector<double>& end_s,
                                      Seconds makespan) const;
  [[nodiscard]] bool dwells(const model::Plan& plan, const std::vector<double>& end_s, Seconds makespan,
                            Seconds min_dwell) const;
  /// The clocks common to all types of a rank, highest first.
  [[nodiscard]] const std::vector<Megahertz>& clocks(int rank) const { return ranks_[rank].clocks; }
  [[nodiscard]] std::size_t length(int rank) const { return ranks_[rank].order.size(); }
  [[nodiscard]] Megahertz clock_at(int rank, std::size_t position, const model::Plan& plan) const;
  /// Sets positions [from, to) of a rank to a clock common to its types.
  void set(model::Plan& plan, int rank, std::size_t from, std::size_t to, Megahertz clock) const {
    assign(plan, ranks_[rank].order, from, to, clock);
  }

  /// Merges runs of `plan` that are shorter than min_dwell, by the ends of its computations in an iteration of that
  /// makespan. True if it merged runs: realize the plan again, and call again.
  bool lengthen_runs(model::Plan& plan, const std::vector<double>& end_s, Seconds makespan, Seconds min_dwell) const;

 private:
  struct Rank {
    std::vector<int> order;         // its clock-controlled computations
    std::vector<int> types;         // of these computations
    std::vector<Megahertz> clocks;  // at which all these types were measured, highest first
  };
  // Costs of a rank at the relaxed optimum, per position j = 1..length of its order (`row` is length + 1).
  struct Costs {
    std::vector<double> end_s;
    std::vector<double> late;      // of a late clock at j, in J per natural logarithm of the ratio of durations
    std::vector<double> sum;       // sum[c * row + j]: of the first j at clock c
    std::vector<double> log_time;  // log_time[c * row + j]: of j at clock c
  };
  // Incomplete if `check` stops it.
  [[nodiscard]] Costs costs_on_rank(const Rank& rank, const Relaxation& relaxation, const Limits& limits,
                                    StopCheck& check) const;
  [[nodiscard]] int option(int type, Megahertz clock) const;
  void cheapest_on_rank(const Rank& rank, const Relaxation& relaxation, const Limits& limits, model::Plan& plan,
                        StopCheck& check) const;
  void assign(model::Plan& plan, const std::vector<int>& order, std::size_t from, std::size_t to,
              Megahertz clock) const;

  const model::ComputationDag& dag_;
  std::vector<Rank> ranks_;
};

}  // namespace perseus::planner
