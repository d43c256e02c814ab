// Estimates the power of all computations of each rank from the energies of whole iterations.
//
// Problem: where iterations are not broken down, an iteration's energy is the sum over its computations plus blocking
//          power times waiting: linear in energies, so linearized in their logarithms around the last estimate, a few
//          times. The curves of all instructions of a rank form one member of a family, the blocking power is one
//          unknown of all of them, and the noise of an iteration's energy maximizes the likelihood. Windows whose
//          energies are broken down count too.
// Input:   samples; windows (the clocks of an iteration); the estimated log times.
// Output:  per type the posterior of log power over its clocks, joint draws of all ranks, the blocking power.
// Errors:  none; each rank needs a sample of an energy.
// Cost:    that of CurveFamily.
// Threads: const functions are pure.
// Source:  beyond the paper.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "server/profiling/curve_family.h"
#include "server/profiling/layout.h"
#include "server/profiling/online_profiler.h"
#include "server/profiling/samples.h"

namespace perseus::profiling {

/// The clocks over which the types of one instruction share curves: all that any of them supports, highest first.
struct ClockGrid {
  std::vector<Megahertz> clocks;
  std::vector<int> types;
  /// Of a curve with that number over all clocks.
  [[nodiscard]] std::vector<CurvePosition> positions(int curve) const;
};

struct PlaceInGrid {
  int grid = -1;               ///< -1: the type has no clock
  int member = 0;              ///< its index among the grid's types
  std::vector<int> positions;  ///< of its clocks
};

struct ClockGrids {
  std::vector<ClockGrid> grids;
  std::vector<PlaceInGrid> places;              ///< per type
  std::vector<std::vector<int>> types_of_rank;  ///< those with a clock

  explicit ClockGrids(const Layout& layout);
};

class RankEnergies {
 public:
  /// `log_times` and `energy_noise` (of single computations) are per type.
  RankEnergies(const Layout& layout, const ClockGrids& grids, const Samples& samples,
               const std::vector<ProfilingWindow>& windows, std::vector<Vector> log_times,
               const std::vector<double>& energy_noise);

  /// The rank's log powers, minus center(); positions(type) are those of a type's clocks.
  [[nodiscard]] CurveFamily::Posterior posterior(int rank) const { return family_->posterior(rank); }
  /// [draw][rank]
  [[nodiscard]] std::vector<std::vector<Vector>> draws(int count, std::mt19937_64& engine) const {
    return family_->draws(count, engine);
  }
  [[nodiscard]] double center() const { return center_; }
  [[nodiscard]] const std::vector<int>& positions(int type) const { return type_positions_[type]; }
  /// Of an iteration's energy, relative.
  [[nodiscard]] double noise() const { return noise_; }
  /// Nothing if the job gives it.
  [[nodiscard]] std::optional<std::pair<Watts, Watts>> blocking_power_and_stddev() const;

 private:
  [[nodiscard]] int num_positions() const { return static_cast<int>(positions_.size()); }
  struct Row {  // replicas of one iteration run the same clocks: their mean is one observation
    double energy_j = 0, waiting_s = 0;
    int replicas = 0;
  };
  struct Linearized {  // of a rank
    std::vector<Vector> design;
    std::vector<double> value;
    std::vector<double> variance;       // of iterations: in units of noise squared
    std::vector<double> cell_variance;  // of the rest, broken down
  };
  void make_positions(const Layout& layout, const ClockGrids& grids);
  void add_rows(const Layout& layout, const Samples& samples, const std::vector<ProfilingWindow>& windows);
  void guess(const Layout& layout);
  [[nodiscard]] std::vector<Linearized> linearized(const std::vector<Vector>& around) const;
  void add_cells(const Layout& layout, const Samples& samples, const std::vector<double>& energy_noise,
                 std::vector<Linearized>& ranks) const;
  [[nodiscard]] std::vector<Observations> observations(const std::vector<Linearized>& ranks, double noise) const;
  [[nodiscard]] double likeliest_noise(const std::vector<Linearized>& ranks) const;

  std::vector<Vector> log_times_;
  std::vector<CurvePosition> positions_;
  std::vector<std::vector<int>> type_positions_;
  bool power_known_;
  int power_position_ = 0;
  using Key = std::tuple<int, int, int>;  // rank, window, iteration
  std::map<Key, Row> rows_;
  /// [rank, window]: how often the rank's iteration runs each type at each clock
  std::map<std::pair<int, int>, std::map<std::pair<int, int>, int>> counts_;
  double center_ = 0, first_power_ = 0, noise_ = 0;
  std::optional<CurveFamily> family_;
};

}  // namespace perseus::profiling
