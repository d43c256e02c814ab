#include "planning/planner/cost_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "planning/planner/candidate_options.h"
#include "planning/planner/exponential_fit.h"

namespace perseus::planner {
namespace {

CostCurve make_curve(const std::vector<model::Measurement>& options, Watts blocking_power, Seconds unit) {
  const auto candidates = candidate_options(options, unit);
  std::vector<double> times, energies;
  for (const auto& [option, units] : candidates) {
    const double time = static_cast<double>(units);
    times.push_back(time);
    energies.push_back((options[option].energy - blocking_power * (time * unit)).value());
  }
  const ExponentialFit fit(times, energies);

  CostCurve curve;
  curve.fastest = candidates.back().units;
  curve.slowest = candidates.front().units;
  auto candidate = candidates.rbegin();
  for (std::int64_t units = curve.fastest; units <= curve.slowest; ++units) {
    while (std::next(candidate) != candidates.rend() && std::next(candidate)->units <= units) ++candidate;
    curve.option.push_back(static_cast<std::uint16_t>(candidate->option));
    curve.energy_j.push_back(fit.at(static_cast<double>(units)));
  }
  return curve;
}

void scale_step_costs(CostCurves& curves) {
  double largest = 0;
  for (const CostCurve& curve : curves.curves) {
    for (std::size_t k = 1; k < curve.energy_j.size(); ++k) {
      largest = std::max(largest, curve.energy_j[k - 1] - curve.energy_j[k]);
    }
  }
  const int bits = 60 - static_cast<int>(std::bit_width(curves.curve_of.size()));
  for (CostCurve& curve : curves.curves) {
    curve.step_cost.assign(curve.energy_j.size(), 0);
    std::int64_t slower = 0;  // rounding must not break convexity: a lower bound would exceed its upper bound
    for (std::size_t k = curve.energy_j.size(); k-- > 1;) {
      const double part = largest > 0 ? (curve.energy_j[k - 1] - curve.energy_j[k]) / largest : 0;
      slower = std::max<std::int64_t>(slower, std::llround(std::ldexp(part, bits)));
      curve.step_cost[k] = slower;
    }
  }
}

}  // namespace

CostCurves make_cost_curves(const model::ComputationDag& dag, Seconds unit) {
  CostCurves curves;
  std::map<std::pair<int, int>, int> known;  // (type, accelerators)
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    const model::Computation& computation = dag.computations[i];
    const auto [place, is_new] =
        known.try_emplace({computation.type, dag.accelerators[computation.rank]}, static_cast<int>(known.size()));
    if (is_new) curves.curves.push_back(make_curve(dag.type_of(i).options, dag.blocking_power_of(i), unit));
    curves.curve_of.push_back(place->second);
  }
  scale_step_costs(curves);
  return curves;
}

}  // namespace perseus::planner
