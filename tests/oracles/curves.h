// Compares falling time-energy curves with a tolerance in time.
//
// Where a computation has two nearly equal options, a curve may fall by any amount within a nanosecond, and two
// right answers differ by more than any tolerance of energy. So an energy at T is right if it lies between the curve's
// at slightly more and at slightly less than T.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::testing {

struct CurveTolerance {
  double time = 1e-9;    ///< relative to the deadline
  double energy = 1e-9;  ///< relative to the iteration's energy
};

/// Success if `energy` is the curve's value at that deadline, else what is wrong.
::testing::AssertionResult lies_on(const model::LowerBound& curve, const model::ComputationDag& dag, Seconds deadline,
                                   Joules energy, CurveTolerance tolerance = {});

/// Success if `actual`, with its times divided by `time_factor` and its energies by `energy_factor`, is `expected`.
::testing::AssertionResult same_curve(const model::ComputationDag& dag, const model::LowerBound& expected,
                                      const model::LowerBound& actual, double time_factor = 1,
                                      double energy_factor = 1);

/// `count` deadlines from T_min to a little more than T*, both ends included, plus some of the curve's own vertices.
std::vector<Seconds> sample_deadlines(const model::LowerBound& curve, int count);

}  // namespace perseus::testing
