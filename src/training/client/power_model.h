// Estimates the power of each kind of work at each clock from the energy of intervals of mixed work.
//
// Model: energy = sum of power(kind, clock) x seconds + noise. Per kind, power is a quadratic spline over the clock
// whose coefficients have Gaussian priors on size, slope and bend, so that the estimate is a normal distribution. The
// noise is that of the residuals, if they exceed the given standard deviations.
//
// Problem: an energy counter that moves every 100 ms cannot resolve a computation of 20 ms; but intervals hold
//          different shares of different work, so their energies separate the powers.
// Input:   an interval's pieces (kind, clock, seconds) and its energy with standard deviation.
// Output:  power of a kind at a clock with standard deviation, also at clocks in between.
// Errors:  none; without data the standard deviations are those of the prior.
// Cost:    add O(coefficients touched squared); the first query after it a Cholesky factorization of 8 coefficients a
//          kind.
// Source:  paper section 5 (in vivo profiling); docs/decisions/0017.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace perseus::client {

struct WorkPiece {
  int kind = 0;
  int clock_mhz = 0;
  double seconds = 0;
};

struct PowerEstimate {
  double power_w = 0;
  double stddev_w = 0;
};

class PowerModel {
 public:
  PowerModel(int kinds, int lowest_mhz, int highest_mhz);

  void add(std::span<const WorkPiece> interval, double energy_j, double stddev_j);
  [[nodiscard]] PowerEstimate power(int kind, int clock_mhz) const;
  /// As power(), but without deviation, and possibly some intervals old: cheap enough for every interval.
  [[nodiscard]] double rough_power_w(int kind, int clock_mhz) const;
  /// Total observed seconds of that kind of work.
  [[nodiscard]] double seen_s(int kind) const { return seen_s_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] int intervals() const { return intervals_; }
  [[nodiscard]] int kinds() const { return static_cast<int>(seen_s_.size()); }

 private:
  static constexpr std::size_t kBends = 8;  ///< coefficients per kind
  struct Place {
    std::size_t first;
    double weight[3];
  };
  [[nodiscard]] Place place_of(int clock_mhz) const;
  void solve() const;

  double lowest_, span_;
  std::size_t size_;
  std::vector<double> precision_, moment_;  ///< posterior in information form, prior included
  double energy_squares_ = 0;               ///< of energies over their deviations
  int intervals_ = 0;
  std::vector<double> seen_s_;
  mutable bool solved_ = false;
  mutable int solved_intervals_ = -1;
  mutable double noise_ = 1;  ///< variance of the residuals relative to the given variance
  mutable std::vector<double> factor_, mean_;
};

}  // namespace perseus::client
