// Curves over clocks that resemble each other: the same instruction in all stages, estimated from noisy samples.
//
// Problem: log time (or log power) over the clock is a smooth curve plus small steps that no formula describes, nearly
//          the same in all stages except for a factor. There are many measurements of all members together, and few of
//          one member at one clock.
// Model:   member z_s = c + d_s over a common grid of positions. c: Gaussian process, wide quadratic in log clock plus
//          a smooth part plus independent steps; d_s: an offset, a smooth part, kinks, steps, all small. The
//          roughness, and how far each member may deviate from the others, maximize the likelihood (so a member unlike
//          the others is estimated on its own). Given these, the posterior is exact. Rare steps, if wanted: those more
//          likely than not are part of the curve, each other one of the draws with its probability.
// Input:   positions; per member any linear observations of its z with independent Gaussian errors. Values should be
//          centered: the prior mean is 0, its standard deviation 1 in height.
// Output:  mean and covariance of a member; joint draws of all of them.
// Errors:  none.
// Cost:    O(members * positions^3) to fit and to draw.
// Threads: const functions are pure.
// Source:  beyond the paper; Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5.
#pragma once

#include <random>
#include <vector>

#include "base/linear_algebra.h"

namespace perseus::profiling {

struct CurvePosition {
  double log_clock = 0;  ///< log of the clock as a share of the highest: <= 0
  int curve = 0;         ///< positions of one curve are neighbors; lone: not of a clock, the same for all members
};
inline constexpr int kLone = -1;

/// value[r] = design.row(r) . z + error of variance[r]
struct Observations {
  Matrix design;  ///< a row each
  std::vector<double> value;
  std::vector<double> variance;
};

/// Standard normal by Box and Muller: the same numbers with every standard library.
double standard_normal(std::mt19937_64& engine);
/// In [0, 1).
double uniform(std::mt19937_64& engine);

/// A few clocks may differ from their neighbors by far more than the others do, in all members.
enum class RareSteps { none, possible };

class CurveFamily {
 public:
  CurveFamily(std::vector<CurvePosition> positions, std::vector<Observations> members, RareSteps rare);

  [[nodiscard]] int members() const { return static_cast<int>(members_.size()); }
  struct Posterior {
    Vector mean;
    Matrix covariance;
  };
  [[nodiscard]] Posterior posterior(int member) const;
  [[nodiscard]] Matrix covariance(int member) const;
  /// Draws of all members from their joint posterior: [draw][member][position].
  [[nodiscard]] std::vector<std::vector<Vector>> draws(int count, std::mt19937_64& engine) const;
  /// How posterior means change where observed values do, with the fitted roughness. [member]: a column per change.
  [[nodiscard]] std::vector<Matrix> responses(const std::vector<Matrix>& changes) const;
  /// Of all observations, with the fitted roughness.
  [[nodiscard]] double log_likelihood() const { return log_likelihood_; }

 private:
  struct Evidence {  // sufficient statistics of a member's observations for the common curve
    Matrix information;
    Vector weighted;
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
  double fit_common();
  double fit_deviation(Member& member, double likelihood);
  void condition();
  void find_steps();
  [[nodiscard]] static Cholesky whitened_information(const Matrix& prior_lower, const Matrix& information);
  [[nodiscard]] Vector given_common(const Member& member, const Vector& common) const;

  std::vector<CurvePosition> positions_;
  std::vector<Matrix> deviations_;  // candidate covariances of a member's deviation
  std::vector<Member> members_;
  double log_likelihood_ = 0;
  Matrix prior_lower_;  // Cholesky factor of the common curve's prior
  Matrix common_root_;  // root' root is its posterior covariance
  Vector common_mean_;
  Matrix information_;  // of all members' observations about the common curve
  Vector weighted_;
  struct RareStep {
    std::size_t position;
    double log_odds, mean, stddev;  // the latter two if there is one
  };
  std::vector<RareStep> rare_;
};

}  // namespace perseus::profiling
