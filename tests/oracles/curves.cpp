#include "oracles/curves.h"

#include <algorithm>
#include <cmath>

namespace perseus::testing {

::testing::AssertionResult lies_on(const model::LowerBound& curve, const model::ComputationDag& dag, Seconds deadline,
                                   Joules energy, CurveTolerance tolerance) {
  const Joules total = curve.at(deadline) + dag.total_blocking_power() * deadline;
  const double allowed = tolerance.energy * std::abs(total.value());
  const double low = curve.at(deadline * (1 + tolerance.time)).value() - allowed;
  const double high = curve.at(deadline * (1 - tolerance.time)).value() + allowed;
  if (energy.value() >= low && energy.value() <= high) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "at " << deadline.value() << " s: " << energy.value() << " J is not within ["
                                       << low << ", " << high << "], off by "
                                       << (energy - curve.at(deadline)).value() / total.value() << " of the total";
}

::testing::AssertionResult same_curve(const model::ComputationDag& dag, const model::LowerBound& expected,
                                      const model::LowerBound& actual, double time_factor, double energy_factor) {
  const double t_min_error = std::abs(actual.t_min() / time_factor / expected.t_min() - 1);
  if (!(t_min_error <= 1e-9))
    return ::testing::AssertionFailure() << "T_min is " << actual.t_min().value() / time_factor << " s, expected "
                                         << expected.t_min().value() << " s";
  for (const Seconds deadline : sample_deadlines(expected, 50)) {
    const Joules energy = actual.at(deadline * time_factor) / energy_factor;
    if (auto result = lies_on(expected, dag, deadline, energy); !result) return result;
  }
  return ::testing::AssertionSuccess();
}

std::vector<Seconds> sample_deadlines(const model::LowerBound& curve, int count) {
  std::vector<Seconds> deadlines;
  const Seconds span = curve.t_star() - curve.t_min();
  for (int i = 0; i < count; ++i) deadlines.push_back(curve.t_min() + span * (i / (count - 1.0)));
  deadlines.push_back(curve.t_star() * 1.1);
  const std::size_t step = std::max<std::size_t>(1, curve.vertices.size() / count);
  for (std::size_t i = 0; i < curve.vertices.size(); i += step) deadlines.push_back(curve.vertices[i].time);
  return deadlines;
}

}  // namespace perseus::testing
