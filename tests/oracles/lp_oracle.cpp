#include "oracles/lp_oracle.h"

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <algorithm>
#include <cmath>
#include <vector>

namespace perseus::testing {
namespace {

struct HullPoint {
  double time;
  double energy;
};

/// The falling part of the lower convex hull of a computation's (time, effective energy), fastest first.
std::vector<HullPoint> falling_hull(const model::ComputationDag& dag, int computation) {
  std::vector<HullPoint> points;
  for (const model::Measurement& option : dag.type_of(computation).options) {
    const Joules effective = option.energy - dag.blocking_power_of(computation) * option.time;
    points.push_back({option.time.value(), effective.value()});
  }
  std::ranges::sort(points, [](const HullPoint& a, const HullPoint& b) {
    return a.time != b.time ? a.time < b.time : a.energy < b.energy;
  });
  std::vector<HullPoint> hull;
  for (const HullPoint& point : points) {
    if (!hull.empty() && point.energy >= hull.back().energy) continue;
    while (hull.size() >= 2) {
      const HullPoint& a = hull[hull.size() - 2];
      const HullPoint& b = hull.back();
      if ((b.energy - a.energy) * (point.time - a.time) < (point.energy - a.energy) * (b.time - a.time)) break;
      hull.pop_back();
    }
    hull.push_back(point);
  }
  return hull;
}

}  // namespace

// Columns: the start of every computation, and one column per hull segment: how far along it the duration is, from 0 to
// 1, as the solver takes a column of 1e-9 s for fixed. Convexity makes the optimum fill steep segments first. Times are
// divided by the deadline and energies by the sum of what can be saved, so that the solver's absolute tolerances mean
// the same for every instance.
std::optional<LpOptimum> solve_relaxation(const model::ComputationDag& dag, Seconds deadline) {
  const int n = static_cast<int>(dag.computations.size());
  const int num_dependencies = static_cast<int>(dag.dependencies.size());
  const double time_unit = deadline.value();
  double energy_unit = 0;
  double fastest_energy = 0;
  std::vector<std::vector<HullPoint>> hulls;
  for (int i = 0; i < n; ++i) {
    hulls.push_back(falling_hull(dag, i));
    fastest_energy += hulls.back().front().energy;
    energy_unit += hulls.back().front().energy - hulls.back().back().energy;
  }
  if (energy_unit == 0) energy_unit = 1;

  // Row d < num_dependencies: start[after] - start[before] - duration[before] >= latency.
  // Row num_dependencies + i: start[i] + duration[i] <= deadline.
  std::vector<double> row_lower(num_dependencies + n, -COIN_DBL_MAX);
  std::vector<double> row_upper(num_dependencies + n, COIN_DBL_MAX);
  std::vector<std::vector<int>> rows_of(n);  // dependencies that wait for i
  for (int d = 0; d < num_dependencies; ++d) {
    const model::Dependency& dependency = dag.dependencies[d];
    rows_of[dependency.before].push_back(d);
    row_lower[d] = (dependency.latency.value() + hulls[dependency.before].front().time) / time_unit;
  }
  for (int i = 0; i < n; ++i) row_upper[num_dependencies + i] = 1 - hulls[i].front().time / time_unit;

  std::vector<int> row;
  std::vector<int> column;
  std::vector<double> element;
  const auto add = [&](int r, int c, double value) {
    row.push_back(r);
    column.push_back(c);
    element.push_back(value);
  };
  for (int d = 0; d < num_dependencies; ++d) {
    add(d, dag.dependencies[d].after, 1);
    add(d, dag.dependencies[d].before, -1);
  }
  for (int i = 0; i < n; ++i) add(num_dependencies + i, i, 1);
  std::vector<double> column_upper(n, COIN_DBL_MAX);
  std::vector<double> cost(n, 0);
  for (int i = 0; i < n; ++i) {
    for (std::size_t k = 1; k < hulls[i].size(); ++k) {
      const double length = (hulls[i][k].time - hulls[i][k - 1].time) / time_unit;
      const double saved = (hulls[i][k - 1].energy - hulls[i][k].energy) / energy_unit;
      const int segment = static_cast<int>(cost.size());
      cost.push_back(-saved);
      column_upper.push_back(1);
      for (const int d : rows_of[i]) add(d, segment, -length);
      add(num_dependencies + i, segment, length);
    }
  }
  const std::vector<double> column_lower(cost.size(), 0);
  const CoinPackedMatrix matrix(true, row.data(), column.data(), element.data(), static_cast<int>(row.size()));

  ClpSimplex model;
  model.setLogLevel(0);
  model.setPrimalTolerance(1e-9);
  model.setDualTolerance(1e-9);
  model.loadProblem(matrix, column_lower.data(), column_upper.data(), cost.data(), row_lower.data(), row_upper.data());
  model.dual();
  if (!model.isProvenOptimal()) return std::nullopt;

  LpOptimum optimum;
  optimum.effective_energy = Joules(fastest_energy + model.objectiveValue() * energy_unit);
  const double power_unit = energy_unit / time_unit;
  model::BoundCertificate& certificate = optimum.certificate;
  certificate.deadline = deadline;
  certificate.computation_flow_w.assign(n, 0);
  const double* dual = model.dualRowSolution();
  for (int d = 0; d < num_dependencies; ++d)
    certificate.dependency_flow_w.push_back(std::max(dual[d], 0.0) * power_unit);
  // Outflow of a computation, to its deadline or its dependencies, equals its inflow. The solver's rounding may make
  // the inflow slightly larger: the larger of the two is a flow in any case.
  std::vector<double> in(n, 0);
  std::vector<double>& through = certificate.computation_flow_w;
  for (int i = 0; i < n; ++i) through[i] = std::max(-dual[num_dependencies + i], 0.0) * power_unit;
  for (int d = 0; d < num_dependencies; ++d) {
    through[dag.dependencies[d].before] += certificate.dependency_flow_w[d];
    in[dag.dependencies[d].after] += certificate.dependency_flow_w[d];
  }
  for (int i = 0; i < n; ++i) through[i] = std::max(through[i], in[i]);
  return optimum;
}

}  // namespace perseus::testing
