// The model behind the estimate: time and energy of every type at every clock, with their uncertainty.
//
// Problem: samples are noisy, few per clock, and many clocks have none.
// Model:   one family of curves (server/profiling/curve_family.h) per instruction for log time, and one for log energy
//          minus the estimated log time, that is log power. Where iterations were not broken down, log power comes
//          from the energies of whole iterations (server/profiling/rank_energies.h). Constant-time types are plain
//          averages.
// Input:   samples; windows (the clocks of an iteration).
// Output:  per type the posterior of log time and log energy over its clocks, joint draws of all types, and the
//          blocking power.
// Errors:  none; each type needs a sample of its time, and its rank one of energy.
// Cost:    that of CurveFamily.
// Threads: const functions are pure.
// Source:  beyond the paper.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "server/profiling/curve_family.h"
#include "server/profiling/layout.h"
#include "server/profiling/online_profiler.h"
#include "server/profiling/rank_energies.h"
#include "server/profiling/samples.h"

namespace perseus::profiling {

class TimeEnergyModel {
 public:
  TimeEnergyModel(const Layout& layout, const Samples& samples, const std::vector<ProfilingWindow>& windows);

  /// Over the clocks of a type, highest first.
  struct Curve {
    Vector mean;
    Matrix covariance;
  };
  [[nodiscard]] const Curve& log_time(int type) const { return log_time_[type]; }
  [[nodiscard]] const Curve& log_energy(int type) const { return log_energy_[type]; }
  [[nodiscard]] Watts blocking_power() const { return blocking_power_; }
  [[nodiscard]] Watts blocking_power_stddev() const { return blocking_power_stddev_; }
  [[nodiscard]] bool by_iteration() const { return ranks_.has_value(); }
  /// Of a single value, or of an iteration's energy.
  [[nodiscard]] double time_noise(int type) const { return time_noise_[type]; }
  [[nodiscard]] double energy_noise(int type) const { return ranks_ ? ranks_->noise() : energy_noise_[type]; }

  struct Draw {
    std::vector<Vector> log_time, log_energy;  ///< [type][clock]
  };
  [[nodiscard]] std::vector<Draw> draws(int count, std::mt19937_64& engine) const;

 private:
  struct Group {  // curves of the types of one grid
    double time_center = 0, power_center = 0;
    std::optional<CurveFamily> time, power;
  };
  void fit_times(const Samples& samples);
  void fit_energies(const Samples& samples);
  void fit_iterations(const Layout& layout, const Samples& samples, const std::vector<ProfilingWindow>& windows);
  void estimate_blocking_power(const Layout& layout, const Samples& samples);
  void set_constant_types(const Layout& layout, const Samples& samples);
  [[nodiscard]] Observations cell_observations(int type, const std::vector<double>& variance,
                                               const std::vector<double>& value) const;

  ClockGrids grids_;
  std::vector<Group> groups_;  // per grid
  std::vector<Curve> log_time_, log_energy_;
  std::vector<double> time_noise_, energy_noise_;
  std::vector<std::vector<int>> time_counts_, energy_counts_;  // [type][clock]
  std::optional<RankEnergies> ranks_;                          // by iteration
  Watts blocking_power_, blocking_power_stddev_;
};

}  // namespace perseus::profiling
