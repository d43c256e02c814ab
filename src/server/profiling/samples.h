// Accumulates the ranks' results, checked value by value: a fold over results.
//
// Input:   results of windows handed out.
// Output:  per (type, clock) count, mean and spread of log time and log energy; per iteration its energy and the
//          waiting time of its ranks; the ratio of each replica's time and energy to its rank's. A replica whose
//          iterations are all throttled in three consecutive windows has a power cap below the requested clocks: from
//          then on its throttled iterations are used, since its behavior at a clock is that under its cap. Left out
//          and reported: values that are not positive numbers; other iterations that the device reports as throttled;
//          iterations whose computations take longer than the iteration, or more energy; times and energies far from
//          earlier ones of the same computation at that clock, or of other stages there (up to the factor at the
//          nearest clocks of both), or from the range that the nearest clock allows, or, in a first result, from a
//          quadratic through its own values. "Far" means six standard deviations of the observed noise, nine in the
//          latter cases, but at least 3, 6 and 25 percent: real profiles have steps. A GPU that throttles is slower
//          than its clock promises, but never faster, nor of more energy. So if results contradict earlier ones at the
//          same clocks wholesale, two consecutive faster windows replace the known values; slower ones must persist for
//          five. What other clocks and stages let expect is an assumption: where as many windows contradict it, they
//          are used, and the earlier samples stay.
// Errors:  take() names what is wrong with a result as a whole and then changes nothing.
// Cost:    linear in the values, and in stages times clocks.
// Threads: plain value.
#pragma once

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/linear_algebra.h"
#include "base/result.h"
#include "server/profiling/layout.h"
#include "server/profiling/online_profiler.h"
#include "server/profiling/result_values.h"

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
  double computing_j = 0;  ///< of its computations if they were measured separately
  bool broken_down = false;
};

class Samples {
 public:
  explicit Samples(const Layout& layout);

  /// What is wrong with the result as a whole.
  [[nodiscard]] static Status check(const Layout& layout, const RankResult& result);
  Result<std::vector<Rejection>> take(const Layout& layout, const RankResult& result, const ProfilingWindow& window);

  /// The next iterations have other computations: energies of whole iterations, and values that are waiting for those
  /// of other replicas, do not apply to them.
  void forget_iterations() {
    iterations_.clear();
    pending_.clear();
  }

  [[nodiscard]] const std::vector<Cell>& cells(int type) const { return cells_[type]; }
  [[nodiscard]] const std::vector<IterationEnergy>& iterations() const { return iterations_; }
  /// Per replica: mean log of its time (energy) relative to that of all replicas, and the variance of that mean.
  [[nodiscard]] const std::vector<Running>& replica_times(int type) const { return replica_times_[type]; }
  [[nodiscard]] const std::vector<Running>& replica_energies(int type) const { return replica_energies_[type]; }
  /// Spread of a single log time (energy) of that type: pooled over clocks, and over all types if it has few repeats.
  [[nodiscard]] double time_noise(int type) const { return noise(type, &Cell::log_time); }
  [[nodiscard]] double energy_noise(int type) const { return noise(type, &Cell::log_energy); }
  /// True if some iteration's energy was not broken down.
  [[nodiscard]] bool by_iteration() const { return by_iteration_; }

 private:
  [[nodiscard]] double noise(int type, Running Cell::*quantity) const;
  struct Tally {  // of values of one type in a result, against one kind of expectation
    int values = 0, faster = 0, slower = 0;
    [[nodiscard]] bool contradicts() const;
  };
  struct Verdict {                     // on the values of one type in a result
    Tally at_known_clocks, at_others;  ///< clocks with and without samples of their own
    std::vector<Rejection> rejected;
  };
  void reject_outliers(const Layout& layout, const RankResult& result, std::vector<SampledValue>& values,
                       std::vector<Rejection>& rejections);
  [[nodiscard]] std::map<Megahertz, Running> siblings(const Layout& layout, int type, Running Cell::*quantity) const;
  [[nodiscard]] Verdict judge(const Layout& layout, const RankResult& result, int type,
                              const std::vector<SampledValue*>& values) const;
  Verdict judge_alone(const Layout& layout, const RankResult& result, int type,
                      const std::vector<SampledValue*>& values);
  /// True from the third consecutive window on whose iterations are all throttled.
  bool is_capped(const RankResult& result);
  struct ReplicaWindow {
    Running time, energy;
  };
  void compare_replicas(const Layout& layout, const RankResult& result, const std::vector<SampledValue>& values);

  std::vector<std::vector<Cell>> cells_;
  std::vector<IterationEnergy> iterations_;
  std::vector<std::vector<Running>> replica_times_, replica_energies_;
  // (rank, window): until all replicas have reported
  std::map<std::pair<int, int>, std::vector<std::map<int, ReplicaWindow>>> pending_;
  struct Contradiction {
    int faster = 0, slower = 0;  // consecutive windows
    int last_window = -1;
    /// True if now enough consecutive windows contradicted the expectation in the same direction.
    bool persists(int window, const Tally& tally);
  };
  std::vector<Contradiction> at_known_clocks_, at_others_;  ///< per type
  bool by_iteration_ = false;
  std::map<std::pair<int, int>, int> throttled_windows_;  ///< (rank, replica): consecutive; stays at the limit
};

/// Samples of a clock that suffice to compare others with.
inline constexpr int kEnoughRepeats = 4;

/// The values that are plausible for a computation at a clock, given earlier ones: per clock a range around the mean
/// there, around that of other stages, around the value at the nearest known clock as wide as the clock may change it,
/// or around a quadratic through the learned values.
class Expectation {
 public:
  /// By clock, the same instruction's means in other stages, each scaled to this stage.
  using Siblings = std::map<Megahertz, Running>;
  Expectation(const ProfiledType& type, const std::vector<Cell>& cells, Running Cell::*quantity, double noise,
              Siblings siblings);
  [[nodiscard]] bool has_history() const { return has_history_; }
  void learn(int clock, double value);
  /// Call it after the last learn().
  void learned();

  struct Range {
    double middle, tolerance;
    bool of_this_clock = false;  ///< from samples of this type at this clock; else assumed
    [[nodiscard]] bool contains(double value) const { return std::abs(value - middle) <= tolerance; }
  };
  [[nodiscard]] Range at(int clock) const;

 private:
  struct Point {
    double x, y;
  };
  void fit(const std::vector<Point>& points);
  [[nodiscard]] double curve_at(double x) const;
  [[nodiscard]] Range from_nearest(int clock, double tolerance) const;

  const ProfiledType& type_;
  const std::vector<Cell>& cells_;
  Running Cell::*quantity_;
  double noise_;
  Siblings siblings_;
  std::vector<Point> points_;  ///< learned: log clock, value
  Vector coefficients_;        ///< of the quadratic through them
  bool has_history_ = false;
};

}  // namespace perseus::profiling
