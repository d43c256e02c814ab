// What ranks reported, checked value by value and summed up: a fold over results.
//
// Input:   results of windows handed out.
// Output:  per (type, clock) count, mean and spread of log time and log energy; per iteration its energy and how long
//          its ranks waited; how much slower or hungrier each replica is than its rank. A replica all of whose
//          iterations are throttled in three windows in a row has a power cap below the clocks it was asked for: from
//          then on throttled iterations are used, since what it does at a clock is what it does under its cap. Left
//          out and said to be: values that are not positive numbers; other iterations the device calls throttled;
//          iterations whose computations take longer than themselves, or more energy; times and energies that lie far
//          from what the same computation took before at that clock, or in other stages there (but for a factor), or
//          from what the nearest clock allows, or, in a first result, from a quadratic through its own values. What
//          is far: six standard deviations of noise as seen so far, nine in the latter cases, but at least 3, 6 and
//          25 percent: real profiles have steps. A GPU is slower than its clock promises when it throttles, but never
//          faster. So where results contradict the earlier ones wholesale, two windows in a row that are faster
//          replace what was known; slower ones must persist for five.
// Errors:  take() names what is wrong with a result as a whole and then changes nothing.
// Cost:    linear in the values, and in stages times clocks.
// Threads: plain value.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/profiling/layout.h"
#include "server/profiling/online_profiler.h"

namespace perseus::profiling {

/// Count, mean and sum of squared deviations (Welford).
struct Running {
  int count = 0;
  double mean = 0;
  double squares = 0;
  void add(double value);
};

struct Cell {
  Running log_time, log_energy;
};

/// One iteration of one replica of a rank.
struct IterationEnergy {
  int rank = 0;
  int window = 0;
  int iteration = 0;
  double energy_j = 0;
  double waiting_s = 0;    ///< iteration time minus that of its computations
  double computing_j = 0;  ///< of its computations where they were measured apart
  bool broken_down = false;
};

class Samples {
 public:
  explicit Samples(const Layout& layout);

  /// What is wrong with the result as a whole.
  [[nodiscard]] static Status check(const Layout& layout, const RankResult& result);
  Result<std::vector<Rejection>> take(const Layout& layout, const RankResult& result, const ProfilingWindow& window);

  [[nodiscard]] const std::vector<Cell>& cells(int type) const { return cells_[type]; }
  [[nodiscard]] const std::vector<IterationEnergy>& iterations() const { return iterations_; }
  /// Per replica: mean log of its time (energy) over that of all replicas, and the variance of that mean.
  [[nodiscard]] const std::vector<Running>& replica_times(int type) const { return replica_times_[type]; }
  [[nodiscard]] const std::vector<Running>& replica_energies(int type) const { return replica_energies_[type]; }
  /// Spread of a single log time (energy) of that type: pooled over clocks, with all types where it has few repeats.
  [[nodiscard]] double time_noise(int type) const { return noise(type, &Cell::log_time); }
  [[nodiscard]] double energy_noise(int type) const { return noise(type, &Cell::log_energy); }
  /// Whether some iteration's energy was not broken down.
  [[nodiscard]] bool by_iteration() const { return by_iteration_; }

 private:
  struct Value {
    int type, clock, iteration, occurrence;
    std::string_view instruction;
    double time, energy;  // logarithms; energy is NaN where it was not measured
    bool kept = true;
  };
  [[nodiscard]] double noise(int type, Running Cell::*quantity) const;
  void reject_outliers(const Layout& layout, const RankResult& result, std::vector<Value>& values,
                       std::vector<Rejection>& rejections);
  struct ReplicaWindow {
    Running time, energy;
  };
  void compare_replicas(const Layout& layout, const RankResult& result, const std::vector<Value>& values);

  std::vector<std::vector<Cell>> cells_;
  std::vector<IterationEnergy> iterations_;
  std::vector<std::vector<Running>> replica_times_, replica_energies_;
  std::map<std::pair<int, int>, std::vector<std::map<int, ReplicaWindow>>> pending_;  // (rank, window): until all came
  struct Contradiction {
    int faster = 0, slower = 0;  // windows in a row
    int last_window = -1;
  };
  std::vector<Contradiction> contradictions_;
  bool by_iteration_ = false;
  std::map<std::pair<int, int>, int> throttled_windows_;  ///< (rank, replica): in a row; stays at the limit
};

}  // namespace perseus::profiling
