// From the model to planning problems: the mean profile's, and those of profiles that the samples leave possible.
//
// Problem: the plan is made from means, at clocks that were measured; what it may lose is judged on draws from the
//          posterior, whose clocks reach a little below the measured ones, so that what lies there can be missed.
// Input:   layout, model, samples.
// Output:  for each type the clocks in question, a range of its clocks: `first` to `last` for planning, to `reach`
//          for judging; DAGs whose options are these, highest first, so that option i of the one is option i of the
//          other.
// Errors:  none that a valid job could cause.
// Cost:    O(types * clocks) per DAG.
// Threads: pure.
#pragma once

#include <random>
#include <vector>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "server/profiling/time_energy_model.h"

namespace perseus::profiling {

struct ClockRange {
  int first = 0;  ///< highest clock measured
  int last = 0;   ///< lowest clock measured
  int reach = 0;  ///< the lowest worth a try: >= last
};

/// How far below a clock that was measured the model is trusted enough to try, as a share of the highest clock. The
/// next lower clock is always within reach: where clocks lie further apart, no other window would get there.
inline constexpr double kReachShare = 0.07;
/// Of the highest clock: tried for a type that was measured at one clock only.
inline constexpr double kFirstShare = 0.6;

/// The lowest clock of a type, by index, that is at least that share of its highest.
int lowest_index(const ProfiledType& type, double share);

std::vector<ClockRange> clock_ranges(const Layout& layout, const Samples& samples, double lowest_clock_share);

/// How a type's merged replicas compare with their average: the slowest one's time, and the sum of energies.
struct ReplicaFactors {
  double time = 1;
  double energy = 1;
};
std::vector<ReplicaFactors> replica_factors(const Layout& layout, const Samples& samples);

class PlanningProblem {
 public:
  static Result<PlanningProblem> build(const Layout& layout, const Samples& samples, const TimeEnergyModel& model,
                                       double lowest_clock_share);
  [[nodiscard]] const std::vector<ClockRange>& ranges() const { return ranges_; }
  /// Of the means; clocks that were measured only.
  [[nodiscard]] const model::ComputationDag& mean() const { return mean_; }
  /// Of the means, with the clocks below.
  [[nodiscard]] const model::ComputationDag& reaching() const { return reaching_; }
  [[nodiscard]] std::vector<model::ComputationDag> draws(int count, const TimeEnergyModel& model,
                                                         std::mt19937_64& engine) const;
  /// Of the DAG's types: the layout's.
  [[nodiscard]] int profiled_type(int dag_type) const { return profiled_type_[dag_type]; }

 private:
  std::vector<ClockRange> ranges_;
  std::vector<ReplicaFactors> factors_;
  std::vector<int> profiled_type_;
  model::ComputationDag mean_, reaching_;
};

}  // namespace perseus::profiling
