// The iteration time-energy frontier as realized plans, and the lower bound that proves how good they are.
//
// Shape:   a plan is one option index per computation of its ComputationDag. Frontier points are ordered slowest first
//          (point 0 is T*), strictly decreasing in time and strictly increasing in effective energy: a Pareto set.
// Units:   s, J. `energy` is that of one iteration at the point's own realized time (paper eq. (1) with T' = T).
// Threads: plain values.
// Source:  paper sections 3.1, 4.1.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace perseus::model {

/// Option index (into ComputationType::options) per computation.
using Plan = std::vector<std::uint16_t>;

/// One vertex of the convex, decreasing, piecewise-linear lower bound on effective energy.
struct BoundVertex {
  Seconds time;
  Joules effective_energy;
};

/// Lower bound on the effective energy of any plan with iteration time <= T, for every T >= the first vertex's time.
/// Vertices are ordered by increasing time; past the last one the bound is constant; before the first no plan exists.
struct LowerBound {
  std::vector<BoundVertex> vertices;
  [[nodiscard]] Seconds t_min() const { return vertices.front().time; }
  [[nodiscard]] Seconds t_star() const { return vertices.back().time; }
  /// Effective energy at T, clamped to t_min below. O(log vertices).
  [[nodiscard]] Joules at(Seconds deadline) const;
};

/// Effect of a noisy profile on the time and energy of a plan; all 0 if the profile counts as exact.
struct ProfileNoise {
  /// Expected makespan minus the makespan by the profile's means; the maximum over many uncertain paths exceeds the
  /// longest path by the means.
  Seconds lateness;
  Seconds time_stddev;
  Joules energy_stddev;
  /// Of the share of energy saved against everything at maximum clock, each at its own time; 0 at maximum clock.
  double saving_stddev = 0;
  bool operator==(const ProfileNoise&) const = default;
};

struct FrontierPoint {
  Seconds time;             ///< realized makespan of the plan; its expected value if the profile is noisy
  Joules energy;            ///< realized total at T' = time
  Joules effective_energy;  ///< sum of e - P t
  Joules bound;             ///< lower bound on `energy` over all plans no slower than `time`
  Plan plan;
  /// Cost of switch latency and dwell: `energy` minus that of a plan without these limits at the same T.
  Joules clock_limit_cost{};
  ProfileNoise noise{};  ///< `time` and `energy` include its lateness
  /// 0 if `energy` equals the bound, even a bound of 0 J; infinite above a bound of 0 J.
  [[nodiscard]] double gap_pct() const { return energy == bound ? 0.0 : 100.0 * ((energy - bound) / bound); }
};

struct Frontier {
  std::vector<FrontierPoint> points;
  LowerBound bound;                    ///< by the profile's means: expected times are no less
  ProfileNoise maximum_clock_noise{};  ///< of the plan with all computations at maximum clock
};

}  // namespace perseus::model
