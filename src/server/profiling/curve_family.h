// Curves over clocks that resemble each other: the same instruction in all stages, known from noisy samples.
//
// Problem: log time (or log power) over the clock is a smooth curve plus small steps that no formula has, nearly the
//          same in all stages but for a factor. Of all members together much is measured, of one member at one clock
//          little.
// Model:   member z_s = c + d_s over a common grid of positions. c: Gaussian process, wide quadratic in log clock
//          plus a smooth part plus independent steps; d_s: an offset, a smooth part, kinks, steps, all small. How
//          rough, and how far each member may stray from the others, is what makes the data most likely (a member
//          unlike the others is thus left alone). Given that, the posterior is exact.
// Input:   positions; per member any linear observations of its z with independent Gaussian errors. Values should be
//          centerd: the prior mean is 0, its standard deviation 1 in height.
// Output:  mean and covariance of a member; joint draws of all of them.
// Errors:  none.
// Cost:    O(members * positions^3) to fit and to draw.
// Threads: const functions are pure.
// Source:  beyond the paper; Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5.
#pragma once

#include <random>
#include <vector>

#include "server/profiling/matrix.h"

namespace perseus::profiling {

struct CurvePosition {
  double log_clock = 0;  ///< log of the clock's share of the highest: <= 0
  int curve = 0;         ///< positions of one curve are neighbors; lone: not a clock's, the same for all members
};
inline constexpr int lone = -1;

/// value[r] = design.row(r) . z + error of variance[r]
struct Observations {
  Matrix design;
  std::vector<double> value;
  std::vector<double> variance;
};

/// Standard normal by Box and Muller: the same numbers with every standard library.
double standard_normal(std::mt19937_64& engine);
/// In [0, 1).
double uniform(std::mt19937_64& engine);

class CurveFamily {
 public:
  CurveFamily(std::vector<CurvePosition> positions, std::vector<Observations> members);

  [[nodiscard]] int members() const { return static_cast<int>(members_.size()); }
  struct Posterior {
    std::vector<double> mean;
    Matrix covariance;
  };
  [[nodiscard]] Posterior posterior(int member) const;
  [[nodiscard]] Matrix covariance(int member) const;
  /// Draws of all members from their joint posterior: [draw][member][position].
  [[nodiscard]] std::vector<std::vector<std::vector<double>>> draws(int count, std::mt19937_64& engine) const;
  /// Of all observations, with the roughness found.
  [[nodiscard]] double log_likelihood() const { return log_likelihood_; }
  /// What would be known with these instead of the member's observations, roughness as it is.
  void replace(int member, Observations observations);

 private:
  struct Evidence {  // all that a member's observations say about the common curve
    Matrix information;
    std::vector<double> weighted;
    double log_likelihood = 0;  // as if the common curve were 0
  };
  struct Member {
    Observations observations;
    int deviation = 0;
    Evidence evidence;
    mutable std::vector<Evidence> tried;  // per deviation, as needed during the fit
  };
  [[nodiscard]] Evidence evidence_of(const Observations& observations, int deviation) const;
  [[nodiscard]] double log_likelihood(const Matrix& prior_lower) const;
  void fit();
  void condition();

  std::vector<CurvePosition> positions_;
  std::vector<Matrix> deviations_;  // covariances that a member's deviation may have
  std::vector<Member> members_;
  double log_likelihood_ = 0;
  Matrix prior_lower_;  // Cholesky factor of the common curve's prior
  Matrix common_root_;  // root' root is its posterior covariance
  std::vector<double> common_mean_;
};

}  // namespace perseus::profiling
