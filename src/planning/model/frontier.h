// The iteration time-energy frontier as realised plans, and the lower bound that proves how good they are.
//
// Shape: a plan is one option index per computation of its ComputationDag. Frontier points are ordered slowest first
// (point 0 is T*), strictly decreasing in time and strictly increasing in effective energy: a Pareto set.
// Units: s, J. `energy` is that of one iteration at the point's own realised time (paper eq. (1) with T' = T).
// Threads: plain values. Source: paper sections 3.1, 4.1.
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

/// What a noisy profile does to the time and energy of a plan; all 0 where the profile counts as exact.
struct ProfileNoise {
  /// The expected makespan less that of the profile's means: the longest of many uncertain paths is later than the
  /// longest by the means.
  Seconds lateness;
  Seconds time_stddev;
  Joules energy_stddev;
  bool operator==(const ProfileNoise&) const = default;
};

struct FrontierPoint {
  Seconds time;             ///< realised makespan of the plan; expected where the profile is noisy
  Joules energy;            ///< realised total at T' = time
  Joules effective_energy;  ///< sum of e - P t
  Joules bound;             ///< lower bound on `energy` over all plans no slower than `time`
  Plan plan;
  Joules
      clock_limit_cost{};  ///< what switch latency and dwell cost: `energy` above that of a plan without them, same T
  ProfileNoise noise{};    ///< `time` and `energy` include its lateness
  /// 0 where `energy` is the bound, be it 0 J; infinite above a bound of 0 J.
  [[nodiscard]] double gap_pct() const { return energy == bound ? 0.0 : 100.0 * ((energy - bound) / bound); }
};

struct Frontier {
  std::vector<FrontierPoint> points;
  LowerBound bound;                    ///< of the profile's means: expected times are no less
  ProfileNoise maximum_clock_noise{};  ///< of everything at maximum clock
};

}  // namespace perseus::model
