// The relaxation at one deadline as a linear program, solved by Clp: an oracle for the lower bound.
//
// Problem: least sum of effective energies over durations on each computation's lower convex hull, such that all ends
//          are within the deadline.
// Input:   a valid DAG.
// Output:  the optimum, and the dual solution as a certificate; nothing if no plan is that fast. Precision about 1e-9
//          relative to the energies' size.
// Cost:    a simplex run; suitable for a few thousand computations.
// Threads: any.
// Source:  Kelley 1961 (project crashing as a linear program).
#pragma once

#include <optional>

#include "planning/model/certificate.h"
#include "planning/model/computation_dag.h"

namespace perseus::testing {

struct LpOptimum {
  Joules effective_energy;
  model::BoundCertificate certificate;
};

/// How well the optimum is known where one second is worth `fall`: 1e-6 of the iteration's energy, and the solver's
/// tolerance in time, 1e-8 of the deadline.
inline Joules lp_tolerance(Watts fall, Seconds deadline, Joules energy) {
  return 1e-6 * energy + 1e-8 * (fall * deadline);
}

std::optional<LpOptimum> solve_relaxation(const model::ComputationDag& dag, Seconds deadline);

}  // namespace perseus::testing
