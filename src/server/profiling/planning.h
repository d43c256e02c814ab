// Planning problems from the model: that of the mean profile, and those of profiles that the samples leave possible.
//
// Problem: the plan is made from means, at measured clocks; its possible loss is judged on draws from the posterior,
//          whose clocks extend slightly below the measured ones, so that a better plan there can be detected.
// Input:   layout, model, samples.
// Output:  for each type a range of its clocks: `first` to `last` for planning, to `reach` for judging; DAGs with
//          these options, highest first, so that option i of one DAG is option i of the other.
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
  int first = 0;  ///< highest measured clock
  int last = 0;   ///< lowest measured clock, in any stage if this one was measured at several
  int reach = 0;  ///< the lowest clock to try: >= last
};

/// Distance below a measured clock within which the model is trusted enough to try, as a share of the highest clock.
/// The next lower clock is always within reach: with wider spacing no window would get there otherwise.
inline constexpr double kReachShare = 0.07;
/// Share of the highest clock: lowest clock tried for a type measured at one clock only.
inline constexpr double kFirstShare = 0.6;

/// The lowest clock of a type, by index, that is at least this share of its highest.
int lowest_index(const ProfiledType& type, double share);

std::vector<ClockRange> clock_ranges(const Layout& layout, const Samples& samples, double lowest_clock_share);

/// A type's merged replicas relative to their average: the slowest one's time, and the sum of energies.
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
  /// From the means; measured clocks only.
  [[nodiscard]] const model::ComputationDag& mean() const { return mean_; }
  /// From the means, with the clocks below.
  [[nodiscard]] const model::ComputationDag& reaching() const { return reaching_; }
  [[nodiscard]] std::vector<model::ComputationDag> draws(int count, const TimeEnergyModel& model,
                                                         std::mt19937_64& engine) const;
  /// The layout's type for a type of the DAG.
  [[nodiscard]] int profiled_type(int dag_type) const { return profiled_type_[dag_type]; }

 private:
  std::vector<ClockRange> ranges_;
  std::vector<ReplicaFactors> factors_;
  std::vector<int> profiled_type_;
  model::ComputationDag mean_, reaching_;
};

}  // namespace perseus::profiling
